/** Nobody is waited for longer, whatever he asks for. */
const RETRY_AFTER_MS_MAX = 24 * 60 * 60 * 1000;
const SECOND_MS = 1_000;
/** IMF-fixdate, which is what may be sent (RFC 9110 §5.6.7). */
const HTTP_DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** How long a `Retry-After` asks to wait from now on, in milliseconds, 24 hours at most; null when it asks for nothing that can be read. */
export const retryAfterMs = (header: string | null, nowMs: number): number | null => {
  const text = header?.trim() ?? "";
  const waitMs = /^\d+$/.test(text)
    ? Number(text) * SECOND_MS
    : HTTP_DATE.test(text)
      ? Date.parse(text) - nowMs
      : Number.NaN;
  return Number.isNaN(waitMs) ? null : Math.min(Math.max(0, waitMs), RETRY_AFTER_MS_MAX);
};
