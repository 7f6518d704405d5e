import { DAY_MS, dayOfTime, type DayRange } from "../../../foundation/base/days.ts";
import { forEachIsolated } from "../../../foundation/base/in-steps.ts";
import type { Runtime } from "../../../foundation/db/runtime.ts";
import type { Advisor } from "../../insight/advice/advisor.ts";
import type { DomainStore } from "../../records/domains/domain-store.ts";
import { DomainSources, actionableFailures, type SourceDomain } from "../../insight/sources/domain-sources.ts";
import type { RollupStore } from "../../insight/sources/rollup-store.ts";
import type { DomainOverviewStore, NextStep, DomainOverview } from "./domain-overview-store.ts";
import type { Advice } from "../../insight/advice/advice-schema.ts";
import { RANGE_DAYS } from "../../../foundation/http/day-range.ts";
import type { DomainDay } from "../../insight/sources/rollup-rows.ts";
import type { Source } from "../../insight/sources/source-response.ts";

type OverviewRuntime = Pick<Runtime, "db" | "clock" | "log">;

export interface OverviewJobOptions {
  readonly store: DomainOverviewStore;
  readonly rollups: RollupStore;
  readonly domains: Pick<DomainStore, "findByNumber">;
  readonly advise: Advisor;
}

const DOMAINS_AT_ONCE = 100;
/** A domain about which reports keep arriving is summed up no more often than this. */
const SETTLED_MS = 10 * 60_000;

/** The scheduled job that sums up domains for lists: new and changed ones, and once a day every one. */
export class OverviewJob {
  readonly #stopping = new AbortController();

  constructor(
    private readonly runtime: OverviewRuntime,
    private readonly options: OverviewJobOptions,
  ) {}

  /** Sums up every domain that is due, once. A failure of one does not stop the others. */
  async run(): Promise<void> {
    const { clock, log } = this.runtime;
    const nowMs = clock.nowMs();
    const times = { dayMs: dayOfTime(nowMs) * DAY_MS, changedBeforeMs: nowMs - SETTLED_MS };
    for (let after = 0; !this.#stopping.signal.aborted;) {
      const numbers = this.options.store.due(after, times, DOMAINS_AT_ONCE);
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
    const { store, rollups, domains, advise } = this.options;
    const { db, clock } = this.runtime;
    const domain = domains.findByNumber(number);
    if (domain === undefined) return;
    // A change during the computation makes the domain due again.
    const nowMs = clock.nowMs();
    const { next } = await advise(domain);
    const sources = new DomainSources(rollups, domain);
    await sources.identifyAll();
    const overview = db.snapshot(() => computeOverview(rollups, domain, { sources, next, nowMs }));
    await db.commit((tx) => store.save(tx, number, overview));
  }
}

const WEEK_DAYS = 7;

/** What an overview is computed from, beside the counts. `next`: the next step of the advice. */
interface OverviewFacts {
  readonly sources: DomainSources;
  readonly next: Advice["next"];
  readonly nowMs: number;
}

/** Sums up a domain for lists. */
const computeOverview = (
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
    messages7: week.messages,
    aligned7: week.aligned,
    messages30: month.messages,
    aligned30: month.aligned,
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
  action,
  why,
  source,
  sourceName: source === null ? null : (sources.find(({ key }) => key === source)?.name ?? source),
});
