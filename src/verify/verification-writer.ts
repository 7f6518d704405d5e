import { dayOfTime } from "../foundation/base/days.ts";
import { err, ok, type Result, AppError } from "../foundation/base/errors.ts";
import type { ByMode } from "../foundation/base/secrets.ts";
import { insufficientCredits, type CreditHolds, type TooFewCredits } from "../accounts/billing/store.ts";
import type { Tx } from "../foundation/db/open.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import { UsageStore } from "../accounts/usage/usage-store.ts";
import type { Evidence } from "./evidence.ts";
import type { VerificationResult } from "./result.ts";
import type { Completion, VerificationRow, VerificationStore } from "./store.ts";
import { idempotencyKeyReused, type IdempotencyStore, type IdempotentRequest } from "../foundation/db/idempotency.ts";
import { orRefusal } from "../foundation/db/group-commit.ts";

/** A verification with its result. */
export interface EndedVerification {
  readonly result: VerificationResult;
  /** Null where it is not stored: it can be made again, or cannot be trusted. */
  readonly evidence: Evidence | null;
  /** False: the credit is given back. */
  readonly chargeable: boolean;
  readonly attempts: number;
  /** When it ended; null: when it is stored. */
  readonly endedMs: number | null;
}

/** What an attempt came to: a result, or the time of the next attempt. */
export type VerificationOutcome = EndedVerification | { readonly evidence: Evidence; readonly dueAtMs: number };

/** Stores single verifications: pending, or with their result, its evidence, its credit and the usage that it counts as. */
export class VerificationWriter {
  readonly #usage: UsageStore;

  constructor(
    private readonly runtime: Pick<Runtime, "db" | "clock">,
    private readonly deps: { readonly store: VerificationStore; readonly credits: ByMode<CreditHolds> },
  ) {
    this.#usage = new UsageStore(runtime.db);
  }

  /**
   * Inserts a new verification with what its first attempt came to, null while that is not known, and returns its row. Its
   * credit is held while it is pending. 402 before anything is changed.
   */
  insert(tx: Tx, row: VerificationRow, outcome: VerificationOutcome | null): VerificationRow {
    if (outcome !== null && "result" in outcome) return this.#insertEnded(tx, row, this.#timed(outcome));
    const held = this.deps.credits[row.mode].hold(tx, moveOf(row, row.createdAtMs));
    if (!held.ok) throw insufficientCredits(held.error);
    if (outcome === null) {
      this.deps.store.insert(tx, row);
      return row;
    }
    const { dueAtMs, evidence } = outcome;
    const pending = { ...row, dueAtMs, attempts: attemptsIn(evidence) };
    this.deps.store.insert(tx, pending);
    this.deps.store.saveEvidence(tx, row.id, evidence);
    return pending;
  }

  /** Stores what an attempt at a pending verification came to; nothing happens when it has ended already. */
  update(tx: Tx, row: VerificationRow, outcome: VerificationOutcome): void {
    const { store } = this.deps;
    if ("result" in outcome) this.#end(tx, row, this.#timed(outcome));
    else if (store.postpone(tx, row.id, outcome.dueAtMs, attemptsIn(outcome.evidence)))
      store.saveEvidence(tx, row.id, outcome.evidence);
  }

  #end(tx: Tx, row: VerificationRow, ended: TimedEnd): void {
    if (!this.deps.store.complete(tx, row.id, completionOf(ended))) return;
    const { result, chargeable, endedMs } = ended;
    const credits = this.deps.credits[row.mode];
    const charged = chargeable ? credits.settle(tx, moveOf(row, endedMs)) : 0;
    if (!chargeable) credits.release(tx, moveOf(row, endedMs), result.sub_status);
    this.#complete(tx, row, ended, charged);
  }

  #insertEnded(tx: Tx, row: VerificationRow, ended: TimedEnd): VerificationRow {
    const charged = this.#charge(tx, row, ended);
    if (!charged.ok) throw insufficientCredits(charged.error);
    const completed: VerificationRow = { ...row, ...completionOf(ended), status: "completed", dueAtMs: null };
    this.deps.store.insert(tx, completed);
    this.#complete(tx, row, ended, charged.value);
    return completed;
  }

  #timed(ended: EndedVerification): TimedEnd {
    return { ...ended, endedMs: ended.endedMs ?? this.runtime.clock.nowMs() };
  }

  /** The credit of a verification that was not pending: how many were spent. */
  #charge(tx: Tx, row: VerificationRow, { chargeable, endedMs }: TimedEnd): Result<number, TooFewCredits> {
    const credits = this.deps.credits[row.mode];
    if (chargeable) return credits.spend(tx, moveOf(row, endedMs));
    // Free of charge, but not for an account without credits. The balance stays, so the ledger has no entry.
    const { available } = credits.balance(row.accountId);
    return available < 1 ? err({ required: 1, available }) : ok(0);
  }

  #complete(tx: Tx, row: VerificationRow, { result, evidence, endedMs }: TimedEnd, credits: number): void {
    const { id, accountId, keyId, mode } = row;
    const { verdict, sub_status: subStatus } = result;
    if (evidence !== null) this.deps.store.saveEvidence(tx, id, evidence);
    const counted = { mode, source: "single", verdict, subStatus } as const;
    this.#usage.add(tx, { ...counted, accountId, keyId, day: dayOfTime(endedMs), verifications: 1, credits });
    this.runtime.db.note(tx, { kind: "verification", ...counted });
  }
}

type TimedEnd = EndedVerification & { readonly endedMs: number };

/** Attempts that were made: one that ended at the DNS is not in the evidence. */
const attemptsIn = ({ attempts, retries }: Evidence): number => Math.max(attempts.length, retries.length);

const completionOf = ({ result, attempts, endedMs }: TimedEnd): Completion => {
  const { verdict, sub_status: subStatus } = result;
  return { verdict, subStatus, result: JSON.stringify(result), completedAtMs: endedMs, attempts };
};

const moveOf = ({ id, accountId }: VerificationRow, atMs: number) => ({ accountId, reference: id, atMs });

interface UnstoredDeps {
  readonly writer: VerificationWriter;
  readonly idempotency: IdempotencyStore;
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

  constructor(
    private readonly runtime: Pick<Runtime, "db">,
    private readonly deps: UnstoredDeps,
  ) {}

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

  /** One transaction, in which a refusal comes before every change. */
  async #write(unstored: UnstoredVerification, outcome: VerificationOutcome | null): Promise<VerificationRow> {
    const { idempotency, writer } = this.deps;
    const { request } = unstored;
    try {
      const stored = await this.runtime.db.commit((tx) =>
        orRefusal(() => {
          if (request !== null) idempotency.findResource(request);
          const row = writer.insert(tx, unstored.row, outcome);
          if (request !== null) idempotency.save(tx, request, row.id);
          return row;
        }),
      );
      if (stored instanceof AppError) throw stored;
      return stored;
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
