/** Milliseconds of a day: days in the tables are whole ones since 1970 (UTC). */
export const DAY_MS = 86_400_000;

/** The UTC day of a point in time. */
export const dayOfTime = (ms: number): number => Math.floor(ms / DAY_MS);

/** The UTC day that most of a report is about: that of the middle of its period. */
export const dayOf = ({ beginMs, endMs }: { readonly beginMs: number; readonly endMs: number }): number =>
  dayOfTime(beginMs + (endMs - beginMs) / 2);
