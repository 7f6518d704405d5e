import type { Clock } from "../base/clock.ts";

export interface ConcurrencyLimiterDeps {
  readonly clock: Clock;
  /** Addresses of lists under way at a time, when nobody else is there. */
  readonly windowMax: number;
  /** Whether anybody waits for the answer to a single check at this moment. */
  readonly isSomebodyWaiting: () => boolean;
  /** How long a single check takes lately, in milliseconds. */
  readonly checkMs: () => number;
  /** When a socket could not be opened last, by the monotonic clock. */
  readonly lastShortageMs: () => number;
}

/** How often the lateness of the event loop is measured, and how much of each measurement counts. */
const SAMPLE_MS = 5;
const SAMPLE_SHARE = 0.2;
/**
 * The lateness that is put up with, as a share of what a check takes: it has about eight turns of the loop, and is to
 * take no more than twice as long as alone. Below the least figure timers cannot be told apart.
 */
const LATE_SHARE = 1 / 40;
const LATE_MS_MIN = 0.22;
/** Below this share of it the window grows again. */
const PUNCTUAL_SHARE = 0.7;
const SHRINK = 0.8;
const GROW = 1.05;
const WINDOW_MIN = 4;
/** Somebody who waited a moment ago may be followed by another. */
const REMEMBERED_MS = 5_000;
/** After a shortage of sockets the window is halved, once in the first figure, and grows back within the second. */
const SHORTAGE_MS = 250;
const GROW_BACK_MS = 60_000;

/**
 * Leaves the processor to those who wait: while single checks come in, the window of lists is made so small that the
 * event loop stays punctual. Where it is the network that takes the time, nothing shrinks.
 */
export const createConcurrencyLimiter = (deps: ConcurrencyLimiterDeps) => {
  const { clock, windowMax, isSomebodyWaiting, checkMs, lastShortageMs } = deps;
  let windowNow = windowMax;
  let affordable = windowMax;
  let affordableMs = 0;
  let shortageMs = Number.NEGATIVE_INFINITY;
  let lateMs = 0;
  let seenMs = Number.NEGATIVE_INFINITY;
  let cancelSample: (() => void) | null = null;

  const sample = (dueMs: number): void => {
    const nowMs = clock.monotonicMs();
    lateMs += (nowMs - dueMs - lateMs) * SAMPLE_SHARE;
    const lateMsMax = Math.max(LATE_MS_MIN, checkMs() * LATE_SHARE);
    if (lateMs > lateMsMax) windowNow = Math.max(WINDOW_MIN, windowNow * SHRINK);
    else if (lateMs < lateMsMax * PUNCTUAL_SHARE) windowNow = Math.min(windowMax, windowNow * GROW + 1);
    cancelSample = null;
    if (nowMs - seenMs < REMEMBERED_MS) measure(nowMs);
    else windowNow = windowMax;
  };

  const measure = (nowMs: number): void => {
    const dueMs = nowMs + SAMPLE_MS;
    cancelSample = clock.after(SAMPLE_MS, () => sample(dueMs));
  };

  /** What the machine can afford: fewer at a time after a socket could not be opened. */
  const affordableNow = (underWay: number): number => {
    const nowMs = clock.monotonicMs();
    const isShort = lastShortageMs() > shortageMs;
    if (isShort && nowMs - shortageMs >= SHORTAGE_MS) {
      shortageMs = nowMs;
      affordable = Math.max(1, Math.floor(Math.min(affordable, Math.max(underWay, 1)) / 2));
    } else if (!isShort)
      affordable = Math.min(windowMax, affordable + (windowMax * (nowMs - affordableMs)) / GROW_BACK_MS);
    affordableMs = nowMs;
    return affordable;
  };

  return {
    /** How many addresses may be under way now, when so many are; to be asked often. */
    window(underWay: number): number {
      if (isSomebodyWaiting()) {
        seenMs = clock.monotonicMs();
        if (cancelSample === null) measure(seenMs);
      }
      return Math.max(1, Math.floor(Math.min(windowMax, windowNow, affordableNow(underWay))));
    },
    stop(): void {
      cancelSample?.();
      cancelSample = null;
    },
  };
};

export type ConcurrencyLimiter = ReturnType<typeof createConcurrencyLimiter>;
