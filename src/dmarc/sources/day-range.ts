import { type DayRange, dayOfTime, isoDay } from "../../base/days.ts";
import { z } from "zod";
import { AppError } from "../../base/errors.ts";

/** Days of a range when the caller does not say: the last ones, today among them. */
export const RANGE_DAYS = 30;
/** More days than these at once are refused: ten years, and a bit. */
export const RANGE_DAYS_MAX = 3_660;

/** `2026-01-01`, or a time with its zone. */
const FORM = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d))?$/i;

/** The UTC day of `YYYY-MM-DD` or of an ISO 8601 time; null for anything else, and for days that no calendar has. */
export const parseDay = (text: string): number | null => {
  if (!FORM.test(text)) return null;
  const ms = Date.parse(text.toUpperCase());
  const midnight = Date.parse(text.slice(0, 10));
  // The 31st of a month of 30 days is read as the 1st of the next one.
  const isOnCalendar = !Number.isNaN(midnight) && new Date(midnight).toISOString().startsWith(text.slice(0, 10));
  return Number.isNaN(ms) || !isOnCalendar ? null : dayOfTime(ms);
};

const dayText = z.string().transform((text, context): number => {
  const day = parseDay(text);
  if (day !== null) return day;
  context.addIssue({ code: "custom", message: "A date (YYYY-MM-DD) or an ISO 8601 time with its zone is needed" });
  return z.NEVER;
});

/** The two parameters of every question about a time. */
export const rangeFields = { from: dayText.optional(), to: dayText.optional() };

const refuse = (path: string, message: string) => new AppError("Invalid query", { issues: [{ path, message }] });

/**
 * Whole UTC days, both inclusive: what is not said is 30 days up to `to`, and `to` is today. 400 `Invalid query` when
 * `from` is after `to`, or the range is longer than `RANGE_DAYS_MAX`.
 */
export const rangeOf = (
  { from, to }: { from?: number | undefined; to?: number | undefined },
  nowMs: number,
): DayRange => {
  const toDay = to ?? dayOfTime(nowMs);
  const fromDay = from ?? toDay - RANGE_DAYS + 1;
  if (fromDay > toDay) throw refuse("from", `from is not to be after to (${isoDay(toDay)})`);
  if (toDay - fromDay >= RANGE_DAYS_MAX) throw refuse("from", `A range has ${RANGE_DAYS_MAX} days at most`);
  return { fromDay, toDay };
};

/** A share in percent with one decimal; null of nothing. Never 100 while one is missing, and never 0 while there is one. */
export const percentOf = (part: number, whole: number): number | null => {
  if (whole === 0) return null;
  const rounded = Math.round((part / whole) * 1000) / 10;
  if (rounded === 100 && part < whole) return 99.9;
  return rounded === 0 && part > 0 ? 0.1 : rounded;
};
