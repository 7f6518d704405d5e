import { isoDay, type DayRange } from "../../base/days.ts";
import { percentOf } from "../sources/day-range.ts";
import type { ShownSummary } from "./source-schemas.ts";
import { reporterView, trustSentence } from "./reporter.ts";
import { addTotals, CLASSIFICATIONS, NO_TOTALS, type RollupStore, type Totals } from "../sources/rollup-store.ts";
import type { SourceDomain } from "../sources/domain-sources.ts";
import { actionableFailures, DomainSources } from "../sources/domain-sources.ts";
import type { Source } from "../sources/source-response.ts";

const TOP_SOURCES = 5;
const TOP_REPORTERS = 10;
const TOP_NAMES = 20;

const classesOf = (sources: readonly Source[]): ShownSummary["classes"] =>
  CLASSIFICATIONS.map((classification) => {
    const of = sources.filter((source) => source.classification === classification);
    return {
      classification,
      sources: of.length,
      messages: of.reduce((sum, { messages }) => sum + messages, 0),
      aligned: of.reduce((sum, { aligned }) => sum + aligned, 0),
    };
  });

/** The sums of all sources: every message is of exactly one. */
const totalsOf = (sources: readonly Source[]): Totals =>
  sources.reduce<Totals>(
    (sum, source) =>
      addTotals(sum, {
        messages: source.messages,
        aligned: source.aligned,
        alignedDkim: source.dkim_aligned,
        alignedSpf: source.spf_aligned,
        forwarded: source.forwarded,
        authenticated: source.authenticated_unaligned,
        quarantined: source.quarantined,
        rejected: source.rejected,
      }),
    NO_TOTALS,
  );

/** How a domain fared in a range, at a glance. */
export const summarizeDomain = (store: RollupStore, domain: SourceDomain, range: DayRange): ShownSummary => {
  const { number } = domain;
  const sources = new DomainSources(store, domain).sources(range);
  const totals = totalsOf(sources);
  const reporters = store.reporters(number, range);
  const topReporters = reporters.slice(0, TOP_REPORTERS);
  const written = store.writtenNames(number, topReporters);
  const span = store.span(number);
  const untrusted = store.untrustedMessages(number, range);
  const untrustedReports = store.untrustedReports(number, range);
  const reports = reporters.reduce((sum, each) => sum + each.reports, 0);
  return {
    domain_id: domain.id,
    domain: domain.domain,
    from: isoDay(range.fromDay),
    to: isoDay(range.toDay),
    reports,
    reporters: reporters.length,
    messages: totals.messages,
    aligned: totals.aligned,
    failing: totals.messages - totals.aligned,
    aligned_percent: percentOf(totals.aligned, totals.messages),
    unauthenticated_messages: untrusted,
    unauthenticated_percent: percentOf(untrusted, totals.messages),
    unauthenticated_reports: untrustedReports,
    unauthenticated_note: trustSentence({
      ...{ reports, messages: totals.messages },
      ...{ untrustedReports, untrustedMessages: untrusted },
    }),
    dkim_aligned: totals.alignedDkim,
    spf_aligned: totals.alignedSpf,
    forwarded: totals.forwarded,
    authenticated_unaligned: totals.authenticated,
    dispositions: {
      none: totals.messages - totals.quarantined - totals.rejected,
      quarantine: totals.quarantined,
      reject: totals.rejected,
    },
    classes: classesOf(sources),
    top_sources: sources.filter((source) => actionableFailures(source) > 0).slice(0, TOP_SOURCES),
    top_reporters: topReporters.map(({ reporter, author, authenticatedAs, reports, messages, aligned }) => {
      const org = reporter === "" ? null : (written.get(reporter) ?? reporter);
      return { org_name: org, reporter: reporterView({ org, author, authenticatedAs }), reports, messages, aligned };
    }),
    names: store
      .names(number, range)
      .slice(0, TOP_NAMES)
      .map(({ name, ...counts }) => ({ header_from: name === "" ? null : name, ...counts })),
    first_day: span === null ? null : isoDay(span.firstDay),
    last_day: span === null ? null : isoDay(span.lastDay),
  };
};
