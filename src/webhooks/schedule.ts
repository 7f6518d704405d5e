import type { Random } from "../base/secrets.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** The waits between attempts (contract §8); after the last one an event is given up. */
const WAITS_MS: readonly number[] = [
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
];
export const DELIVERY_ATTEMPTS_MAX = WAITS_MS.length + 1;
/** Up to a tenth more, so that receivers that were down are not hit by everybody at once when they are back. */
const JITTER_SHARE = 0.1;

/** How long to wait after so many failed attempts; null when it was the last. */
export const waitAfter = (attempts: number, random: Random): number | null => {
  const waitMs = WAITS_MS[attempts - 1];
  return waitMs === undefined ? null : waitMs + random.integer(Math.floor(waitMs * JITTER_SHARE) + 1);
};
