const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;

/** Days that the usual gap between reports is learnt from. */
export const SILENCE_WINDOW_DAYS = 60;
/** Reporters send about daily; two may fail in a row. */
export const SILENCE_MS_MIN = 72 * HOUR_MS;
/** Before a week is known, its quiet days may be ahead. */
const EARLY_SILENCE_MS = 5 * DAY_MS;
const EARLY_DAYS = 7;
/** On so many days there must have been reports before their end is news. */
const REPORTED_DAYS_MIN = 3;
const GAPS_MAX = 3;
/** Gaps as long as one of ten are nothing unusual: weekends, the days between two monthly letters. */
const LONG_GAP_SHARE = 0.9;
/** How much later than usual the report after a long gap may be. */
const LATE_MS = 2 * DAY_MS;

/**
 * After how long without a report the reports of a domain have stopped: 72 hours, or three times the usual gap between the days
 * that reports told of in the last 60 days, whichever is longer, and always longer than the gaps it has now and then. `days` are
 * those days, in their order. Null while there are too few to tell.
 */
export const silenceMs = (days: readonly number[]): number | null => {
  if (days.length < REPORTED_DAYS_MIN) return null;
  const gaps = days.slice(1).map((day, at) => day - (days[at] ?? day));
  gaps.sort((a, b) => a - b);
  const at = (share: number): number => gaps[Math.floor(gaps.length * share)] ?? 0;
  const usual = GAPS_MAX * at(1 / 2) * DAY_MS;
  const early = days.length < EARLY_DAYS ? EARLY_SILENCE_MS : 0;
  return Math.max(SILENCE_MS_MIN, early, usual, at(LONG_GAP_SHARE) * DAY_MS + LATE_MS);
};
