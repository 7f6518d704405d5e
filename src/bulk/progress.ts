import type { Clock } from "../base/clock.ts";
import type { Forecast } from "./job-object.ts";

const RATE_OVER_S = 60;
/** Until a rate has shown itself: an attempt takes about so long. */
export const FIRST_GUESS_ATTEMPT_S = 1.5;
const POLL_AFTER_MS_MIN = 1_000;
const POLL_AFTER_MS_MAX = 30_000;
/** Somebody who waits looks this often on the way. */
const LOOKS = 5;

/** How many addresses a job finished in each of the last sixty seconds. */
export const createRate = (clock: Clock) => {
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
    /** Addresses a second over the last minute, or since the start; 0 when nothing was finished in it. */
    perSecond(): number {
      const now = Math.floor(clock.monotonicMs() / 1000);
      const sum = counts.reduce((all, count, slot) => all + ((seconds[slot] ?? -1) > now - RATE_OVER_S ? count : 0), 0);
      return sum / Math.min(RATE_OVER_S, now - startedS + 1);
    },
  };
};

export type Rate = ReturnType<typeof createRate>;

export interface Outlook {
  /** Addresses that need no waiting for a retry. */
  readonly fresh: number;
  readonly perSecond: number;
  /** How long until the latest retry that is planned; null when none is. */
  readonly latestRetryMs: number | null;
}

/** An honest guess: the fresh addresses at the rate of the last minute, and no sooner than the latest planned retry. */
export const forecast = ({ fresh, perSecond, latestRetryMs }: Outlook): Forecast => {
  const workS = perSecond > 0 ? fresh / perSecond : fresh * FIRST_GUESS_ATTEMPT_S;
  const retriesS = latestRetryMs === null ? 0 : Math.max(0, latestRetryMs) / 1000 + FIRST_GUESS_ATTEMPT_S;
  const secondsLeft = Math.max(1, Math.ceil(Math.max(workS, retriesS)));
  const pollAfterMs = Math.round((secondsLeft * 1000) / LOOKS);
  return { secondsLeft, pollAfterMs: Math.min(POLL_AFTER_MS_MAX, Math.max(POLL_AFTER_MS_MIN, pollAfterMs)) };
};
