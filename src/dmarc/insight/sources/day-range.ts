import type { DayRange } from "../../../foundation/base/days.ts";
import { readDayRange, type RequestedRange } from "../../../foundation/http/day-range.ts";

/** The longest range: a little over ten years. */
export const RANGE_DAYS_MAX = 3_660;

/** Whole UTC days, both inclusive; 400 `Invalid query` when the range is longer than `RANGE_DAYS_MAX`. */
export const rangeOf = (requested: RequestedRange, nowMs: number): DayRange =>
  readDayRange(requested, nowMs, RANGE_DAYS_MAX);

/** A share in percent with one decimal; null when `whole` is 0. Never rounded up to 100 or down to 0. */
export const percentOf = (part: number, whole: number): number | null => {
  if (whole === 0) return null;
  const rounded = Math.round((part / whole) * 1000) / 10;
  if (rounded === 100 && part < whole) return 99.9;
  return rounded === 0 && part > 0 ? 0.1 : rounded;
};
