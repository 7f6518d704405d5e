import { isoTime } from "../base/clock.ts";
import { dayOfTime } from "../base/days.ts";
import type { ByMode } from "../base/secrets.ts";
import { RepeatedError } from "../base/repeated-error.ts";
import { wait } from "../base/wait.ts";
import type { CreditHolds } from "../billing/store.ts";
import type { Tx } from "../db/open.ts";
import type { Runtime } from "../db/runtime.ts";
import { PoolClosed } from "../probe/pool.ts";
import { UsageStore } from "../usage/usage-store.ts";
import type { AttemptedVerification, VerificationEngine } from "./engine.ts";
import type { Evidence } from "./evidence.ts";
import { INTERNAL_ERROR, type VerificationResult } from "./result.ts";
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

/** SQLite errors that are due to our statements, not to the disk: the same write would fail every time. */
const BUGS = /^SQLITE_(CONSTRAINT|ERROR|MISMATCH|MISUSE|RANGE|TOOBIG)/;

/** The disk is full, the file locked or read-only: the same write may succeed later. */
export const isStorageTrouble = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  typeof error.code === "string" &&
  error.code.startsWith("SQLITE_") &&
  !BUGS.test(error.code);

/** Makes attempts at pending verifications and stores what they come to. */
export class VerificationAttempts {
  readonly #runtime: Omit<Runtime, "random">;
  readonly #deps: AttemptsDeps;
  readonly #writeFailures: RepeatedError;
  readonly #usage: UsageStore;

  constructor(runtime: Omit<Runtime, "random">, deps: AttemptsDeps) {
    this.#runtime = runtime;
    this.#writeFailures = new RepeatedError("verification could not be stored, retrying", runtime);
    this.#deps = deps;
    this.#usage = new UsageStore(runtime.db);
  }

  /**
   * Makes one attempt at a pending verification and stores in one transaction either the result with its evidence and
   * the end of the hold, or the time of the next attempt. Returns that time; null when the verification has ended.
   *
   * Rejects with `PoolClosed` when the service stops before the mail host was probed, and for bugs; the row is then
   * pending as before. A verification that cannot be concluded because of a bug ends as `internal_error`.
   */
  async attempt(row: VerificationRow): Promise<number | null> {
    const { log } = this.#runtime;
    const engine = this.#deps.engines[row.mode];
    const attempted = await this.#verify(engine, row);
    try {
      return await this.#store(row, attempted);
    } catch (error) {
      if (this.#deps.isStopping()) throw error;
      log.error("verification could not be concluded", { id: row.id, error });
      return await this.#store(row, engine.fail(engine.begin(row.email)));
    }
  }

  /** Ends a verification that repeatedly met a bug: `internal_error`, without evidence; its credit is released. */
  async giveUp(row: VerificationRow): Promise<null> {
    await this.#persist(row.id, (tx) => {
      const nowMs = this.#runtime.clock.nowMs();
      const { email, normalizedEmail: normalized_email } = row;
      const result = { email, normalized_email, ...INTERNAL_ERROR, verified_at: isoTime(nowMs) };
      if (!this.#complete(tx, row, { result, attempts: row.attempts, nowMs })) return;
      this.#deps.credits[row.mode].release(tx, moveOf(row, nowMs), result.sub_status);
      this.#count(tx, row, { result, nowMs, credits: 0 });
    });
    return null;
  }

  async #verify(engine: VerificationEngine, row: VerificationRow): Promise<AttemptedVerification> {
    let before = engine.begin(row.email);
    try {
      before = this.#deps.store.findEvidence(row.id) ?? before;
      const onBehalfOf = { account: row.accountId, priority: "realtime" } as const;
      return await engine.verify(before, { onBehalfOf, duringOutage: "retry" });
    } catch (error) {
      if (error instanceof PoolClosed) throw error;
      this.#runtime.log.error("verification failed", { id: row.id, error });
      return engine.fail(before);
    }
  }

  async #store(row: VerificationRow, attempted: AttemptedVerification): Promise<number | null> {
    const dueAtMs = attempted.kind === "retry" ? this.#deps.dueNowMs() + waitMsOf(attempted.retry) : null;
    await this.#persist(row.id, (tx) => {
      if (attempted.kind === "concluded") this.#conclude(tx, row, attempted);
      else if (dueAtMs !== null) this.#postpone(tx, row, { evidence: attempted.evidence, dueAtMs });
    });
    return dueAtMs;
  }

  #conclude(tx: Tx, row: VerificationRow, { result, evidence, chargeable }: ConcludedVerification): void {
    const { store, credits } = this.#deps;
    const nowMs = this.#runtime.clock.nowMs();
    if (!this.#complete(tx, row, { result, attempts: evidence.attempts.length, nowMs })) return;
    store.saveEvidence(tx, row.id, evidence);
    const charged = chargeable ? credits[row.mode].settle(tx, moveOf(row, nowMs)) : 0;
    if (!chargeable) credits[row.mode].release(tx, moveOf(row, nowMs), result.sub_status);
    this.#count(tx, row, { result, nowMs, credits: charged });
  }

  /** False when the verification had ended already. */
  #complete(tx: Tx, row: VerificationRow, { result, attempts, nowMs }: Completed): boolean {
    const { verdict, sub_status: subStatus } = result;
    const end = { verdict, subStatus, result: JSON.stringify(result), completedAtMs: nowMs, attempts };
    return this.#deps.store.complete(tx, row.id, end);
  }

  #count(tx: Tx, { accountId, keyId, mode }: VerificationRow, { result, nowMs, credits }: Counted): void {
    const { verdict, sub_status: subStatus } = result;
    const counted = { mode, source: "single", verdict, subStatus } as const;
    this.#usage.add(tx, { ...counted, accountId, keyId, day: dayOfTime(nowMs), verifications: 1, credits });
    this.#runtime.db.note(tx, { kind: "verification", ...counted });
  }

  #postpone(tx: Tx, row: VerificationRow, { evidence, dueAtMs }: Postponed): void {
    // An attempt that ended at the DNS is not in the evidence, but was made.
    const attempts = Math.max(evidence.attempts.length, evidence.retries.length);
    if (!this.#deps.store.postpone(tx, row.id, dueAtMs, attempts)) return;
    this.#deps.store.saveEvidence(tx, row.id, evidence);
  }

  /** Repeats the write until it succeeds: a result is not lost because the disk is full for a while. */
  async #persist(id: string, write: (tx: Tx) => void): Promise<void> {
    const { db, clock } = this.#runtime;
    for (;;) {
      try {
        return await db.commit(write);
      } catch (error) {
        if (this.#deps.isStopping() || !isStorageTrouble(error)) throw error;
        this.#writeFailures.log({ id, error });
        await wait(clock, WRITE_AGAIN_MS);
      }
    }
  }
}

interface Completed {
  readonly result: VerificationResult;
  readonly attempts: number;
  readonly nowMs: number;
}

interface Counted extends Pick<Completed, "result" | "nowMs"> {
  readonly credits: number;
}

interface Postponed {
  readonly evidence: Evidence;
  readonly dueAtMs: number;
}

const moveOf = ({ id, accountId }: VerificationRow, atMs: number) => ({ accountId, reference: id, atMs });
