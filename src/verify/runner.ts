import { type Clock, isoTime, wait } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Ledger } from "../billing/store.ts";
import type { Db, Tx } from "../db/open.ts";
import { PoolClosed } from "../probe/pool.ts";
import { conclude } from "./conclude.ts";
import { beginEvidence, type Engine } from "./engine.ts";
import { type Evidence, evidenceSchema, type PlannedRetry } from "./evidence.ts";
import type { VerificationRow, VerificationStore } from "./store.ts";
import { TEST_VERIFIED_AT, testEvidence } from "./test-keys.ts";

export interface RunnerDeps {
  readonly db: Db;
  readonly store: VerificationStore;
  readonly ledger: Ledger;
  readonly engine: Engine;
  readonly clock: Clock;
  readonly log: Log;
}

/** Checks under way at a time; the rest wait as rows. */
const RUNNING_MAX = 20_000;
/** Rows taken up at a time, so that a long backlog does not hold the event loop. */
const TAKEN_AT_ONCE_MAX = 500;
/** When nothing is due for long, the table is looked at anyway this often. */
const LOOK_AT_LEAST_EVERY_MS = 60_000;
/** After a write that failed (disk full, locked). */
const WRITE_AGAIN_MS = 2_000;
/** The running average of how long an attempt takes starts here, and moves by this share at each attempt. */
const FIRST_GUESS_MS = 1_500;
const AVERAGE_SHARE = 0.1;
/** Lower bound of `poll_after_ms` (contract §4). */
const POLL_AFTER_MS_MIN = 500;
const DRAIN_MS_MAX = 10_000;

/** When as much runs as may. */
const FULL_LOOK_AGAIN_MS = 1_000;
const BEFORE_ALL = { dueAtMs: -1, id: "" };

interface Running {
  readonly startedMs: number;
  readonly done: Promise<void>;
}

/**
 * Carries pending verifications to their end: now, at the time of their next retry, and after a restart. A row is the
 * only thing that makes a check exist; what is lost with the process is at most an attempt, which is then made again.
 */
export const createRunner = ({ db, store, ledger, engine, clock, log }: RunnerDeps) => {
  const running = new Map<string, Running>();
  const waiters = new Map<string, Set<() => void>>();
  let averageMs = FIRST_GUESS_MS;
  let cancelLook: (() => void) | null = null;
  let lookAtMs = Number.POSITIVE_INFINITY;
  /** Everything due up to here has been taken up. */
  let watermark = BEFORE_ALL;
  let stopped = false;

  const wake = (id: string): void => {
    for (const end of [...(waiters.get(id) ?? [])]) end();
  };

  /** Writes until it is written: a conclusion is not given up because the disk is full for a while. */
  const persist = async (id: string, write: (tx: Tx) => void): Promise<void> => {
    for (;;) {
      try {
        return await db.commit(write);
      } catch (error) {
        log.error("a verification could not be stored; trying again", { id, cause: error });
        if (stopped) throw error;
        await wait(clock, WRITE_AGAIN_MS);
      }
    }
  };

  const storedEvidence = (row: VerificationRow): Evidence | undefined => {
    const stored = store.findEvidence(row.id);
    return stored === undefined ? undefined : evidenceSchema.parse(JSON.parse(stored));
  };

  const gather = async (row: VerificationRow): Promise<Evidence> => {
    if (row.mode === "test") return testEvidence(row.email);
    let evidence = beginEvidence(row.email);
    try {
      evidence = storedEvidence(row) ?? evidence;
      return await engine.attempt(evidence);
    } catch (error) {
      if (error instanceof PoolClosed) throw error;
      log.error("a check failed", { id: row.id, cause: error });
      return engine.failed(evidence);
    }
  };

  const complete = (tx: Tx, row: VerificationRow, evidence: Evidence): void => {
    const nowMs = clock.nowMs();
    const isTest = row.mode === "test";
    const concluded = conclude(evidence, isTest ? TEST_VERIFIED_AT : isoTime(nowMs));
    const { verdict, sub_status: subStatus } = concluded.result;
    const attempts = evidence.attempts.length;
    const result = JSON.stringify(concluded.result);
    if (!store.complete(tx, row.id, { verdict, subStatus, result, completedAtMs: nowMs, attempts })) return;
    store.saveEvidence(tx, row.id, JSON.stringify(concluded.evidence));
    if (isTest) return;
    const move = { accountId: row.accountId, reference: row.id, atMs: nowMs };
    if (concluded.judgement.chargeable) ledger.settle(tx, move);
    else ledger.release(tx, move, subStatus);
  };

  const postpone = (tx: Tx, row: VerificationRow, evidence: Evidence, retry: PlannedRetry): void => {
    const later = { ...evidence, retries: [...evidence.retries, retry] };
    store.postpone(tx, row.id, Date.parse(retry.due_at), evidence.attempts.length);
    store.saveEvidence(tx, row.id, JSON.stringify(later));
  };

  const run = async (row: VerificationRow, startedMs: number): Promise<void> => {
    const evidence = await gather(row);
    averageMs += (clock.monotonicMs() - startedMs - averageMs) * AVERAGE_SHARE;
    const retry = row.mode === "live" ? engine.planRetry(evidence) : null;
    if (retry === null) {
      await persist(row.id, (tx) => complete(tx, row, evidence));
      log.debug("verified", { id: row.id, attempts: evidence.attempts.length });
      wake(row.id);
    } else {
      await persist(row.id, (tx) => postpone(tx, row, evidence, retry));
      lookAt(Date.parse(retry.due_at));
    }
  };

  const begin = (row: VerificationRow): void => {
    if (stopped || running.has(row.id)) return;
    const startedMs = clock.monotonicMs();
    const done = run(row, startedMs).catch((error) => {
      if (error instanceof PoolClosed) return;
      log.error("a check ended in a bug; it is tried again at the next start", { id: row.id, cause: error });
    });
    running.set(row.id, { startedMs, done });
    void done.finally(() => running.delete(row.id));
  };

  const look = (): void => {
    cancelLook = null;
    lookAtMs = Number.POSITIVE_INFINITY;
    if (stopped) return;
    const nowMs = clock.nowMs();
    if (watermark.dueAtMs > nowMs) watermark = BEFORE_ALL;
    const room = Math.min(TAKEN_AT_ONCE_MAX, RUNNING_MAX - running.size);
    if (room <= 0) return lookAt(nowMs + FULL_LOOK_AGAIN_MS);
    const due = store.due(watermark, nowMs, room);
    for (const row of due) begin(row);
    const last = due.at(-1);
    if (last?.dueAtMs != null) watermark = { dueAtMs: last.dueAtMs, id: last.id };
    if (due.length === room) return lookAt(nowMs);
    lookAt(Math.min(store.nextDueMs(nowMs) ?? Number.POSITIVE_INFINITY, nowMs + LOOK_AT_LEAST_EVERY_MS));
  };

  const lookAt = (atMs: number): void => {
    if (stopped || atMs >= lookAtMs) return;
    cancelLook?.();
    lookAtMs = atMs;
    cancelLook = clock.after(atMs - clock.nowMs(), look);
  };

  return {
    /** Takes up everything that an earlier process left pending, and from then on whatever is due. */
    start: (): void => lookAt(clock.nowMs()),

    /** Takes up a new row: at once, or at its time. */
    take(row: VerificationRow): void {
      if (row.dueAtMs !== null && row.dueAtMs > clock.nowMs()) lookAt(row.dueAtMs);
      else if (running.size < RUNNING_MAX) begin(row);
      else watermark = BEFORE_ALL;
    },

    /** Resolves when the verification has ended, after `waitMs`, when the caller is gone, or when the service stops. */
    waitFor(id: string, waitMs: number, signal?: AbortSignal): Promise<void> {
      if (stopped) return Promise.resolve();
      return new Promise((resolve) => {
        const all = waiters.get(id) ?? new Set();
        waiters.set(id, all);
        const end = () => {
          cancelTimer();
          signal?.removeEventListener("abort", end);
          all.delete(end);
          if (all.size === 0 && waiters.get(id) === all) waiters.delete(id);
          resolve();
        };
        const cancelTimer = clock.after(waitMs, end);
        signal?.addEventListener("abort", end);
        all.add(end);
      });
    },

    /** An honest guess of how long a pending verification will take, in milliseconds. */
    pollAfterMs(row: VerificationRow): number {
      const own = running.get(row.id);
      const leftMs =
        own === undefined
          ? Math.max(0, (row.dueAtMs ?? 0) - clock.nowMs()) + (row.mode === "test" ? 0 : averageMs)
          : averageMs - (clock.monotonicMs() - own.startedMs);
      return Math.max(POLL_AFTER_MS_MIN, Math.ceil(leftMs));
    },

    /** Checks under way. */
    running: (): number => running.size,

    /** Takes up nothing more, lets every waiting request go, and gives the checks under way a moment to end. */
    async stop(): Promise<void> {
      stopped = true;
      cancelLook?.();
      for (const id of [...waiters.keys()]) wake(id);
      const ends = [...running.values()].map(({ done }) => done);
      await Promise.race([Promise.all(ends), wait(clock, DRAIN_MS_MAX)]);
    },
  };
};

export type Runner = ReturnType<typeof createRunner>;
