import { AppError } from "../foundation/base/errors.ts";
import { type ByMode, newId, sha256 } from "../foundation/base/secrets.ts";
import type { CreditHolds } from "../accounts/billing/store.ts";
import type { IdempotencyStore, IdempotentRequest } from "../foundation/db/idempotency.ts";
import { orRefusal } from "../foundation/db/group-commit.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import type { Caller } from "../foundation/http/guard.ts";
import type { VerificationEngine } from "./engine.ts";
import type { Evidence } from "./evidence.ts";
import { type EndedVerification, UnstoredVerifications, type VerificationWriter } from "./verification-writer.ts";
import type { Runner } from "./runner.ts";
import {
  type AgedRow,
  packEvidence,
  type VerificationExpiryStore,
  type VerificationRow,
  type VerificationStore,
} from "./store.ts";
import { BoundedMap } from "../foundation/base/bounded-map.ts";
import { DAY_MS } from "../foundation/base/days.ts";
import { pagesOf } from "../foundation/base/in-steps.ts";
import type { Tx } from "../foundation/db/open.ts";

export interface ChecksDeps {
  readonly store: VerificationStore;
  readonly idempotency: IdempotencyStore;
  readonly engines: ByMode<VerificationEngine>;
  readonly credits: ByMode<CreditHolds>;
  readonly writer: VerificationWriter;
  readonly runner: Runner;
}

export interface CheckRequest {
  readonly email: string;
  readonly source: string | null;
  readonly idempotencyKey: string | null;
}

/** How long the first attempt may take until a verification is stored as pending. */
export const STORE_AFTER_MS = 1_000;

const JOINED_MAX = 10_000;

/** The verifications of callers: request one, poll it, list them. A caller sees those of its account and mode. */
export class Checks {
  readonly #unstored: UnstoredVerifications;
  /** The verifications of other keys that requests of publishable keys have joined, which they may poll. */
  readonly #joined = new BoundedMap<string, true>(JOINED_MAX);

  constructor(
    private readonly runtime: Pick<Runtime, "db" | "clock">,
    private readonly deps: ChecksDeps,
  ) {
    this.#unstored = new UnstoredVerifications(deps);
  }

  /**
   * Creates a verification, or finds the one that the Idempotency-Key or a pending verification of the same address
   * stands for, and waits for it up to `waitMs`. It is durable when this returns. 402 `insufficient_credits`, 422
   * `idempotency_key_reused`.
   */
  async request(
    caller: Caller,
    requested: CheckRequest,
    waitMs: number,
    signal?: AbortSignal,
  ): Promise<VerificationRow> {
    const startedMs = this.runtime.clock.monotonicMs();
    const engine = this.deps.engines[caller.mode];
    const begun = engine.begin(requested.email);
    const final = await engine.verifyAtOnce(begun);
    const row = this.#rowFor(caller, requested, begun);
    const request = requestOf(caller, requested);
    const earlier = this.#findEarlier(row, request, final !== null);
    if (earlier !== undefined && caller.forms) this.#joined.set(`${caller.keyId} ${(await earlier.row).id}`, true);
    const stored = earlier ? await this.#join(earlier, request) : await this.#start(row, { request, final, waitMs });
    return this.#settle(stored, waitMs - (this.runtime.clock.monotonicMs() - startedMs), signal);
  }

  async poll(caller: Caller, id: string, waitMs: number, signal?: AbortSignal): Promise<VerificationRow> {
    return this.#settle(this.#find(caller, id), waitMs, signal);
  }

  /** The evidence of a verification, as far as it has been collected. 404 when it has expired. */
  async evidence(caller: Caller, id: string): Promise<Evidence> {
    const row = this.#find(caller, id);
    const stored = this.deps.store.findEvidence(id);
    if (stored !== undefined) return stored;
    const engine = this.deps.engines[row.mode];
    const begun = engine.begin(row.email);
    if (row.status === "pending") return begun;
    const { evidence } = engine.conclude(await engine.reproduce(begun), row.completedAtMs ?? row.createdAtMs);
    if (evidence.conclusion?.sub_status === row.subStatus) return evidence;
    const message = "The evidence of this verification has expired. Its result is stored for longer.";
    throw new AppError("not_found", { message });
  }

  /** Deletes a verification that has ended, with its evidence. 409 while it is pending. */
  async remove(caller: Caller, id: string): Promise<void> {
    this.#find(caller, id);
    const isPending = await this.runtime.db.commit(
      (tx) => !this.deps.store.remove(tx, id) && this.deps.store.find(id) !== undefined,
    );
    if (isPending)
      throw new AppError("conflict", { message: "The verification is pending. Delete it when it is completed." });
  }

  /**
   * What the request, or an earlier one for the same address, has begun. A verification that ends at once is never
   * pending. 422 when the Idempotency-Key began another.
   */
  #findEarlier(row: VerificationRow, request: IdempotentRequest | null, endsAtOnce: boolean): Earlier | undefined {
    const { store, idempotency } = this.deps;
    const earlierId = request === null ? null : idempotency.findResource(request);
    const before = earlierId === null ? undefined : store.find(earlierId);
    if (before !== undefined) return { row: before, isRepeated: true };
    const unstored = this.#unstored.find(row, request);
    if (unstored !== undefined)
      return { row: unstored.stored, isRepeated: request !== null && isSameRequest(unstored.request, request) };
    if (endsAtOnce) return undefined;
    const pending = store.findPending(row.accountId, row.mode, row.normalizedEmail);
    return pending && { row: pending, isRepeated: false };
  }

  /** Stores the Idempotency-Key of a request that joins the verification of another one. */
  async #join({ row, isRepeated }: Earlier, request: IdempotentRequest | null): Promise<VerificationRow> {
    const { idempotency, store, runner } = this.deps;
    const joined = await row;
    const current = joined.status === "pending" ? (store.find(joined.id) ?? joined) : joined;
    if (current.status === "pending") runner.submit(current);
    if (request === null || isRepeated) return current;
    const refusal = await this.runtime.db.commit((tx) =>
      orRefusal(() => {
        if (idempotency.findResource(request) === null) idempotency.save(tx, request, joined.id);
      }),
    );
    if (refusal instanceof AppError) throw refusal;
    return current;
  }

  /** Begins a verification, and waits until it is stored: completed where that takes less than a moment, else pending. */
  async #start(row: VerificationRow, { request, final, waitMs }: StartOptions): Promise<VerificationRow> {
    const unstored = this.#unstored.begin(row, request);
    if (final !== null) {
      await unstored.store(this.#outcomeOf(row, final));
      return unstored.stored;
    }
    this.deps.runner.submit(row, unstored);
    const storeAfterMs = Math.min(waitMs, STORE_AFTER_MS);
    const cancel = this.runtime.clock.after(storeAfterMs, () => void unstored.storePending());
    return unstored.stored.finally(cancel);
  }

  #outcomeOf(row: VerificationRow, final: Evidence): EndedVerification {
    const engine = this.deps.engines[row.mode];
    const { result, evidence } = engine.conclude(final, row.createdAtMs);
    const attempts = evidence.attempts.length;
    return {
      result,
      evidence: engine.isSimulated ? null : packEvidence(evidence),
      chargeable: true,
      // Without an attempt, no address is `deliverable`.
      provider: null,
      attempts,
      endedMs: row.createdAtMs,
    };
  }

  #rowFor({ accountId, keyId, mode }: Caller, { source }: CheckRequest, begun: Evidence): VerificationRow {
    const { engines, runner } = this.deps;
    return {
      id: newId(),
      accountId,
      keyId,
      mode,
      source,
      email: begun.address.submitted,
      normalizedEmail: begun.address.normalized_email,
      status: "pending",
      verdict: null,
      subStatus: null,
      result: null,
      createdAtMs: this.runtime.clock.nowMs(),
      completedAtMs: null,
      attempts: 0,
      dueAtMs: runner.dueAtMs(engines[mode].firstDelayMs(begun)),
    };
  }

  #find(caller: Caller, id: string): VerificationRow {
    const row = this.deps.store.find(id);
    if (row === undefined || row.accountId !== caller.accountId || row.mode !== caller.mode)
      throw new AppError("not_found", { message: "There is no such verification." });
    if (caller.forms && row.keyId !== caller.keyId && !this.#joined.has(`${caller.keyId} ${id}`))
      throw new AppError("not_found", { message: "There is no such verification." });
    return row;
  }

  /** Waits for a pending verification, and returns its current state. */
  async #settle(row: VerificationRow, waitMs: number, signal?: AbortSignal): Promise<VerificationRow> {
    const { store, runner } = this.deps;
    if (row.status === "completed") return row;
    const current = store.find(row.id) ?? row;
    if (current.status === "completed") return current;
    if (waitMs <= 0) return current;
    await runner.waitFor(row.id, waitMs, signal);
    return store.find(row.id) ?? row;
  }
}

interface StartOptions {
  readonly request: IdempotentRequest | null;
  /** The evidence of a verification that ends at once; null when an attempt has to be made. */
  readonly final: Evidence | null;
  readonly waitMs: number;
}

/** A verification that stands for a request. */
interface Earlier {
  readonly row: VerificationRow | Promise<VerificationRow>;
  /** The same request began it, so that its Idempotency-Key is stored. */
  readonly isRepeated: boolean;
}

const isSameRequest = (one: IdempotentRequest | null, other: IdempotentRequest): boolean =>
  one?.keyId === other.keyId && one.idempotencyKey === other.idempotencyKey;

const requestOf = ({ keyId }: Caller, { email, source, idempotencyKey }: CheckRequest): IdempotentRequest | null =>
  idempotencyKey === null ? null : { keyId, idempotencyKey, requestHash: sha256(JSON.stringify([email, source])) };

/** For how many days something is kept; null: for ever. */
export interface VerificationRetention {
  readonly verificationDays: number | null;
  readonly evidenceDays: number | null;
}

/** What a run removed. */
export interface ExpiredVerifications {
  readonly verifications: number;
  readonly evidence: number;
}

/** Rows examined, and removed, in one transaction: it holds the event loop for a few milliseconds. */
const ROWS_AT_ONCE = 100;
/** An Idempotency-Key is valid for a day, and is stored moments after the verification that it stands for. */
const SLACK_MS = 60 * 60 * 1000;

interface Walk {
  readonly days: number | null;
  readonly page: (after: number, limit: number) => AgedRow[];
  readonly remove: (tx: Tx, row: AgedRow) => void;
}

/** Removes verifications that have ended, and their evidence, when they expire. Pending ones are never touched. */
export class VerificationExpiry {
  constructor(
    private readonly runtime: Pick<Runtime, "db" | "clock">,
    private readonly store: VerificationExpiryStore,
    private readonly retention: VerificationRetention,
  ) {}

  /** Removes what has expired, in short transactions, until nothing is left or `isStopping`. The next run resumes. */
  async run(isStopping: () => boolean): Promise<ExpiredVerifications> {
    const { store } = this;
    const { verificationDays, evidenceDays } = this.retention;
    const evidence = await this.#remove(isStopping, {
      days: evidenceDays,
      page: (after, limit) => store.evidenceAfter(after, limit),
      remove: (tx, row) => store.removeEvidence(tx, row),
    });
    const verifications = await this.#remove(isStopping, {
      days: verificationDays,
      page: (after, limit) => store.verificationsAfter(after, limit),
      remove: (tx, row) => store.removeVerification(tx, row),
    });
    return { verifications, evidence };
  }

  /** Walks from the oldest row to the first page that nothing of is expired. */
  async #remove(isStopping: () => boolean, { days, page, remove }: Walk): Promise<number> {
    if (days === null) return 0;
    const nowMs = this.runtime.clock.nowMs();
    const beforeMs = nowMs - days * DAY_MS - SLACK_MS;
    let removed = 0;
    const read = (after: number): AgedRow[] => page(after, ROWS_AT_ONCE);
    for await (const rows of pagesOf({ start: 0, read, positionOf: ({ rowid }) => rowid }, { isStopping })) {
      const expired = rows.filter(({ endedAtMs }) => endedAtMs !== null && endedAtMs < beforeMs);
      if (expired.length > 0) {
        await this.runtime.db.commit((tx) => {
          for (const row of expired) remove(tx, row);
        });
        removed += expired.length;
      } else if (rows.some((row) => isYoung(row, nowMs))) break;
    }
    return removed;
  }
}

/** Ended, and not in the future: rows from a time when the clock was wrong do not hide older ones behind them. */
const isYoung = ({ endedAtMs }: AgedRow, nowMs: number): boolean => endedAtMs !== null && endedAtMs <= nowMs;
