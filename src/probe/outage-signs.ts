import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";

export interface OutageSignsDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly reason: string;
  readonly finding: string;
}

/** Failures further apart than this are not one series. */
const SERIES_GAP_MS = 2 * 60_000;
/** The log tells at most this often of failures, and of outages that come and go. */
const WARNED_AGAIN_MS = 10 * 60_000;
const OUTAGE_LOGGED_AGAIN_MS = 60_000;

interface Outage {
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly isLogged: boolean;
}

/** What speaks for and against an outage in one respect, and the outage while there is one. Times are monotonic. */
export const createOutageSigns = ({ clock, log, reason, finding }: OutageSignsDeps) => {
  let lifeMs = Number.NEGATIVE_INFINITY;
  let series: { readonly sinceMs: number; lastMs: number } | null = null;
  let outage: Outage | null = null;
  let isGivenUp = false;
  let warnedMs = Number.NEGATIVE_INFINITY;
  let loggedMs = Number.NEGATIVE_INFINITY;
  const waiting = new Set<() => void>();

  const end = (message: string): void => {
    if (outage === null) return;
    const { sinceMs, isLogged } = outage;
    outage = null;
    if (isLogged) log.warn(message, { reason, seconds: Math.round((clock.monotonicMs() - sinceMs) / 1000) });
  };

  return {
    isOut: (): boolean => outage !== null,
    /** The outage lasted too long to be believed; until something answers failures count as the hosts' own. */
    isGivenUp: (): boolean => isGivenUp,
    hasLifeSince: (sinceMs: number): boolean => lifeMs >= sinceMs,
    /** For how long there have been failures and no success; null when there are none. */
    failingForMs: (): number | null => (series === null ? null : clock.monotonicMs() - series.sinceMs),

    /** True when this failure is the first of a series. */
    noteFailure(): boolean {
      const nowMs = clock.monotonicMs();
      if (series !== null && nowMs - series.lastMs <= SERIES_GAP_MS) {
        series.lastMs = nowMs;
        return false;
      }
      series = { sinceMs: nowMs, lastMs: nowMs };
      return true;
    },
    /** One line, now and then, about failures that are not an outage. */
    warn(): void {
      const nowMs = clock.monotonicMs();
      if (outage !== null || nowMs - warnedMs < WARNED_AGAIN_MS) return;
      warnedMs = nowMs;
      log.warn(finding, { reason });
    },

    /** Something answers; true when an outage ends with it. */
    noteLife(): boolean {
      lifeMs = clock.monotonicMs();
      series = null;
      isGivenUp = false;
      for (const tell of waiting) tell();
      const wasOut = outage !== null;
      end("The outage is over: lists go on.");
      return wasOut;
    },
    /** Resolves when something answers, or after that time. */
    lifeWithin: (ms: number): Promise<void> =>
      new Promise((resolve) => {
        const tell = () => {
          cancel();
          waiting.delete(tell);
          resolve();
        };
        const cancel = clock.after(ms, tell);
        waiting.add(tell);
      }),

    /** False when there is an outage already. */
    begin(lastsMsMax: number): boolean {
      if (outage !== null) return false;
      const nowMs = clock.monotonicMs();
      const isLogged = nowMs - loggedMs >= OUTAGE_LOGGED_AGAIN_MS;
      if (isLogged) loggedMs = nowMs;
      outage = { sinceMs: nowMs, untilMs: nowMs + lastsMsMax, isLogged };
      if (isLogged) log.warn(`Lists pause. ${finding}`, { reason });
      return true;
    },
    /** True when the outage has lasted as long as it may be assumed. */
    giveUpWhenOver(): boolean {
      if (outage === null || clock.monotonicMs() < outage.untilMs) return false;
      isGivenUp = true;
      end("Nothing has answered for so long that lists go on; what fails now is concluded.");
      return true;
    },
  };
};

export type OutageSigns = ReturnType<typeof createOutageSigns>;
