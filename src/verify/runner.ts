import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Ledger } from "../billing/store.ts";
import type { Db } from "../db/open.ts";
import { PoolClosed } from "../probe/pool.ts";
import { steadyTime } from "../base/clock.ts";
import type { Outages } from "../probe/outages.ts";
import { createCarryOut } from "./carry-out.ts";
import type { VerificationEngine } from "./engine.ts";
import { createSetbacks } from "./setbacks.ts";
import type { VerificationRow, VerificationStore } from "./store.ts";

export interface RunnerDeps {
  readonly db: Db;
  readonly store: VerificationStore;
  readonly ledger: Ledger;
  readonly engine: VerificationEngine;
  readonly outages: Pick<Outages, "judge">;
  readonly clock: Clock;
  readonly log: Log;
  /** Checks under way at a time; the rest wait as rows. */
  readonly runningMax?: number;
}

const RUNNING_MAX = 20_000;
/** Rows taken up at a time, so that a long backlog does not hold the event loop. */
export const TAKEN_AT_ONCE_MAX = 500;
/** When nothing is due for long, the table is looked at anyway this often. */
export const LOOK_AT_LEAST_EVERY_MS = 60_000;
/** When as much runs as may. */
const FULL_LOOK_AGAIN_MS = 1_000;
/** The running average of how long an attempt takes starts here, and moves by this share at each attempt. */
const FIRST_GUESS_MS = 1_500;
const AVERAGE_SHARE = 0.1;
/** Lower bound of `poll_after_ms` (contract §4). */
const POLL_AFTER_MS_MIN = 500;
const DRAIN_MS_MAX = 6_000;
const BEFORE_ALL = { dueAtMs: -1, id: "" };

interface Running {
  readonly startedMs: number;
  readonly done: Promise<void>;
}

/**
 * Carries pending verifications to their end: now, at the time of their next retry, and after a restart. A row is the
 * only thing that makes a check exist; what is lost with the process is at most an attempt, which is then made again.
 */
export const createRunner = (deps: RunnerDeps) => {
  const { store, clock, log, runningMax = RUNNING_MAX } = deps;
  const running = new Map<string, Running>();
  const waiters = new Map<string, Set<() => void>>();
  let averageMs = FIRST_GUESS_MS;
  let cancelLook: (() => void) | null = null;
  let lookAtMs = Number.POSITIVE_INFINITY;
  /** Everything due up to here has been taken up. */
  let watermark = BEFORE_ALL;
  let stopped = false;
  const dueNowMs = steadyTime(clock);
  const carryOut = createCarryOut({ ...deps, dueNowMs, isStopping: () => stopped });
  const setbacks = createSetbacks(clock);

  const wake = (id: string): void => {
    for (const end of [...(waiters.get(id) ?? [])]) end();
  };

  const run = async (row: VerificationRow, startedMs: number): Promise<void> => {
    try {
      const dueAtMs = await (setbacks.isUsedUp(row.id) ? carryOut.giveUp(row) : carryOut.attempt(row));
      setbacks.forget(row.id);
      if (row.mode === "live") averageMs += (clock.monotonicMs() - startedMs - averageMs) * AVERAGE_SHARE;
      if (dueAtMs === null) wake(row.id);
      else noteDue(dueAtMs);
    } catch (error) {
      if (error instanceof PoolClosed || stopped) return;
      const waitMs = setbacks.note(row.id, () => resume(row.id));
      log.error("a check ended in a bug; it is tried again", { id: row.id, wait_ms: waitMs, cause: error });
    } finally {
      running.delete(row.id);
    }
  };

  /** After a bug: the row as it is now. */
  const resume = (id: string): void => {
    const row = store.find(id);
    if (row?.status === "pending") begin(row);
    else setbacks.forget(id);
  };

  const begin = (row: VerificationRow): void => {
    if (stopped || running.has(row.id) || setbacks.isWaiting(row.id)) return;
    const startedMs = clock.monotonicMs();
    // Entered first: a check that needs no network may end in the same turn.
    const { promise: done, resolve } = Promise.withResolvers<void>();
    running.set(row.id, { startedMs, done });
    void run(row, startedMs).then(resolve);
  };

  const look = (): void => {
    cancelLook = null;
    lookAtMs = Number.POSITIVE_INFINITY;
    if (stopped) return;
    lookAt(takeUpDue(dueNowMs()));
  };

  /** Begins what is due, as far as there is room, and answers when to look again. */
  const takeUpDue = (nowMs: number): number => {
    const due = store.due(watermark, nowMs, TAKEN_AT_ONCE_MAX);
    for (const row of due) {
      if (running.size >= runningMax && !running.has(row.id)) return nowMs + FULL_LOOK_AGAIN_MS;
      begin(row);
      watermark = { dueAtMs: row.dueAtMs ?? watermark.dueAtMs, id: row.id };
    }
    if (due.length === TAKEN_AT_ONCE_MAX) return nowMs;
    return Math.min(store.nextDueMs(nowMs) ?? Number.POSITIVE_INFINITY, nowMs + LOOK_AT_LEAST_EVERY_MS);
  };

  const lookAt = (atMs: number): void => {
    if (stopped || atMs >= lookAtMs) return;
    cancelLook?.();
    lookAtMs = atMs;
    cancelLook = clock.after(atMs - dueNowMs(), look);
  };

  /** A row is due then: the next look must not come later, nor begin behind it. */
  const noteDue = (dueAtMs: number): void => {
    if (dueAtMs <= watermark.dueAtMs) watermark = BEFORE_ALL;
    lookAt(dueAtMs);
  };

  return {
    /**
     * Takes up everything that an earlier process left pending, and from then on whatever is due. What is due later than
     * any retry is planned for was planned by a clock that has been set back since: it is due now.
     */
    start(): void {
      const nowMs = dueNowMs();
      store.dueAtLatest(nowMs + deps.engine.longestWaitMs, nowMs);
      lookAt(nowMs);
    },

    /** Takes up a new row: at once, or at its time. */
    take(row: VerificationRow): void {
      const nowMs = dueNowMs();
      if (row.dueAtMs !== null && row.dueAtMs > nowMs) noteDue(row.dueAtMs);
      else if (running.size < runningMax) begin(row);
      else {
        watermark = BEFORE_ALL;
        lookAt(nowMs + FULL_LOOK_AGAIN_MS);
      }
    },

    /** Resolves when the verification has ended, after `waitMs`, when the caller is gone, or when the service stops. */
    waitFor(id: string, waitMs: number, signal?: AbortSignal): Promise<void> {
      if (stopped || signal?.aborted) return Promise.resolve();
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
          ? Math.max(0, (row.dueAtMs ?? 0) - dueNowMs()) + (row.mode === "test" ? 0 : averageMs)
          : averageMs - (clock.monotonicMs() - own.startedMs);
      return Math.max(POLL_AFTER_MS_MIN, Math.ceil(leftMs));
    },

    /** The time at which something is due that is to wait so long, as rows name it. */
    dueAtMs: (afterMs: number): number => dueNowMs() + afterMs,

    /** Checks under way. */
    running: (): number => running.size,

    /** How long an attempt takes lately, in milliseconds. */
    attemptMs: (): number => averageMs,

    /** Takes up nothing more, lets every waiting request go, and gives the checks under way a moment to end. */
    async stop(): Promise<void> {
      stopped = true;
      cancelLook?.();
      setbacks.stop();
      for (const id of [...waiters.keys()]) wake(id);
      const ends = Promise.all([...running.values()].map(({ done }) => done));
      await new Promise<void>((resolve) => {
        const cancelTimer = clock.after(DRAIN_MS_MAX, resolve);
        void ends.then(() => {
          cancelTimer();
          resolve();
        });
      });
    },
  };
};

export type Runner = ReturnType<typeof createRunner>;
