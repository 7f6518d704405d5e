import type { Random } from "../../foundation/base/secrets.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Waits between attempts (contract §8); after the last attempt a delivery fails. */
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
/** Up to a tenth is added, so that an endpoint that recovers does not receive everything at once. */
const JITTER_SHARE = 0.1;
const RETRY_AFTER_MS_MAX = 24 * HOUR_MS;
/** IMF-fixdate (RFC 9110 §5.6.7). */
const HTTP_DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** The wait after this many failed attempts; null after the last. */
export const waitAfter = (attempts: number, random: Random): number | null => {
  const waitMs = WAITS_MS[attempts - 1];
  return waitMs === undefined ? null : waitMs + random.integer(Math.floor(waitMs * JITTER_SHARE) + 1);
};

/** The wait that a `Retry-After` header asks for, in milliseconds, at most 24 hours; null when it is absent or invalid. */
export const retryAfterMs = (header: string | null, nowMs: number): number | null => {
  const text = header?.trim() ?? "";
  const waitMs = /^\d+$/.test(text)
    ? Number(text) * SECOND_MS
    : HTTP_DATE.test(text)
      ? Date.parse(text) - nowMs
      : Number.NaN;
  return Number.isNaN(waitMs) ? null : Math.min(Math.max(0, waitMs), RETRY_AFTER_MS_MAX);
};
