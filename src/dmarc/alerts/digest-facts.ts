import type { DayRange } from "../../base/days.ts";
import type { Advice } from "../advice/advice.ts";
import type { DigestFacts } from "./digest.ts";
import { type DigestPeriod, rangeBefore } from "../domains/digest-schedule.ts";
import { readLastCheck, readState } from "../domains/domain-state.ts";
import type { DomainRow } from "../domains/domain-store.ts";
import type { ReadingStore } from "../reading/reading-store.ts";
import type { SourceReader } from "../reading/sources.ts";

export interface DigestReaderDeps {
  readonly reading: ReadingStore;
  readonly reader: Pick<SourceReader, "sources">;
  readonly advise: (domain: DomainRow) => Promise<Advice>;
}

/** Reads what a digest says about a domain out of the daily sums. */
export const createDigestReader =
  ({ reading, reader, advise }: DigestReaderDeps) =>
  async (
    domain: DomainRow,
    { period, range }: { readonly period: DigestPeriod; readonly range: DayRange },
  ): Promise<DigestFacts> => {
    const { number, lastReportAtMs } = domain;
    const reporters = reading.reporters(number, range);
    const checks = readLastCheck(domain.lastCheck)?.checks ?? [];
    return {
      domain,
      period,
      range,
      totals: reading.totals(number, range),
      previous: reading.totals(number, rangeBefore(period, range)),
      reports: reporters.reduce((sum, { reports }) => sum + reports, 0),
      reporters: reporters.map(({ reporter }) => reporter),
      sources: reader.sources(domain, range),
      firstDay: reading.span(number)?.firstDay ?? null,
      lastReportAtMs,
      policy: readState(domain.state)?.believed.policy ?? null,
      failingChecks: checks.filter(({ ok }) => ok === false).map(({ message }) => message),
      advice: await advise(domain),
    };
  };
