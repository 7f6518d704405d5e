import { DAY_MS, type DayRange } from "../../base/days.ts";
import { type DigestPeriod, digestRange, rangeBefore } from "../../base/digest-schedule.ts";

/** Two spans with the same number of days. */
export interface ComparedSpans {
  readonly now: DayRange;
  readonly before: DayRange;
}

/**
 * The days that a digest due at `dueMs` is about. Reports about a day come in the course of the next one, so that a daily digest
 * tells of the day before yesterday: the last one that is whole.
 */
export const daysToldOf = (period: DigestPeriod, dueMs: number): DayRange =>
  digestRange(period, period === "daily" ? dueMs - DAY_MS : dueMs);

/** The day of a range that is not whole yet when its digest is sent; null when all are. */
export const lateDayOf = (period: DigestPeriod, { toDay }: DayRange): number | null =>
  period === "daily" ? null : toDay;

/**
 * What of a range is compared with what of the one before: the same number of days from the first on, without the one about which
 * reports may still come. Of months with different lengths those days that both have.
 */
export const comparedSpans = (period: DigestPeriod, range: DayRange): ComparedSpans => {
  const before = rangeBefore(period, range);
  const whole = lengthOf(range) - (lateDayOf(period, range) === null ? 0 : 1);
  const days = Math.min(whole, lengthOf(before));
  return { now: firstOf(range, days), before: firstOf(before, days) };
};

const lengthOf = ({ fromDay, toDay }: DayRange): number => toDay - fromDay + 1;
const firstOf = ({ fromDay }: DayRange, days: number): DayRange => ({ fromDay, toDay: fromDay + days - 1 });
