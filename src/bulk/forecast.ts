import type { Clock } from "../base/clock.ts";
import type { JobForecast } from "./job-object.ts";

const RATE_OVER_S = 60;
/** The first seconds say little: what needs no mail server comes first. */
const RATE_KNOWN_AFTER_S = 5;
/** Until a rate has shown itself: an attempt takes about so long. */
export const FIRST_GUESS_ATTEMPT_S = 1.5;
const POLL_AFTER_MS_MIN = 1_000;
const POLL_AFTER_MS_MAX = 30_000;
/** A job that pauses may go on at any moment. */
const PAUSED_POLL_AFTER_MS = 5_000;
/** Somebody who waits looks this often on the way. */
const LOOKS = 5;

/** How many addresses a job finished in each of the last sixty seconds. */
export const createThroughput = (clock: Clock) => {
  const counts = new Float64Array(RATE_OVER_S);
  const seconds = new Float64Array(RATE_OVER_S).fill(-1);
  const startedS = Math.floor(clock.monotonicMs() / 1000);

  return {
    note(finished: number): void {
      const second = Math.floor(clock.monotonicMs() / 1000);
      const slot = second % RATE_OVER_S;
      if (seconds[slot] !== second) counts[slot] = 0;
      seconds[slot] = second;
      counts[slot] = (counts[slot] ?? 0) + finished;
    },
    /**
     * Addresses a second over the last minute, or since the start; null in the first five seconds, and when nothing was
     * finished in that time.
     */
    perSecond(): number | null {
      const now = Math.floor(clock.monotonicMs() / 1000);
      if (now - startedS < RATE_KNOWN_AFTER_S) return null;
      const sum = counts.reduce((all, count, slot) => all + ((seconds[slot] ?? -1) > now - RATE_OVER_S ? count : 0), 0);
      return sum === 0 ? null : sum / Math.min(RATE_OVER_S, now - startedS + 1);
    },
  };
};

export type Throughput = ReturnType<typeof createThroughput>;

export interface ForecastInput {
  /** Addresses that need no waiting for a retry. */
  readonly fresh: number;
  /** Null until a rate is known. */
  readonly perSecond: number | null;
  /** What may be hoped for until then; it says only when to look again. */
  readonly hopedPerSecond: number;
  /** How long until the latest retry that is planned; null when none is. */
  readonly latestRetryMs: number | null;
}

/**
 * An honest guess: the fresh addresses at the rate of the last minute, and no sooner than the latest planned retry; null
 * while there are fresh addresses and no rate is known. When to look again is known always.
 */
export const forecast = ({ fresh, perSecond, hopedPerSecond, latestRetryMs }: ForecastInput): JobForecast => {
  const workS = fresh === 0 ? 0 : fresh / (perSecond ?? hopedPerSecond);
  const retriesS = latestRetryMs === null ? 0 : Math.max(0, latestRetryMs) / 1000 + FIRST_GUESS_ATTEMPT_S;
  const secondsLeft = Math.max(1, Math.ceil(Math.max(workS, retriesS)));
  const pollAfterMs = Math.round((secondsLeft * 1000) / LOOKS);
  const isKnown = fresh === 0 || perSecond !== null;
  return {
    secondsLeft: isKnown ? secondsLeft : null,
    pollAfterMs: Math.min(POLL_AFTER_MS_MAX, Math.max(POLL_AFTER_MS_MIN, pollAfterMs)),
  };
};

/** How long it takes nobody knows while nothing answers. */
export const PAUSED: JobForecast = { secondsLeft: null, pollAfterMs: PAUSED_POLL_AFTER_MS };
