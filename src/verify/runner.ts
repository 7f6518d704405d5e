import { type Clock, steadyTime, isoTime } from "../foundation/base/clock.ts";
import { Recurring } from "../foundation/base/recurring.ts";
import { drain, wait } from "../foundation/base/wait.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import { PoolClosed } from "./smtp/pool.ts";
import { waitMsOf } from "./verdict.ts";
import type { VerificationRow, VerificationStore } from "./store.ts";
import type { VerificationOutcome, UnstoredVerification, VerificationWriter } from "./verification-writer.ts";
import { isDatabaseState } from "../foundation/base/errors.ts";
import type { ByMode } from "../foundation/base/secrets.ts";
import { RepeatedError } from "../foundation/base/log.ts";
import type { AttemptOrder, Attempts, MadeAttempt } from "./attempts.ts";
import type { VerificationEngine } from "./engine.ts";
import { INTERNAL_ERROR } from "./result.ts";

export interface RunnerDeps extends Omit<AttemptsDeps, "dueNowMs" | "isStopping"> {
  /** Verifications in progress at a time; further ones wait in the database. */
  readonly runningMax?: number;
}

const RUNNING_MAX = 20_000;
/** Rows claimed at a time, so that a long backlog does not block the event loop. */
export const CLAIMED_AT_ONCE_MAX = 500;
/** The table is read at least this often. */
export const POLL_MS_MAX = 60_000;
/** After a read that failed. */
const POLL_AGAIN_MS = 2_000;
/** While as many verifications run as may. */
const FULL_POLL_MS = 1_000;
/** The moving average of an attempt's duration starts here, and moves by this share at each attempt. */
const INITIAL_ATTEMPT_MS = 1_500;
const AVERAGE_SHARE = 0.1;
/** Lower bound of `poll_after_ms` (contract §4). */
const POLL_AFTER_MS_MIN = 500;
const DRAIN_MS_MAX = 6_000;
const FIRST_ROW = { dueAtMs: -1, id: "" };

interface Running {
  readonly startedMs: number;
  readonly unstored: UnstoredVerification | null;
  readonly done: Promise<void>;
}

/**
 * Runs pending verifications: new ones, retries when they are due, and what an earlier process left. The row is the only
 * state that matters; with the process, at most an attempt is lost, which is then made again.
 */
export class Runner {
  readonly #runningMax: number;
  readonly #attempts: VerificationAttempts;
  readonly #backoff: BugBackoff;
  readonly #dueNowMs: () => number;
  readonly #running = new Map<string, Running>();
  readonly #waiters = new Map<string, Set<() => void>>();
  #averageMs = INITIAL_ATTEMPT_MS;
  readonly #polling: Recurring;
  /** Whose wait after a bug is over. */
  readonly #resumed = new Set<string>();
  /** Every row that is due up to here has been claimed. */
  #watermark = FIRST_ROW;
  #stopped: boolean = false;

  constructor(
    private readonly runtime: Omit<Runtime, "random">,
    private readonly deps: RunnerDeps,
  ) {
    this.#runningMax = deps.runningMax ?? RUNNING_MAX;
    this.#dueNowMs = steadyTime(runtime.clock);
    const isStopping = () => this.#stopped;
    this.#attempts = new VerificationAttempts(runtime, { ...deps, dueNowMs: this.#dueNowMs, isStopping });
    this.#backoff = new BugBackoff(runtime.clock);
    const name = "reading of pending verifications";
    this.#polling = new Recurring(runtime, { name, run: () => this.#poll(), retryMs: POLL_AGAIN_MS });
  }

  /**
   * Claims everything that an earlier process left pending, and from then on whatever is due. A verification that is due later
   * than any retry was planned by a clock that has been set back since: it is due now.
   */
  start(): void {
    const nowMs = this.#dueNowMs();
    this.deps.store.dueAtLatest(nowMs + this.deps.engines.live.longestWaitMs, nowMs);
    this.#pollAt(nowMs);
  }

  /** Runs a new row: at once, or when it is due. One that is not stored is stored as pending unless it runs at once. */
  submit(row: VerificationRow, unstored: UnstoredVerification | null = null): void {
    const nowMs = this.#dueNowMs();
    const isDue = row.dueAtMs === null || row.dueAtMs <= nowMs;
    const hasRoom = this.#running.size < this.#runningMax;
    if (isDue && hasRoom && this.#begin(row, unstored)) return;
    void unstored?.storePending();
    if (!isDue) this.#noteDue(row.dueAtMs);
    else if (!hasRoom) {
      this.#watermark = FIRST_ROW;
      this.#pollAt(nowMs + FULL_POLL_MS);
    }
  }

  /** Resolves when the verification has ended, after `waitMs`, when the caller disconnects, or when the service stops. */
  waitFor(id: string, waitMs: number, signal?: AbortSignal): Promise<void> {
    if (this.#stopped || signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const waiters = this.#waiters.get(id) ?? new Set();
      this.#waiters.set(id, waiters);
      const end = () => {
        cancelTimer();
        signal?.removeEventListener("abort", end);
        waiters.delete(end);
        if (waiters.size === 0 && this.#waiters.get(id) === waiters) this.#waiters.delete(id);
        resolve();
      };
      const cancelTimer = this.runtime.clock.after(waitMs, end);
      signal?.addEventListener("abort", end);
      waiters.add(end);
    });
  }

  /** An estimate of how long a pending verification will take, in milliseconds. */
  pollAfterMs(row: VerificationRow): number {
    const startedMs = this.#running.get(row.id)?.startedMs;
    const averageMs = this.deps.engines[row.mode].isSimulated ? 0 : this.#averageMs;
    const leftMs =
      startedMs === undefined
        ? Math.max(0, (row.dueAtMs ?? 0) - this.#dueNowMs()) + averageMs
        : averageMs - (this.runtime.clock.monotonicMs() - startedMs);
    return Math.max(POLL_AFTER_MS_MIN, Math.ceil(leftMs));
  }

  /** The `dueAtMs` of a row that is due after this delay. */
  dueAtMs(afterMs: number): number {
    return this.#dueNowMs() + afterMs;
  }

  /** Verifications in progress. */
  running(): number {
    return this.#running.size;
  }

  /** Recent average duration of an attempt, in milliseconds. */
  attemptMs(): number {
    return this.#averageMs;
  }

  /** Claims nothing more, releases every waiting request, and gives the verifications in progress a moment to end. */
  async stop(): Promise<void> {
    this.#stopped = true;
    void this.#polling.stop();
    this.#backoff.stop();
    for (const { unstored } of this.#running.values()) void unstored?.storePending();
    for (const id of [...this.#waiters.keys()]) this.#wake(id);
    const ends = [...this.#running.values()].map(({ done }) => done);
    await drain(this.runtime.clock, DRAIN_MS_MAX, ends);
  }

  /** False when the row may not run now: it runs already, waits after a bug, or the service stops. */
  #begin(row: VerificationRow, unstored: UnstoredVerification | null = null): boolean {
    if (this.#stopped || this.#running.has(row.id) || this.#backoff.isWaiting(row.id)) return false;
    const startedMs = this.runtime.clock.monotonicMs();
    // Entered first: a verification that needs no network may end in the same turn.
    const { promise: done, resolve } = Promise.withResolvers<void>();
    this.#running.set(row.id, { startedMs, unstored, done });
    void this.#run(row, startedMs, unstored).then(resolve);
    return true;
  }

  async #run(row: VerificationRow, startedMs: number, unstored: UnstoredVerification | null): Promise<void> {
    try {
      const isGivenUp = this.#backoff.isExhausted(row.id);
      const dueAtMs = await (isGivenUp ? this.#attempts.giveUp(row) : this.#attempts.attempt(row, unstored));
      this.#backoff.clear(row.id);
      if (!this.deps.engines[row.mode].isSimulated)
        this.#averageMs += (this.runtime.clock.monotonicMs() - startedMs - this.#averageMs) * AVERAGE_SHARE;
      if (dueAtMs === null) this.#wake(row.id);
      else this.#noteDue(dueAtMs);
    } catch (error) {
      // Where it cannot be stored, its request is refused and nothing is left to run.
      if (unstored !== null && !(await unstored.storePending())) return;
      if (error instanceof PoolClosed || this.#stopped) return;
      const waitMs = this.#backoff.schedule(row.id, () => this.#resumeSoon(row.id));
      this.runtime.log.error("verification ended in a bug, retrying", { id: row.id, wait_ms: waitMs, error });
    } finally {
      this.#running.delete(row.id);
    }
  }

  #resumeSoon(id: string): void {
    this.#resumed.add(id);
    this.#polling.within(0);
  }

  /** After a bug: the row as it is now. */
  #resume(id: string): void {
    const row = this.deps.store.find(id);
    this.#resumed.delete(id);
    if (row?.status === "pending") this.#begin(row);
    else this.#backoff.clear(id);
  }

  #wake(id: string): void {
    for (const end of [...(this.#waiters.get(id) ?? [])]) end();
  }

  /** Returns in how many milliseconds to poll again. */
  #poll(): number {
    for (const id of [...this.#resumed]) this.#resume(id);
    return this.#claimDue(this.#dueNowMs()) - this.#dueNowMs();
  }

  /** Begins what is due, up to the limit, and returns when to poll again. */
  #claimDue(nowMs: number): number {
    const due = this.deps.store.due(this.#watermark, nowMs, CLAIMED_AT_ONCE_MAX);
    for (const row of due) {
      if (this.#running.size >= this.#runningMax && !this.#running.has(row.id)) return nowMs + FULL_POLL_MS;
      this.#begin(row);
      this.#watermark = { dueAtMs: row.dueAtMs ?? this.#watermark.dueAtMs, id: row.id };
    }
    if (due.length === CLAIMED_AT_ONCE_MAX) return nowMs;
    return Math.min(this.deps.store.nextDueMs(nowMs) ?? Number.POSITIVE_INFINITY, nowMs + POLL_MS_MAX);
  }

  #pollAt(atMs: number): void {
    this.#polling.within(atMs - this.#dueNowMs());
  }

  /** A row is due then: the next poll must not come later, nor start behind it. */
  #noteDue(dueAtMs: number): void {
    if (dueAtMs <= this.#watermark.dueAtMs) this.#watermark = FIRST_ROW;
    this.#pollAt(dueAtMs);
  }
}

export interface AttemptsDeps {
  readonly store: VerificationStore;
  readonly engines: ByMode<VerificationEngine>;
  readonly attempts: ByMode<Attempts>;
  readonly writer: VerificationWriter;
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

  constructor(
    private readonly runtime: Omit<Runtime, "random">,
    private readonly deps: AttemptsDeps,
  ) {
    this.#writeFailures = new RepeatedError("verification could not be stored, retrying", runtime);
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
    const order: AttemptOrder = {
      submitted: row.email,
      isCell: false,
      before: null,
      accountId: row.accountId,
      onBehalfOf: { account: row.accountId, priority: "realtime" },
      duringOutage: "retry",
    };
    const made = await this.#make(row, order, unstored);
    try {
      return await this.#store(row, made, unstored);
    } catch (error) {
      if (this.deps.isStopping() || unstored !== null) throw error;
      this.runtime.log.error("verification could not be concluded", { id: row.id, error });
      return await this.#store(row, this.deps.attempts[row.mode].fail(order), null);
    }
  }

  /** Ends a verification that repeatedly met a bug: `internal_error`, without evidence; its credit is released. */
  async giveUp(row: VerificationRow): Promise<null> {
    await this.#persist(row.id, () => {
      const nowMs = this.runtime.clock.nowMs();
      const { email, normalizedEmail: normalized_email, attempts } = row;
      const result = { email, normalized_email, ...INTERNAL_ERROR, verified_at: isoTime(nowMs) };
      const ended = { result, evidence: null, chargeable: false, provider: null, attempts, endedMs: nowMs };
      return this.deps.writer.update(row, ended);
    });
    return null;
  }

  async #make(row: VerificationRow, first: AttemptOrder, unstored: UnstoredVerification | null): Promise<MadeAttempt> {
    const attempts = this.deps.attempts[row.mode];
    let order = first;
    try {
      if (unstored === null) order = { ...first, before: this.deps.store.findPackedEvidence(row.id) ?? null };
      return await attempts.make(order);
    } catch (error) {
      if (error instanceof PoolClosed) throw error;
      this.runtime.log.error("verification failed", { id: row.id, error });
      return attempts.fail(order);
    }
  }

  async #store(row: VerificationRow, made: MadeAttempt, unstored: UnstoredVerification | null): Promise<number | null> {
    const outcome = this.#outcomeOf(made);
    const isStored = unstored !== null && (await unstored.store(outcome));
    if (!isStored) await this.#persist(row.id, () => this.deps.writer.update(row, outcome));
    return "dueAtMs" in outcome ? outcome.dueAtMs : null;
  }

  #outcomeOf(made: MadeAttempt): VerificationOutcome {
    if (made.kind === "repeat") throw new Error("an attempt at a single verification is not repeated");
    const { attempts } = made;
    if (made.kind === "retry")
      return { evidence: made.evidence, attempts, dueAtMs: this.deps.dueNowMs() + waitMsOf(made.retry) };
    const { result, evidence, chargeable, provider } = made;
    return { result, evidence, chargeable, provider, attempts, endedMs: null };
  }

  /** Repeats the write until it succeeds: a result is not lost because the disk is full for a while. */
  async #persist(id: string, write: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        return await write();
      } catch (error) {
        if (this.deps.isStopping() || !isDatabaseState(error)) throw error;
        this.#writeFailures.log({ id, error });
        await wait(this.runtime.clock, WRITE_AGAIN_MS);
      }
    }
  }
}

/** Waits after a bug; when it occurs once more often, the check is given up. */
const BUG_WAITS_MS: readonly number[] = [5_000, 30_000, 120_000];
/** A check that cannot even be given up is tried again this often. */
const LAST_WAIT_MS = 600_000;

interface BugCount {
  readonly times: number;
  /** Null once the wait is over. */
  readonly cancel: (() => void) | null;
}

/** Which checks ended in a bug, how often, and when each is tried again. In memory: a restart tries them all again. */
export class BugBackoff {
  readonly #counts = new Map<string, BugCount>();

  constructor(private readonly clock: Clock) {}

  /** Calls `again` after a wait that grows each time, and returns that wait. */
  schedule(id: string, again: () => void): number {
    const times = (this.#counts.get(id)?.times ?? 0) + 1;
    const waitMs = BUG_WAITS_MS[times - 1] ?? LAST_WAIT_MS;
    const cancel = this.clock.after(waitMs, () => {
      this.#counts.set(id, { times, cancel: null });
      again();
    });
    this.#counts.set(id, { times, cancel });
    return waitMs;
  }

  isWaiting(id: string): boolean {
    return (this.#counts.get(id)?.cancel ?? null) !== null;
  }

  /** The waits are used up: the check is to be given up. */
  isExhausted(id: string): boolean {
    return (this.#counts.get(id)?.times ?? 0) >= BUG_WAITS_MS.length;
  }

  clear(id: string): void {
    this.#counts.delete(id);
  }

  stop(): void {
    for (const { cancel } of this.#counts.values()) cancel?.();
    this.#counts.clear();
  }
}
