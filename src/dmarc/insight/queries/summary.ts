import type { Steps } from "../../../foundation/base/in-steps.ts";
import { sumFields, sumOf } from "../../../foundation/base/sums.ts";
import { z } from "zod";
import { countField, dayField, nullableText, textField } from "../../../foundation/http/schema-fields.ts";
import { isoDay, type DayRange, dayOfTime } from "../../../foundation/base/days.ts";
import { percentOf, type ReporterTotals, NO_TOTALS, type DomainDay } from "../sources/rollup-rows.ts";
import { actionableFailures, type SourceDomain } from "../sources/domain-sources.ts";
import { CLASSIFICATIONS, type RollupStore } from "../sources/rollup-store.ts";
import { type Source, sourceSchema } from "../sources/source-response.ts";
import { REPORTER_STANDINGS, standingOf } from "../../records/domains/reporter-store.ts";
import { reporterSchema, reporterView, trustSentence, unknownReporterSentence } from "./reporter.ts";
import type { Clock } from "../../../foundation/base/clock.ts";
import { RANGE_DAYS } from "../../../foundation/http/day-range.ts";

const percent = (of: string) =>
  z.number().nullable().describe(`${of} in percent, with one decimal; null when there are no messages.`);
const firstDay = (which: string) =>
  z.iso.date().nullable().describe(`The ${which} day in any report, whatever the range; null before the first report.`);

const messages = countField("Messages in reports.");
const aligned = countField("Messages that passed DMARC, by aligned DKIM or aligned SPF.");
const reports = countField("Number of reports.");

export const summarySchema = z
  .object({
    domain_id: z.uuid().describe("The id of the domain."),
    domain: textField("The domain, in lower-case A-labels."),
    from: dayField("The first UTC day of the range."),
    to: dayField("The last UTC day of the range, inclusive."),
    reports,
    reporters: countField("Number of reporters."),
    messages,
    aligned,
    failing: countField("Messages that failed DMARC."),
    aligned_percent: percent("Share of aligned messages"),
    unauthenticated_messages: countField(
      "Messages in untrusted reports, whose mail is not authenticated as the reporter's. They are counted here; advice ignores them.",
    ),
    unauthenticated_percent: percent("Share of messages in untrusted reports"),
    unauthenticated_reports: countField("Number of untrusted reports."),
    unauthenticated_note: nullableText(
      "How much of the figures comes from untrusted reports, in a sentence; null for nothing.",
    ),
    dkim_aligned: countField("Messages with an aligned DKIM signature that passed."),
    spf_aligned: countField("Messages that passed SPF for an aligned envelope domain."),
    forwarded: countField("Failing messages that the receiver recognized as forwarded."),
    authenticated_unaligned: countField("Failing messages for which DKIM or SPF passed for another domain."),
    dispositions: z
      .object({
        none: countField("Messages delivered, as far as DMARC decides."),
        quarantine: countField("Messages quarantined."),
        reject: countField("Messages rejected."),
      })
      .describe("What receivers did with the messages."),
    classes: z
      .array(
        z.object({
          classification: z.enum(CLASSIFICATIONS).describe("The class."),
          sources: countField("Number of sources of this class."),
          messages,
          aligned,
        }),
      )
      .describe("The messages by class of their source; always all five classes."),
    unknown_reporter_messages: countField(
      "Messages in reports of unknown reporters. They are counted here; where known reporters cover the domain, advice and alerts ignore them.",
    ),
    unknown_reporter_note: nullableText(
      "How much of the figures comes from unknown reporters, in a sentence; null for nothing.",
    ),
    top_sources: z.array(sourceSchema).describe("The five sources with the most actionable failures."),
    top_reporters: z
      .array(
        z.object({
          org_name: nullableText("The name in the reports; null when there is none."),
          reporter: reporterSchema,
          standing: z
            .enum(REPORTER_STANDINGS)
            .describe(
              "`known`: in the list that ships with the product, or you uploaded its reports; `accepted`: by you; `unknown`: authenticated, but anybody can be one; `unauthenticated`.",
            ),
          reports,
          messages,
          aligned,
        }),
      )
      .describe(
        "The ten reporters with the most messages, by the latest spelling of their name, ignoring case. A reporter that uses the name of another one is listed separately.",
      ),
    names: z
      .array(
        z.object({
          header_from: nullableText("The domain in From; null for all that are not at or below the domain."),
          messages,
          aligned,
        }),
      )
      .describe("The header_from domains, at most twenty."),
    first_day: firstDay("first"),
    last_day: firstDay("last"),
  })
  .meta({ title: "DmarcSummary" });

export type Summary = Readonly<z.infer<typeof summarySchema>>;

const TOP_SOURCES = 5;
const TOP_REPORTERS = 10;
const TOP_NAMES = 20;

const SUMMED = [
  "messages",
  "aligned",
  "quarantined",
  "rejected",
  "dkim_aligned",
  "spf_aligned",
  "forwarded",
  "authenticated_unaligned",
] as const;

/** The summary of a domain. Its counts are the sums of all sources: every message belongs to exactly one. */
export const summarizeDomain = (
  rollups: RollupStore,
  domain: SourceDomain,
  range: DayRange,
  sources: readonly Source[],
): Summary => {
  const { number } = domain;
  const {
    messages: all,
    aligned: passed,
    quarantined: quarantine,
    rejected: reject,
    ...others
  } = sumFields(sources, ...SUMMED);
  const reporters = rollups.reporters(number, range);
  const reportCount = sumOf(reporters, "reports");
  const { messages: untrustedMessages, reports: untrustedReports } = rollups.untrusted(number, range);
  const unknown = unknownFigures(rollups, number, reporters);
  const span = rollups.span(number);
  return {
    domain_id: domain.id,
    domain: domain.domain,
    from: isoDay(range.fromDay),
    to: isoDay(range.toDay),
    reports: reportCount,
    reporters: reporters.length,
    messages: all,
    aligned: passed,
    failing: all - passed,
    aligned_percent: percentOf(passed, all),
    unauthenticated_messages: untrustedMessages,
    unauthenticated_percent: percentOf(untrustedMessages, all),
    unauthenticated_reports: untrustedReports,
    unauthenticated_note: trustSentence({
      reports: reportCount,
      messages: all,
      untrustedReports,
      untrustedMessages,
      unknown: rollups.domainReporters(number).unknown,
    }),
    unknown_reporter_messages: unknown.messages,
    unknown_reporter_note: unknownReporterSentence({ ...unknown, ofMessages: all }),
    ...others,
    dispositions: { none: all - quarantine - reject, quarantine, reject },
    classes: classesOf(sources),
    top_sources: sources.filter((source) => actionableFailures(source) > 0).slice(0, TOP_SOURCES),
    top_reporters: topReportersOf(rollups, number, reporters.slice(0, TOP_REPORTERS)),
    names: rollups
      .names(number, range)
      .slice(0, TOP_NAMES)
      .map(({ name, ...counts }) => ({ header_from: name === "" ? null : name, ...counts })),
    first_day: span === null ? null : isoDay(span.firstDay),
    last_day: span === null ? null : isoDay(span.lastDay),
  };
};

const classesOf = (sources: readonly Source[]) =>
  CLASSIFICATIONS.map((classification) => {
    const of = sources.filter((source) => source.classification === classification);
    return { classification, sources: of.length, ...sumFields(of, "messages", "aligned") };
  });

const unknownFigures = (rollups: RollupStore, number: number, reporters: readonly ReporterTotals[]) => {
  const { isCovered, ...standings } = rollups.domainReporters(number);
  const unknown = reporters.filter(({ voucher }) => standingOf({ isCovered, ...standings }, voucher) === "unknown");
  return {
    isCovered,
    reporters: new Set(unknown.map(({ voucher }) => voucher)).size,
    messages: sumOf(unknown, "messages"),
  };
};

const topReportersOf = (rollups: RollupStore, number: number, reporters: readonly ReporterTotals[]) => {
  const written = rollups.writtenNames(number, reporters);
  const standings = rollups.domainReporters(number);
  return reporters.map(({ reporter, author, authenticatedAs, voucher, reports, messages, aligned }) => {
    const org = reporter === "" ? null : (written.get(reporter) ?? reporter);
    const standing = standingOf(standings, voucher);
    const shown = reporterView({ org, author, authenticatedAs });
    return { org_name: org, reporter: shown, standing, reports, messages, aligned };
  });
};

const pointSchema = z.object({
  date: dayField("The UTC day."),
  reports,
  messages,
  aligned,
  failing: countField("Messages that failed DMARC."),
  dkim_aligned: countField("Messages with an aligned DKIM signature that passed."),
  spf_aligned: countField("Messages that passed SPF for an aligned envelope domain."),
  forwarded: countField("Failing messages that the receiver recognized as forwarded."),
  quarantined: countField("Messages that receivers quarantined."),
  rejected: countField("Messages that receivers rejected."),
  aligned_percent: percent("Share of aligned messages"),
});

export const timeseriesSchema = z
  .object({
    domain_id: z.uuid().describe("The id of the domain."),
    from: dayField("The first UTC day of the range."),
    to: dayField("The last UTC day of the range, inclusive."),
    interval: z.literal("day").describe("The length of each point."),
    points: z.array(pointSchema).describe("Every day of the range, the oldest first."),
  })
  .meta({ title: "DmarcTimeseries" });

/** The messages of each day of a range; zeros on days that no report covers. */
export function* timeseriesOf(
  rollups: RollupStore,
  domain: SourceDomain,
  range: DayRange,
): Steps<Readonly<z.infer<typeof timeseriesSchema>>> {
  const { fromDay, toDay } = range;
  const totals = new Map((yield* rollups.perDay(domain.number, range)).map((row) => [row.day, row]));
  const reports = new Map(rollups.reportsPerDay(domain.number, range).map((row) => [row.day, row.reports]));
  const points = Array.from({ length: toDay - fromDay + 1 }, (_, index) => {
    const day = fromDay + index;
    const { messages, aligned, ...rest } = totals.get(day) ?? NO_TOTALS;
    return {
      date: isoDay(day),
      reports: reports.get(day) ?? 0,
      messages,
      aligned,
      failing: messages - aligned,
      dkim_aligned: rest.alignedDkim,
      spf_aligned: rest.alignedSpf,
      forwarded: rest.forwarded,
      quarantined: rest.quarantined,
      rejected: rest.rejected,
      aligned_percent: percentOf(aligned, messages),
    };
  });
  return { domain_id: domain.id, from: isoDay(fromDay), to: isoDay(toDay), interval: "day", points };
}

const perDay = (description: string) => z.array(z.int().nonnegative()).describe(description);

const figures = z.object({
  messages,
  aligned: countField("Messages that passed DMARC."),
  failing: countField("Messages that failed DMARC."),
  aligned_percent: percent("Share of aligned messages"),
});

/** Message counts of a domain on the last 30 UTC days, including today. */
export const domainFiguresSchema = z
  .object({
    last_7_days: figures.describe("The last seven days, including today."),
    last_30_days: figures.describe("The last 30 days, including today."),
    days: z
      .object({
        from: dayField("The first of the 30 days."),
        messages: perDay("Messages of each day."),
        failing: perDay("Failing messages of each day."),
      })
      .describe("A number for each of the 30 days, the oldest first: for a small chart."),
  })
  .meta({ title: "DmarcDomainFigures" });
/** Reads the figures of domains by their numbers; the result has every given number. */
export type ReadFigures = (
  numbers: readonly number[],
) => ReadonlyMap<number, Readonly<z.output<typeof domainFiguresSchema>>>;

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

const figuresOf = (days: readonly DomainDay[], { fromDay, toDay }: DayRange) => {
  const messages = new Array<number>(RANGE_DAYS).fill(0);
  const failing = new Array<number>(RANGE_DAYS).fill(0);
  for (const one of days) {
    messages[one.day - fromDay] = one.messages;
    failing[one.day - fromDay] = one.messages - one.aligned;
  }
  return {
    last_7_days: sumOfDays(days.filter(({ day }) => day > toDay - WEEK_DAYS)),
    last_30_days: sumOfDays(days),
    days: { from: isoDay(fromDay), messages, failing },
  };
};

const sumOfDays = (days: readonly DomainDay[]) => {
  const { messages, aligned } = sumFields(days, "messages", "aligned");
  return { messages, aligned, failing: messages - aligned, aligned_percent: percentOf(aligned, messages) };
};
