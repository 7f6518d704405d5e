/** Milliseconds of a day. */
export const DAY_MS = 86_400_000;

/** Whole days since 1970 (UTC), both inclusive. */
export interface DayRange {
  readonly fromDay: number;
  readonly toDay: number;
}

/** The UTC day of a point in time, in days since 1970. */
export const dayOfTime = (ms: number): number => Math.floor(ms / DAY_MS);

/** `YYYY-MM-DD`. */
export const isoDay = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10);
