import { type DayRange, dayOfTime } from "../../base/days.ts";
import type { Advice } from "../advice/advice.ts";
import type { DigestFacts } from "./digest.ts";
import { learningFromDay } from "./alert-learning.ts";
import { comparedSpans } from "./digest-range.ts";
import { recordToPublish } from "./mail-words.ts";
import type { DigestPeriod } from "../../base/digest-schedule.ts";
import { readLastCheck, readState } from "../domains/domain-state.ts";
import type { DomainRow } from "../domains/domain-store.ts";
import { reporterView, reporterWords } from "../queries/reporter.ts";
import type { RollupStore } from "../sources/rollup-store.ts";
import { DomainSources } from "../sources/domain-sources.ts";

export interface DigestReaderDeps {
  readonly reading: RollupStore;
  readonly advise: (domain: DomainRow) => Promise<Advice>;
}

/** A digest names fewer reporters than these. */
const REPORTERS_MAX = 10;

/** Reads what a digest says about a domain out of the daily sums. */
export const createDigestReader =
  ({ reading, advise }: DigestReaderDeps) =>
  async (
    domain: DomainRow,
    { period, range }: { readonly period: DigestPeriod; readonly range: DayRange },
  ): Promise<DigestFacts> => {
    const { number, lastReportAtMs } = domain;
    const reporters = reading.reporters(number, range);
    const written = reading.writtenNames(number, reporters.slice(0, REPORTERS_MAX));
    const compared = comparedSpans(period, range);
    const enrolledDay = dayOfTime(domain.createdAtMs);
    const known = { fromDay: learningFromDay(enrolledDay, range.fromDay), toDay: range.toDay };
    const checks = readLastCheck(domain.lastCheck)?.checks ?? [];
    return {
      domain,
      period,
      range,
      totals: reading.totals(number, range),
      compared: {
        days: compared.now.toDay - compared.now.fromDay + 1,
        now: reading.totals(number, compared.now),
        before: reading.totals(number, compared.before),
      },
      reports: reporters.reduce((sum, { reports }) => sum + reports, 0),
      reporters: reporters.map(({ reporter, ...of }) =>
        reporterWords(reporterView({ ...of, org: reporter === "" ? null : (written.get(reporter) ?? reporter) })),
      ),
      untrusted: {
        reports: reading.untrustedReports(number, range),
        messages: reading.untrustedMessages(number, range),
      },
      sources: new DomainSources(reading, domain).sources(range),
      learning: { enrolledDay, reportedDays: reading.reportsPerDay(number, known).map(({ day }) => day) },
      lastReportAtMs,
      policy: readState(domain.state)?.believed.policy ?? null,
      wantedRecord: recordToPublish(checks),
      failingChecks: checks.filter(({ ok }) => ok === false).map(({ message }) => message),
      advice: await advise(domain),
    };
  };
