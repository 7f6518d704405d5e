import { inTurns } from "../../../foundation/base/in-steps.ts";
import { DAY_MS, dayOfTime, type DayRange } from "../../../foundation/base/days.ts";
import { forEachIsolated } from "../../../foundation/base/in-steps.ts";
import { sumBy, sumFields } from "../../../foundation/base/sums.ts";
import type { Runtime } from "../../../foundation/db/runtime.ts";
import { RANGE_DAYS } from "../../../foundation/http/day-range.ts";
import type { Advice } from "../../insight/advice/advice-model.ts";
import type { Advisor } from "../../insight/advice/advisor.ts";
import { actionableFailures, DomainSources, type SourceDomain } from "../../insight/sources/domain-sources.ts";
import type { DomainDay } from "../../insight/sources/rollup-rows.ts";
import type { RollupStore } from "../../insight/sources/rollup-store.ts";
import type { Source } from "../../insight/sources/source-response.ts";
import type { DomainStore } from "../../records/domains/domain-store.ts";
import type { DomainOverview, DomainOverviewStore, NextStep } from "./domain-overview-store.ts";

const DOMAINS_AT_ONCE = 100;
/** An import is summed up when it is over; a domain about which reports keep arriving once in this time. */
const QUIET_MS = 60_000;
const REPORTED_MS = 10 * 60_000;

/** The scheduled job that sums up domains for lists: new and changed ones, and once a day every one. */
export class OverviewJob {
  readonly #stopping = new AbortController();

  constructor(
    private readonly runtime: Pick<Runtime, "db" | "clock" | "log">,
    private readonly deps: {
      readonly store: DomainOverviewStore;
      readonly rollups: RollupStore;
      readonly domains: Pick<DomainStore, "findByNumber">;
      readonly advise: Advisor;
    },
  ) {}

  /** Sums up every domain that is due, once. A failure of one does not stop the others. */
  async run(): Promise<void> {
    const { clock, log } = this.runtime;
    const nowMs = clock.nowMs();
    const times = {
      dayMs: dayOfTime(nowMs) * DAY_MS,
      quietSinceMs: nowMs - QUIET_MS,
      reportedBeforeMs: nowMs - REPORTED_MS,
    };
    for (let after = 0; !this.#stopping.signal.aborted;) {
      const numbers = this.deps.store.due(after, times, DOMAINS_AT_ONCE);
      const last = numbers.at(-1);
      if (last === undefined) return;
      await forEachIsolated(numbers, (number) => this.#refresh(number), {
        isStopping: () => this.#stopping.signal.aborted,
        onFailure: (number, error) =>
          log.error("a domain could not be summed up, will be retried in the next run", { number, error }),
      });
      after = last;
    }
  }

  /** Ends a run after the domain that is being summed up. */
  stop(): void {
    this.#stopping.abort();
  }

  async #refresh(number: number): Promise<void> {
    const { store, rollups, domains, advise } = this.deps;
    const { db, clock } = this.runtime;
    const domain = domains.findByNumber(number);
    if (domain === undefined) return;
    // A change during the computation makes the domain due again.
    const nowMs = clock.nowMs();
    const { next } = await advise(domain);
    const read = await inTurns(DomainSources.open(rollups, domain));
    const sources = await inTurns(read.sources(rangeOf(nowMs)));
    const overview = db.snapshot(() => computeOverview(rollups, domain, { sources, next, nowMs }));
    await db.commit((tx) => store.save(tx, number, overview));
  }
}

const WEEK_DAYS = 7;

/** The days that are summed up. */
const rangeOf = (nowMs: number): DayRange => ({ fromDay: dayOfTime(nowMs) - RANGE_DAYS + 1, toDay: dayOfTime(nowMs) });

/** Sums up a domain for lists. */
const computeOverview = (
  rollups: RollupStore,
  domain: SourceDomain,
  {
    sources,
    next,
    nowMs,
  }: {
    readonly sources: readonly Source[];
    readonly next: Advice["next"];
    readonly nowMs: number;
  },
): DomainOverview => {
  const range = rangeOf(nowMs);
  const { toDay } = range;
  const days = rollups.domainDays([domain.number], range);
  const month = sumFields(days, "messages", "aligned");
  const daysBetween = (from: number, to: number) => days.filter(({ day }) => day > from && day <= to);
  const week = sumFields(daysBetween(toDay - WEEK_DAYS, toDay), "messages", "aligned");
  const daysBefore = daysBetween(toDay - 2 * WEEK_DAYS, toDay - WEEK_DAYS);
  const before = daysBefore.length === 0 ? null : sumFields(daysBefore, "messages", "aligned");
  return {
    computedAtMs: nowMs,
    messages7: week.messages,
    aligned7: week.aligned,
    messagesBefore7: before?.messages ?? null,
    alignedBefore7: before?.aligned ?? null,
    messages30: month.messages,
    aligned30: month.aligned,
    actionable30: sumBy(sources, actionableFailures),
    fromDay: range.fromDay,
    messages: perDay(days, range, ({ messages }) => messages),
    failing: perDay(days, range, ({ messages, aligned }) => messages - aligned),
    next: next === null ? null : nextStepOf(next, sources),
  };
};

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
  action,
  why,
  source,
  sourceName: source === null ? null : (sources.find(({ key }) => key === source)?.name ?? source),
});
