import { dayOfTime } from "../foundation/base/days.ts";
import { err, ok, type Result, AppError } from "../foundation/base/errors.ts";
import type { ByMode } from "../foundation/base/secrets.ts";
import { insufficientCredits, type CreditHolds, type TooFewCredits } from "../accounts/billing/store.ts";
import type { Tx } from "../foundation/db/open.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import { PromiseCounts } from "./bounces/promise-counts.ts";
import { type UsageEntry, UsageStore } from "../accounts/usage/usage-store.ts";
import type { VerificationResult } from "./result.ts";
import type { Completion, VerificationRow, VerificationStore } from "./store.ts";
import { idempotencyKeyReused, type IdempotencyStore, type IdempotentRequest } from "../foundation/db/idempotency.ts";
import { orRefusal } from "../foundation/db/group-commit.ts";

/** A verification with its result. */
export interface EndedVerification {
  readonly result: VerificationResult;
  /** Packed; null where it is not stored: it can be made again, or cannot be trusted. */
  readonly evidence: Uint8Array | null;
  /** False: the credit is given back. */
  readonly chargeable: boolean;
  /** The provider of the mail hosts; null when none is known. */
  readonly provider: string | null;
  readonly attempts: number;
  /** When it ended; null: when it is stored. */
  readonly endedMs: number | null;
}

/** An attempt that ended without a result: its packed evidence, how many were made, and when the next one is due. */
interface PostponedVerification {
  readonly evidence: Uint8Array;
  readonly attempts: number;
  readonly dueAtMs: number;
}

/** What an attempt came to: a result, or the time of the next attempt. */
export type VerificationOutcome = EndedVerification | PostponedVerification;

/** A verification to store, with what an attempt at it came to. */
type VerificationWrite =
  | {
      readonly kind: "insert";
      readonly row: VerificationRow;
      /** Null while that is not known. */
      readonly outcome: VerificationOutcome | null;
      readonly request: IdempotentRequest | null;
    }
  | { readonly kind: "update"; readonly row: VerificationRow; readonly outcome: VerificationOutcome };

interface WriterDeps {
  readonly store: VerificationStore;
  readonly credits: ByMode<CreditHolds>;
  readonly idempotency: IdempotencyStore;
}

/**
 * Stores single verifications: pending, or with their result, its evidence, its credit and the usage that it counts as. Those
 * that one transaction stores share its statements.
 */
export class VerificationWriter {
  readonly #commit: (write: VerificationWrite) => Promise<VerificationRow | AppError>;

  constructor(runtime: Pick<Runtime, "db" | "clock">, deps: WriterDeps) {
    const usage = new UsageStore(runtime.db);
    const promises = new PromiseCounts(runtime.db);
    this.#commit = runtime.db.commitsOf((tx, writes) => {
      const batch = new VerificationBatch(tx, runtime, { ...deps, usage, promises });
      const stored = writes.map((write) => orRefusal(() => batch.add(write)));
      batch.flush();
      return stored;
    });
  }

  /**
   * Inserts a new verification with what its first attempt came to, null while that is not known, and returns its row. Its
   * credit is held while it is pending. 402, and 422 when the Idempotency-Key stands for another request; then nothing is
   * changed.
   */
  async insert(
    row: VerificationRow,
    outcome: VerificationOutcome | null,
    request: IdempotentRequest | null,
  ): Promise<VerificationRow> {
    const stored = await this.#commit({ kind: "insert", row, outcome, request });
    if (stored instanceof AppError) throw stored;
    return stored;
  }

  /** Stores what an attempt at a pending verification came to; nothing happens when it has ended already. */
  async update(row: VerificationRow, outcome: VerificationOutcome): Promise<void> {
    await this.#commit({ kind: "update", row, outcome });
  }
}

/** The verifications of one transaction: `flush` writes what was added, in that order, with a few statements. */
class VerificationBatch {
  readonly #credits: ByMode<ReturnType<CreditHolds["collect"]>>;
  #inserted = new Map<string, VerificationRow>();
  #evidence: Array<readonly [id: string, body: Uint8Array]> = [];
  #usage: UsageEntry[] = [];

  constructor(
    private readonly tx: Tx,
    private readonly runtime: Pick<Runtime, "db" | "clock">,
    private readonly deps: WriterDeps & { readonly usage: UsageStore; readonly promises: PromiseCounts },
  ) {
    const { live, test } = deps.credits;
    this.#credits = { live: live.collect(), test: test.collect() };
  }

  /** Returns the row as it is stored. Throws a refusal before anything is changed. */
  add(write: VerificationWrite): VerificationRow {
    if (this.#inserted.has(write.row.id)) this.flush();
    if (write.kind === "update") {
      this.#update(write);
      return write.row;
    }
    const { idempotency } = this.deps;
    const { request, outcome, row } = write;
    if (request !== null) idempotency.findResource(request);
    const stored =
      outcome !== null && "result" in outcome
        ? this.#insertEnded(row, this.#timed(outcome))
        : this.#insertPending(row, outcome);
    if (request !== null) idempotency.save(this.tx, request, row.id);
    return stored;
  }

  flush(): void {
    const { store, usage } = this.deps;
    store.insert(this.tx, ...this.#inserted.values());
    store.saveEvidence(this.tx, ...this.#evidence);
    usage.add(this.tx, ...this.#usage);
    for (const credits of Object.values(this.#credits)) credits.flush(this.tx);
    this.#inserted = new Map();
    [this.#evidence, this.#usage] = [[], []];
  }

  #insertPending(row: VerificationRow, outcome: PostponedVerification | null): VerificationRow {
    const held = this.#credits[row.mode].hold(this.tx, moveOf(row, row.createdAtMs));
    if (!held.ok) throw insufficientCredits(held.error);
    const { dueAtMs, attempts } = outcome ?? row;
    return this.#insert({ ...row, dueAtMs, attempts }, outcome?.evidence ?? null);
  }

  #insertEnded(row: VerificationRow, ended: TimedEnd): VerificationRow {
    const charged = this.#charge(row, ended);
    if (!charged.ok) throw insufficientCredits(charged.error);
    this.#complete(row, ended, charged.value);
    return this.#insert({ ...row, ...completionOf(ended), status: "completed", dueAtMs: null }, ended.evidence);
  }

  #insert(row: VerificationRow, evidence: Uint8Array | null): VerificationRow {
    this.#inserted.set(row.id, row);
    if (evidence !== null) this.#evidence.push([row.id, evidence]);
    return row;
  }

  #update({ row, outcome }: Extract<VerificationWrite, { kind: "update" }>): void {
    const { store } = this.deps;
    const isStored =
      "result" in outcome
        ? this.#end(row, this.#timed(outcome))
        : store.postpone(this.tx, row.id, outcome.dueAtMs, outcome.attempts);
    if (isStored && outcome.evidence !== null) this.#evidence.push([row.id, outcome.evidence]);
  }

  /** False when it had ended already. */
  #end(row: VerificationRow, ended: TimedEnd): boolean {
    if (!this.deps.store.complete(this.tx, row.id, completionOf(ended))) return false;
    const credits = this.#credits[row.mode];
    const move = moveOf(row, ended.endedMs);
    const charged = ended.chargeable ? credits.settle(this.tx, move) : 0;
    if (!ended.chargeable) credits.release(this.tx, move, ended.result.sub_status);
    this.#complete(row, ended, charged);
    return true;
  }

  #timed(ended: EndedVerification): TimedEnd {
    return { ...ended, endedMs: ended.endedMs ?? this.runtime.clock.nowMs() };
  }

  /** The credit of a verification that was not pending: how many were spent. */
  #charge(row: VerificationRow, { chargeable, endedMs }: TimedEnd): Result<number, TooFewCredits> {
    const credits = this.#credits[row.mode];
    if (chargeable) return credits.spend(this.tx, moveOf(row, endedMs));
    // Free of charge, but not for an account without credits. The balance stays, so the ledger has no entry.
    const { available } = credits.balance(row.accountId);
    return available < 1 ? err({ required: 1, available }) : ok(0);
  }

  #complete({ accountId, keyId, mode }: VerificationRow, ended: TimedEnd, credits: number): void {
    const { result, endedMs, provider } = ended;
    const day = dayOfTime(endedMs);
    const { verdict, sub_status: subStatus } = result;
    const counted = { mode, source: "single", verdict, subStatus } as const;
    if (mode === "live" && verdict === "deliverable") this.deps.promises.add(this.tx, accountId, day, [provider]);
    this.#usage.push({ ...counted, accountId, keyId, day, verifications: 1, credits });
    this.runtime.db.note(this.tx, { kind: "verification", ...counted });
  }
}

type TimedEnd = EndedVerification & { readonly endedMs: number };

const completionOf = ({ result, attempts, endedMs }: TimedEnd): Completion => {
  const { verdict, sub_status: subStatus } = result;
  return { verdict, subStatus, result: JSON.stringify(result), completedAtMs: endedMs, attempts };
};

const moveOf = ({ id, accountId }: VerificationRow, atMs: number) => ({ accountId, reference: id, atMs });

interface UnstoredDeps {
  readonly writer: VerificationWriter;
  readonly credits: ByMode<CreditHolds>;
}

/**
 * A verification that has begun and is not in the database yet. It gets there by one transaction: with the result of its
 * first attempt, or as pending when that takes longer. Until then no response names it, so that nothing is lost with the
 * process that anybody was promised.
 */
export class UnstoredVerification {
  /** The row once it is durable. Rejects with the refusal (402, 422) or the failure of the database; then nothing is stored. */
  readonly stored: Promise<VerificationRow>;
  readonly #stored = Promise.withResolvers<VerificationRow>();
  #isStoring: boolean = false;

  constructor(
    /** As it is stored while it is pending. */
    readonly row: VerificationRow,
    readonly request: IdempotentRequest | null,
    private readonly write: (outcome: VerificationOutcome | null) => Promise<VerificationRow>,
  ) {
    this.stored = this.#stored.promise;
    // Nobody may be waiting when it fails.
    this.stored.catch(() => undefined);
  }

  /**
   * Stores it with what its first attempt came to, null while that is not known. False when that was begun before, as
   * pending: the row is in the database then.
   */
  async store(outcome: VerificationOutcome | null): Promise<boolean> {
    const isFirst = !this.#isStoring;
    if (isFirst) {
      this.#isStoring = true;
      this.write(outcome).then(this.#stored.resolve, this.#stored.reject);
    }
    await this.stored;
    return isFirst;
  }

  /** Stores it as pending, unless it is stored already. False when it cannot be stored. */
  storePending(): Promise<boolean> {
    return this.store(null).then(
      () => true,
      () => false,
    );
  }
}

/** The verifications that are not stored yet: a repeated request finds them here, and their credits count as held. */
export class UnstoredVerifications {
  readonly #byAddress = new Map<string, UnstoredVerification>();
  readonly #byRequest = new Map<string, UnstoredVerification>();
  /** Of each account with a live key. */
  readonly #credits = new Map<string, number>();

  constructor(private readonly deps: UnstoredDeps) {}

  /** What the request, or an earlier one for the same address, has begun. 422 when its Idempotency-Key began another. */
  find(row: VerificationRow, request: IdempotentRequest | null): UnstoredVerification | undefined {
    const repeated = request === null ? undefined : this.#byRequest.get(requestKey(request));
    if (request !== null && repeated !== undefined && repeated.request?.requestHash !== request.requestHash)
      throw idempotencyKeyReused();
    return repeated ?? this.#byAddress.get(addressKey(row));
  }

  /** Begins a verification. 402 when the credits that are available are needed for others that have begun. */
  begin(row: VerificationRow, request: IdempotentRequest | null): UnstoredVerification {
    const { available } = this.deps.credits[row.mode].balance(row.accountId);
    const begun = row.mode === "live" ? (this.#credits.get(row.accountId) ?? 0) : 0;
    if (available - begun < 1) throw insufficientCredits({ required: 1, available: available - begun });
    const unstored = new UnstoredVerification(row, request, (outcome) => this.#write(unstored, outcome));
    this.#byAddress.set(addressKey(row), unstored);
    if (request !== null) this.#byRequest.set(requestKey(request), unstored);
    if (row.mode === "live") this.#credits.set(row.accountId, begun + 1);
    return unstored;
  }

  async #write(unstored: UnstoredVerification, outcome: VerificationOutcome | null): Promise<VerificationRow> {
    const { row, request } = unstored;
    try {
      return await this.deps.writer.insert(row, outcome, request);
    } finally {
      this.#remove(unstored);
    }
  }

  #remove({ row, request }: UnstoredVerification): void {
    this.#byAddress.delete(addressKey(row));
    if (request !== null) this.#byRequest.delete(requestKey(request));
    if (row.mode !== "live") return;
    const left = (this.#credits.get(row.accountId) ?? 0) - 1;
    if (left > 0) this.#credits.set(row.accountId, left);
    else this.#credits.delete(row.accountId);
  }
}

const addressKey = ({ accountId, mode, normalizedEmail }: VerificationRow): string =>
  `${accountId} ${mode} ${normalizedEmail}`;

const requestKey = ({ keyId, idempotencyKey }: IdempotentRequest): string => `${keyId} ${idempotencyKey}`;
