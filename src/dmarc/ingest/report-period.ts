import { DAY_MS, dayOfTime } from "../../base/days.ts";

interface Period {
  readonly beginMs: number;
  readonly endMs: number;
}

/** How far ahead of ours a reporter's clock may be. */
export const FUTURE_DAYS_MAX = 2;
/** A longer period says nothing of any day. */
export const PERIOD_DAYS_MAX = 400;

/** Why a period cannot be counted for a day. */
export type PeriodProblem = "period_in_future" | "period_too_long";

const middleOf = ({ beginMs, endMs }: Period): number => beginMs + (endMs - beginMs) / 2;

/** The UTC day that most of a report is about: that of the middle of its period. */
export const dayOf = (period: Period): number => dayOfTime(middleOf(period));

/**
 * What is wrong with a report's period at the time it is written down; null for nothing, however old it is. A day that is
 * still to come would be forgotten too late or never; tried again when it has come, such a report is as good as any other.
 */
export const periodProblemOf = (period: Period, nowMs: number): PeriodProblem | null => {
  if (period.endMs - period.beginMs > PERIOD_DAYS_MAX * DAY_MS) return "period_too_long";
  return middleOf(period) > nowMs + FUTURE_DAYS_MAX * DAY_MS ? "period_in_future" : null;
};

/** Whether a day is so long ago that what was counted of it goes with the next run of the retention. */
export const isPastRetention = (day: number, { retentionDays }: { readonly retentionDays: number }, nowMs: number) =>
  day < dayOfTime(nowMs) - retentionDays;
