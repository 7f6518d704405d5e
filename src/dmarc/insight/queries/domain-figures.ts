import type { Clock } from "../../../foundation/base/clock.ts";
import { type DayRange, dayOfTime, isoDay } from "../../../foundation/base/days.ts";
import type { DomainFigures, ReadFigures } from "../../records/domains/domain-figures.ts";
import type { DomainDay } from "../sources/rollup-rows.ts";
import type { RollupStore } from "../sources/rollup-store.ts";
import { RANGE_DAYS } from "../../../foundation/http/day-range.ts";
import { percentOf } from "../sources/day-range.ts";

const WEEK_DAYS = 7;

/** Reads the figures of all domains of a page with one query. */
export const createFigureReader =
  (rollups: RollupStore, clock: Clock): ReadFigures =>
  (numbers) => {
    const toDay = dayOfTime(clock.nowMs());
    const range = { fromDay: toDay - RANGE_DAYS + 1, toDay };
    const found = Map.groupBy(rollups.domainDays(numbers, range), ({ domain }) => domain);
    return new Map(numbers.map((number) => [number, figuresOf(found.get(number) ?? [], range)]));
  };

const figuresOf = (days: readonly DomainDay[], { fromDay, toDay }: DayRange): DomainFigures => {
  const messages = new Array<number>(RANGE_DAYS).fill(0);
  const failing = new Array<number>(RANGE_DAYS).fill(0);
  for (const one of days) {
    messages[one.day - fromDay] = one.messages;
    failing[one.day - fromDay] = one.messages - one.aligned;
  }
  return {
    last_7_days: sumOf(days.filter(({ day }) => day > toDay - WEEK_DAYS)),
    last_30_days: sumOf(days),
    days: { from: isoDay(fromDay), messages, failing },
  };
};

const sumOf = (days: readonly DomainDay[]): DomainFigures["last_7_days"] => {
  const messages = days.reduce((sum, day) => sum + day.messages, 0);
  const aligned = days.reduce((sum, day) => sum + day.aligned, 0);
  return { messages, aligned, failing: messages - aligned, aligned_percent: percentOf(aligned, messages) };
};
