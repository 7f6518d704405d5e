import { z } from "zod";
import { type DayRange, dayOfTime, isoDay } from "../base/days.ts";
import { AppError } from "../base/errors.ts";

/** The default length of a range, which ends today. */
export const RANGE_DAYS = 30;
/** `2026-01-01`, or a time with its zone. */
const FORM = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d))?$/i;

/** The UTC day of `YYYY-MM-DD` or of an ISO 8601 time; null for anything else, and for days that do not exist. */
export const parseDay = (text: string): number | null => {
  if (!FORM.test(text)) return null;
  const ms = Date.parse(text.toUpperCase());
  const midnight = Date.parse(text.slice(0, 10));
  // Date.parse reads the 31st of a month of 30 days as the 1st of the next month.
  const isOnCalendar = !Number.isNaN(midnight) && new Date(midnight).toISOString().startsWith(text.slice(0, 10));
  return Number.isNaN(ms) || !isOnCalendar ? null : dayOfTime(ms);
};

const dayText = z.string().transform((text, context) => {
  const day = parseDay(text);
  if (day !== null) return day;
  context.addIssue({ code: "custom", message: "Must be a date (YYYY-MM-DD) or an ISO 8601 time with a zone" });
  return z.NEVER;
});

const dayParameter = (description: string) =>
  dayText.optional().meta({ description, examples: ["2026-01-01", "2026-01-01T00:00:00Z"] });

/** The query parameters of a range of days. */
export const rangeFields = {
  from: dayParameter(`The first UTC day, as a date or a time in it. Default: ${RANGE_DAYS - 1} days before \`to\`.`),
  to: dayParameter("The last UTC day, inclusive. Default: today."),
};

const refuse = (path: string, message: string) => new AppError("Invalid query", { issues: [{ path, message }] });

/** A range as a request has it: days, or nothing. */
export interface RequestedRange {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/**
 * Whole UTC days, both inclusive; by default the 30 days up to today. 400 `Invalid query` when `from` is after `to`, or the range
 * is longer than `daysMax`.
 */
export const readDayRange = ({ from, to }: RequestedRange, nowMs: number, daysMax: number): DayRange => {
  const toDay = to ?? dayOfTime(nowMs);
  const fromDay = from ?? toDay - RANGE_DAYS + 1;
  if (fromDay > toDay) throw refuse("from", `from must not be after to (${isoDay(toDay)})`);
  if (toDay - fromDay >= daysMax) throw refuse("from", `A range must not exceed ${daysMax} days`);
  return { fromDay, toDay };
};
