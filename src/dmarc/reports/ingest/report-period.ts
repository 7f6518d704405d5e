import { DAY_MS, dayOfTime } from "../../../foundation/base/days.ts";

interface Period {
  readonly beginMs: number;
  readonly endMs: number;
}

/** How far a reporter's clock may be ahead of ours. */
export const FUTURE_DAYS_MAX = 2;
/** A longer period cannot be assigned to a day. */
export const PERIOD_DAYS_MAX = 400;

/** Why a period cannot be assigned to a day. */
export type PeriodProblem = "period_in_future" | "period_too_long";

const middleOf = ({ beginMs, endMs }: Period): number => beginMs + (endMs - beginMs) / 2;

/** The UTC day of a report: that of the middle of its period. */
export const dayOf = (period: Period): number => dayOfTime(middleOf(period));

/**
 * What is wrong with a report's period now; null for nothing, however old it is. A day in the future would be expired too late
 * or never. Such a report can be retried when the day has come.
 */
export const periodProblemOf = (period: Period, nowMs: number): PeriodProblem | null => {
  if (period.endMs - period.beginMs > PERIOD_DAYS_MAX * DAY_MS) return "period_too_long";
  return middleOf(period) > nowMs + FUTURE_DAYS_MAX * DAY_MS ? "period_in_future" : null;
};

/** Whether a day is so old that the next retention run expires it. */
export const isPastRetention = (day: number, { retentionDays }: { readonly retentionDays: number }, nowMs: number) =>
  day < dayOfTime(nowMs) - retentionDays;
