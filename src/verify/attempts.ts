import { isDatabaseState } from "../foundation/base/errors.ts";
import { isoTime } from "../foundation/base/clock.ts";
import type { ByMode } from "../foundation/base/secrets.ts";
import { RepeatedError } from "../foundation/base/log.ts";
import { wait } from "../foundation/base/wait.ts";
import type { CreditHolds } from "../accounts/billing/store.ts";
import type { Tx } from "../foundation/db/open.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import { PoolClosed } from "./smtp/pool.ts";
import type { AttemptedVerification, VerificationEngine } from "./engine.ts";
import type { Evidence } from "./evidence.ts";
import { INTERNAL_ERROR } from "./result.ts";
import { type ResultToStore, ResultWriter, type UnstoredVerification } from "./verification-writer.ts";
import { waitMsOf } from "./retry.ts";
import type { VerificationRow, VerificationStore } from "./store.ts";
import type { ConcludedVerification } from "./verdict.ts";

export interface AttemptsDeps {
  readonly store: VerificationStore;
  readonly engines: ByMode<VerificationEngine>;
  readonly credits: ByMode<CreditHolds>;
  /** The time by which attempts are due: wall time without its steps. */
  readonly dueNowMs: () => number;
  /** Whether the service is stopping: then a failed write is not repeated, because the row says what is left to do. */
  readonly isStopping: () => boolean;
}

/** Wait after a write that failed (disk full, locked). */
export const WRITE_AGAIN_MS = 2_000;

/** Makes attempts at pending verifications and stores what they come to. */
export class VerificationAttempts {
  readonly #writeFailures: RepeatedError;
  readonly #results: ResultWriter;

  constructor(
    private readonly runtime: Omit<Runtime, "random">,
    private readonly deps: AttemptsDeps,
  ) {
    this.#writeFailures = new RepeatedError("verification could not be stored, retrying", runtime);
    this.#results = new ResultWriter(runtime, deps.store, deps.credits);
  }

  /**
   * Makes one attempt at a pending verification and stores in one transaction either the result with its evidence and
   * the end of the hold, or the time of the next attempt. Returns that time; null when the verification has ended. An
   * `unstored` verification is stored by the same transaction.
   *
   * Rejects with `PoolClosed` when the service stops before the mail host was probed, and for bugs; the row is then
   * pending as before. A verification that cannot be concluded because of a bug ends as `internal_error`.
   */
  async attempt(row: VerificationRow, unstored: UnstoredVerification | null = null): Promise<number | null> {
    const { log } = this.runtime;
    const engine = this.deps.engines[row.mode];
    const attempted = await this.#verify(engine, row, unstored);
    try {
      return await this.#store(row, attempted, unstored);
    } catch (error) {
      if (this.deps.isStopping() || unstored !== null) throw error;
      log.error("verification could not be concluded", { id: row.id, error });
      return await this.#store(row, engine.fail(engine.begin(row.email)), null);
    }
  }

  /** Ends a verification that repeatedly met a bug: `internal_error`, without evidence; its credit is released. */
  async giveUp(row: VerificationRow): Promise<null> {
    await this.#persist(row.id, (tx) => {
      const nowMs = this.runtime.clock.nowMs();
      const { email, normalizedEmail: normalized_email, attempts } = row;
      const result = { email, normalized_email, ...INTERNAL_ERROR, verified_at: isoTime(nowMs) };
      this.#results.end(tx, row, { result, evidence: null, chargeable: false, attempts, nowMs });
    });
    return null;
  }

  async #verify(
    engine: VerificationEngine,
    row: VerificationRow,
    unstored: UnstoredVerification | null,
  ): Promise<AttemptedVerification> {
    let before = engine.begin(row.email);
    try {
      if (unstored === null) before = this.deps.store.findEvidence(row.id) ?? before;
      const onBehalfOf = { account: row.accountId, priority: "realtime" } as const;
      return await engine.verify(before, { onBehalfOf, duringOutage: "retry" });
    } catch (error) {
      if (error instanceof PoolClosed) throw error;
      this.runtime.log.error("verification failed", { id: row.id, error });
      return engine.fail(before);
    }
  }

  async #store(
    row: VerificationRow,
    attempted: AttemptedVerification,
    unstored: UnstoredVerification | null,
  ): Promise<number | null> {
    const dueAtMs = attempted.kind === "retry" ? this.deps.dueNowMs() + waitMsOf(attempted.retry) : null;
    const isStored = unstored !== null && (await unstored.store((tx) => this.#insert(tx, row, attempted, dueAtMs)));
    if (isStored) return dueAtMs;
    await this.#persist(row.id, (tx) => {
      if (attempted.kind === "concluded") this.#results.end(tx, row, this.#resultOf(attempted));
      else if (dueAtMs !== null) this.#postpone(tx, row, { evidence: attempted.evidence, dueAtMs });
    });
    return dueAtMs;
  }

  /** Stores a new verification with what its first attempt came to. */
  #insert(tx: Tx, row: VerificationRow, attempted: AttemptedVerification, dueAtMs: number | null): VerificationRow {
    const { store } = this.deps;
    if (attempted.kind === "concluded") return this.#results.insert(tx, row, this.#resultOf(attempted));
    const { evidence } = attempted;
    const pending = this.#results.insertPending(tx, { ...row, dueAtMs, attempts: attemptsIn(evidence) });
    store.saveEvidence(tx, row.id, evidence);
    return pending;
  }

  #resultOf({ result, evidence, chargeable }: ConcludedVerification): ResultToStore {
    const nowMs = this.runtime.clock.nowMs();
    return { result, evidence, chargeable, attempts: evidence.attempts.length, nowMs };
  }

  #postpone(tx: Tx, row: VerificationRow, { evidence, dueAtMs }: Postponed): void {
    if (!this.deps.store.postpone(tx, row.id, dueAtMs, attemptsIn(evidence))) return;
    this.deps.store.saveEvidence(tx, row.id, evidence);
  }

  /** Repeats the write until it succeeds: a result is not lost because the disk is full for a while. */
  async #persist(id: string, write: (tx: Tx) => void): Promise<void> {
    const { db, clock } = this.runtime;
    for (;;) {
      try {
        return await db.commit(write);
      } catch (error) {
        if (this.deps.isStopping() || !isDatabaseState(error)) throw error;
        this.#writeFailures.log({ id, error });
        await wait(clock, WRITE_AGAIN_MS);
      }
    }
  }
}

interface Postponed {
  readonly evidence: Evidence;
  readonly dueAtMs: number;
}

/** Attempts that were made: one that ended at the DNS is not in the evidence. */
const attemptsIn = ({ attempts, retries }: Evidence): number => Math.max(attempts.length, retries.length);
