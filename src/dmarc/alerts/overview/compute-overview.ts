import { type DayRange, dayOfTime } from "../../../foundation/base/days.ts";
import type { Advice } from "../../insight/advice/advice-schema.ts";
import { RANGE_DAYS } from "../../../foundation/http/day-range.ts";
import { actionableFailures, type DomainSources, type SourceDomain } from "../../insight/sources/domain-sources.ts";
import type { DomainDay } from "../../insight/sources/rollup-rows.ts";
import type { RollupStore } from "../../insight/sources/rollup-store.ts";
import type { Source } from "../../insight/sources/source-response.ts";
import type { NextStep, DomainOverview } from "./domain-overview.ts";

const WEEK_DAYS = 7;

/** What an overview is computed from, beside the counts. `next`: the next step of the advice. */
interface OverviewFacts {
  readonly sources: DomainSources;
  readonly next: Advice["next"];
  readonly nowMs: number;
}

/** Sums up a domain for lists. */
export const computeOverview = (
  rollups: RollupStore,
  domain: SourceDomain,
  { sources: read, next, nowMs }: OverviewFacts,
): DomainOverview => {
  const toDay = dayOfTime(nowMs);
  const range: DayRange = { fromDay: toDay - RANGE_DAYS + 1, toDay };
  const days = rollups.domainDays([domain.number], range);
  const sources = read.sources(range);
  const month = sumOf(days);
  const week = sumOf(days.filter(({ day }) => day > toDay - WEEK_DAYS));
  return {
    computedAtMs: nowMs,
    ...{ messages7: week.messages, aligned7: week.aligned, messages30: month.messages, aligned30: month.aligned },
    actionable30: sources.reduce((sum, source) => sum + actionableFailures(source), 0),
    fromDay: range.fromDay,
    messages: perDay(days, range, ({ messages }) => messages),
    failing: perDay(days, range, ({ messages, aligned }) => messages - aligned),
    next: next === null ? null : nextStepOf(next, sources),
  };
};

const sumOf = (days: readonly DomainDay[]): Pick<DomainDay, "messages" | "aligned"> => ({
  messages: days.reduce((sum, { messages }) => sum + messages, 0),
  aligned: days.reduce((sum, { aligned }) => sum + aligned, 0),
});

/** A number for each day of a range; null for a day that no report covers. */
const perDay = (
  days: readonly DomainDay[],
  { fromDay, toDay }: DayRange,
  count: (day: DomainDay) => number,
): (number | null)[] => {
  const known = new Map(days.map((one) => [one.day, count(one)]));
  return Array.from({ length: toDay - fromDay + 1 }, (_, index) => known.get(fromDay + index) ?? null);
};

const nextStepOf = ({ action, why, source }: NonNullable<Advice["next"]>, sources: readonly Source[]): NextStep => ({
  ...{ action, why, source },
  sourceName: source === null ? null : (sources.find(({ key }) => key === source)?.name ?? source),
});
