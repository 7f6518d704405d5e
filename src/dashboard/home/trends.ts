import { type DayRange, isoDay } from "../../foundation/base/days.ts";
import type { UsageReport } from "../../accounts/usage/account-usage.ts";

/** How a figure differs from the one before: better (`ok`), worse (`warn`), or the same. */
export interface Trend {
  readonly kind: "ok" | "warn" | "unknown";
  readonly text: string;
}

interface Share {
  readonly part: number;
  readonly whole: number;
}

const WHOLE = 100;
const MINUS = "−";

/** The difference between two shares in percentage points: "+1.2 since last week"; null where one of them has nothing to share. */
export const shareTrend = (now: Share, before: Share | null): Trend | null => {
  if (before === null || now.whole === 0 || before.whole === 0) return null;
  const points = (now.part / now.whole - before.part / before.whole) * WHOLE;
  const rounded = Math.round(points * 10) / 10;
  if (rounded === 0) return { kind: "unknown", text: "as last week" };
  const sign = rounded > 0 ? "+" : MINUS;
  return { kind: rounded > 0 ? "ok" : "warn", text: `${sign}${Math.abs(rounded).toFixed(1)} since last week` };
};

const WEEK_DAYS = 7;

/** Verifications of a week of days (UTC): those that ended, and the deliverable ones. */
export interface WeekCounts extends Share {
  readonly part: number;
}

/** The last seven days up to `toDay`, and the seven before. */
export const weeksOf = ({ groups }: UsageReport, { toDay }: Pick<DayRange, "toDay">) => {
  const byDay = new Map(groups.map((group) => [group.group, group]));
  const sumOf = (lastDay: number): WeekCounts =>
    Array.from({ length: WEEK_DAYS }, (_, at) => byDay.get(isoDay(lastDay - at))).reduce<WeekCounts>(
      (sum, day) => ({ part: sum.part + (day?.deliverable ?? 0), whole: sum.whole + (day?.total ?? 0) }),
      { part: 0, whole: 0 },
    );
  return { now: sumOf(toDay), before: sumOf(toDay - WEEK_DAYS) };
};
