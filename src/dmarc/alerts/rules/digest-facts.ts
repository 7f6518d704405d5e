import { DAY_MS, type DayRange, dayOfTime } from "../../../foundation/base/days.ts";
import { type DigestPeriod, digestRange, rangeBefore } from "../../../foundation/base/digest-schedule.ts";
import type { AdviceStep } from "../../insight/advice/advice-schema.ts";
import type { Advisor } from "../../insight/advice/advisor.ts";
import { readLastCheck, readState, type StatePolicy } from "../../records/domains/domain-state.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import type { RollupStore } from "../../insight/sources/rollup-store.ts";
import type { Totals } from "../../insight/sources/totals.ts";
import { reporterView, reporterWords } from "../../insight/queries/reporter.ts";
import type { Source } from "../../insight/sources/source-response.ts";
import { DomainSources } from "../../insight/sources/domain-sources.ts";
import { learningFromDay, type Learning } from "./learning.ts";
import { recordToPublish } from "./domain-links.ts";

/** What a digest says about a domain is made of. */
export interface DomainDigestFacts {
  readonly domain: Pick<DomainRow, "id" | "domain" | "label" | "status">;
  readonly period: DigestPeriod;
  readonly range: DayRange;
  readonly totals: Totals;
  /** The same number of days of the period and of the one before. */
  readonly compared: { readonly days: number; readonly now: Totals; readonly before: Totals };
  /** Reports of the period. */
  readonly reports: number;
  /** Names of reporters, the most messages first. */
  readonly reporters: readonly string[];
  /** Reports that are not trusted, and the messages that only they name. */
  readonly untrusted: { readonly reports: number; readonly messages: number };
  readonly sources: readonly Source[];
  readonly learning: Learning;
  /** Null before the first report. */
  readonly lastReportAtMs: number | null;
  readonly policy: StatePolicy | null;
  /** Messages of the DNS checks that fail. */
  readonly failingChecks: readonly string[];
  /** The record to publish by the last DNS check; null where that is not known, or there is nothing to publish. */
  readonly recordToPublish: string | null;
  /** The next step; null when nothing is left to do. */
  readonly next: Pick<AdviceStep, "action" | "record" | "why"> | null;
}

/** Two ranges with the same number of days. */
export interface ComparedRanges {
  readonly now: DayRange;
  readonly before: DayRange;
}

export interface DigestReaderOptions {
  readonly reading: RollupStore;
  readonly advise: Advisor;
}

/** A digest names fewer reporters than these. */
const REPORTERS_MAX = 10;

/** Reads what a digest says about a domain out of the daily sums. */
export const createDigestReader =
  ({ reading, advise }: DigestReaderOptions) =>
  async (
    domain: DomainRow,
    { period, range }: { readonly period: DigestPeriod; readonly range: DayRange },
  ): Promise<DomainDigestFacts> => {
    const { number, lastReportAtMs } = domain;
    const reporters = reading.reporters(number, range);
    const written = reading.writtenNames(number, reporters.slice(0, REPORTERS_MAX));
    const { now, before } = comparedRanges(period, range);
    const enrolledDay = dayOfTime(domain.createdAtMs);
    const known = { fromDay: learningFromDay(enrolledDay, range.fromDay), toDay: range.toDay };
    const checks = readLastCheck(domain.lastCheck)?.checks ?? [];
    return {
      ...{ domain, period, range, lastReportAtMs },
      totals: reading.totals(number, range),
      compared: { days: lengthOf(now), now: reading.totals(number, now), before: reading.totals(number, before) },
      reports: reporters.reduce((sum, { reports }) => sum + reports, 0),
      reporters: reporters.map(({ reporter, ...of }) =>
        reporterWords(reporterView({ ...of, org: reporter === "" ? null : (written.get(reporter) ?? reporter) })),
      ),
      untrusted: reading.untrusted(number, range),
      sources: new DomainSources(reading, domain).sources(range),
      learning: { enrolledDay, reportedDays: reading.reportsPerDay(number, known).map(({ day }) => day) },
      policy: readState(domain.state)?.believed.policy ?? null,
      recordToPublish: recordToPublish(checks),
      failingChecks: checks.filter(({ ok }) => ok === false).map(({ message }) => message),
      next: (await advise(domain)).next,
    };
  };

/**
 * The days that a digest due at `dueMs` covers. Reports about a day arrive in the course of the next one, so a daily digest covers the
 * day before yesterday: the last one that is complete.
 */
export const digestDays = (period: DigestPeriod, dueMs: number): DayRange =>
  digestRange(period, period === "daily" ? dueMs - DAY_MS : dueMs);

/** The day of a range that is incomplete when its digest is sent; null when all are complete. */
export const incompleteDay = (period: DigestPeriod, { toDay }: DayRange): number | null =>
  period === "daily" ? null : toDay;

/**
 * Which days of a range are compared with which of the one before: the same number from the first on, without the incomplete one. Of
 * months of different lengths, the days that both have.
 */
export const comparedRanges = (period: DigestPeriod, range: DayRange): ComparedRanges => {
  const before = rangeBefore(period, range);
  const complete = lengthOf(range) - (incompleteDay(period, range) === null ? 0 : 1);
  const days = Math.min(complete, lengthOf(before));
  return { now: firstDays(range, days), before: firstDays(before, days) };
};

const lengthOf = ({ fromDay, toDay }: DayRange): number => toDay - fromDay + 1;
const firstDays = ({ fromDay }: DayRange, days: number): DayRange => ({ fromDay, toDay: fromDay + days - 1 });
