import { inTurns } from "../../../foundation/base/in-steps.ts";
import { mostFirst, sumOf } from "../../../foundation/base/sums.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import {
  type MailContent,
  action,
  line,
  list,
  type MailBlock,
  type MailSection,
  type MailTone,
  formatCount,
  plural,
  shortName,
} from "../../../notifications/mail/mail-content.ts";
import {
  type DigestPeriod,
  digestRange,
  rangeBefore,
  dayOfTime,
  isoDay,
  DAY_MS,
  type DayRange,
} from "../../../foundation/base/days.ts";
import type { RollupStore } from "../../insight/sources/rollup-store.ts";
import { readLastCheck, readState, type StatePolicy } from "../../records/domains/domain-state.ts";
import type { Advisor } from "../../insight/advice/advisor.ts";
import type { AdviceStep } from "../../insight/advice/advice-model.ts";
import { isLearned, learningFromDay, type Learning } from "./review-facts.ts";
import { allDomainsLink, domainLink, publishActions, recordToPublish } from "./alert-rule.ts";
import type { Source } from "../../insight/sources/source-response.ts";
import { isForeign, actionableFailures, DomainSources } from "../../insight/sources/domain-sources.ts";
import { UNAUTHENTICATED_KEY } from "../../insight/sources/source-keys.ts";
import { trustSentence, reporterView, reporterWords } from "../../insight/queries/reporter.ts";
import { percentOf, type Totals } from "../../insight/sources/rollup-rows.ts";
import { parseDay } from "../../../foundation/http/day-range.ts";

const SOURCES_MAX = 5;
const REPORTERS_NAMED = 3;
const HUNDRED = 100;
const TONES: Readonly<Record<string, MailTone>> = { authorized: "good", threat: "bad", misconfigured: "bad" };
const PREVIOUS: Readonly<Record<DigestPeriod, string>> = {
  daily: "the day before",
  weekly: "the week before",
  monthly: "the month before",
};

/** A digest about some domains, never none; `more` are left out. Pure. */
export const dmarcDigestMail = (digests: readonly DomainDigestFacts[], more: number): MailContent => ({
  subject: subjectOf(digests),
  sections: digests.map(sectionOf),
  closing: [
    ...(more > 0 ? [`and ${formatCount(more)} more domains.`, allDomainsLink()] : []),
    "You receive this digest as a recipient of these domains.",
  ],
});

const subjectOf = (digests: readonly DomainDigestFacts[]) => {
  const [only] = digests;
  if (digests.length === 1 && only !== undefined) {
    return `DMARC digest for ${only.domain.domain}, ${daysOf(only)}: ${only.reports > 0 ? mailOf(only.totals) : "no reports"}`;
  }
  const problems = digests.filter((facts) => facts.reports === 0 || problemsOf(facts).length > 0).length;
  return `DMARC digest: ${digests.length} domains${problems === 0 ? "" : `, ${problems} without reports or with problems`}`;
};

const sectionOf = (facts: DomainDigestFacts): MailSection => {
  const { domain, totals, reports, sources, untrusted } = facts;
  const failing = sources.filter((source) => actionableFailures(source) > 0);
  const untrustedShare = trustSentence({
    reports,
    messages: totals.messages,
    untrustedReports: untrusted.reports,
    untrustedMessages: untrusted.messages,
  });
  return {
    heading: domain.domain,
    label: domain.label,
    blocks: [
      line(daysOf(facts), "muted"),
      ...problemsOf(facts).map((problem) => line(problem, "bad")),
      line(reports > 0 ? mailOf(totals) : noReports(facts), "strong"),
      line(reports > 0 ? changeOf(facts) : null),
      line(reports > 0 ? incompleteOf(facts) : null, "muted"),
      list(
        "Failing sources",
        failing.map((source) => item(source, failingOf(source))),
        { max: SOURCES_MAX },
      ),
      list(
        "New sources",
        newSources(facts).map((source) => item(source, plural(source.messages, "message"))),
        { max: SOURCES_MAX },
      ),
      line(unauthenticatedOf(sources)),
      line(reports > 0 ? `Reporters: ${reportersOf(facts)}` : null),
      line(untrustedShare),
      line(`Status: ${domain.status.replace("_", " ")}, ${policyOf(facts.policy)}`),
      ...nextActions(facts),
    ],
  };
};

/** `2026-11-18`, `2026-11-16 to 2026-11-22`. */
const daysOf = ({ range: { fromDay, toDay } }: DomainDigestFacts) =>
  fromDay === toDay ? isoDay(fromDay) : `${isoDay(fromDay)} to ${isoDay(toDay)}`;

const item = (source: Source, count: string) => {
  const { name, service, classification } = source;
  const shown = service === null || service === name ? name : `${name} (${service})`;
  return { text: `${shortName(shown)}, ${classification}: ${count}`, tone: TONES[classification] ?? "plain" };
};

const failingOf = (source: Source) =>
  `${formatCount(actionableFailures(source))} of ${formatCount(source.messages)} fail`;

/** The next step, and what to do for it. The failures are in an earlier block. */
const nextActions = (facts: DomainDigestFacts): readonly MailBlock[] => [
  ...stepActions(facts),
  ...(facts.period === "monthly" && facts.reports > 0
    ? [domainLink(facts.domain, "month", "Show the report to print", `?month=${monthOf(facts)}`)]
    : []),
];

/** `2026-11` */
const monthOf = ({ range: { fromDay } }: DomainDigestFacts) => isoDay(fromDay).slice(0, "2026-11".length);

const stepActions = (facts: DomainDigestFacts): readonly MailBlock[] => {
  const { next, domain, recordToPublish } = facts;
  const { action: code = null, record = null, why } = next ?? { why: "nothing is left to do." };
  if (record !== null) return [action(`Next step: ${why}`), ...publishActions(domain, record)];
  if (code === "fix_record" || code === "publish_record") {
    return [
      action("Next step: correct the DNS record, so that reports arrive."),
      ...publishActions(domain, recordToPublish),
    ];
  }
  const isAboutSources = code === "classify_sources" || code === "fix_sources";
  return [
    action(`Next step: ${why}`),
    isAboutSources
      ? domainLink(domain, "sources", "Show the sources")
      : domainLink(domain, "overview", "Show the domain"),
  ];
};

/** Sources of the period that were not seen before, except those seen while the domain was learned. */
const newSources = ({ range, sources, learning }: DomainDigestFacts) => {
  const from = isoDay(range.fromDay);
  return sources
    .filter((source) => !isForeign(source))
    .filter(({ first_day }) => first_day >= from && isLearned(learning, parseDay(first_day) ?? 0))
    .toSorted(mostFirst("messages"));
};

/** `Unauthenticated mail from 41 networks: 312 messages, …`; null when there was none. */
const unauthenticatedOf = (sources: readonly Source[]) => {
  const forged = sources.find(({ key }) => key === UNAUTHENTICATED_KEY);
  if (forged === undefined) return null;
  const { name, messages, rejected, quarantined } = forged;
  return `${name}: ${plural(messages, "message")}, ${formatCount(rejected)} rejected, ${formatCount(quarantined)} quarantined`;
};

/** What keeps reports from arriving. */
const problemsOf = ({ domain, failingChecks }: DomainDigestFacts) => {
  if (domain.status === "active") return [];
  return domain.status === "action_required" && failingChecks.length === 0
    ? ["The DNS records are incorrect."]
    : failingChecks;
};

const noReports = ({ lastReportAtMs }: DomainDigestFacts) =>
  lastReportAtMs === null
    ? "No reports have arrived yet. The first takes 24 to 48 hours after the record is published."
    : `No reports about these days. The last report arrived on ${new Date(lastReportAtMs).toISOString().slice(0, 10)}.`;

/** `1,790 messages, 98.2 % passed DMARC, 60 forwarded`. */
const mailOf = ({ messages, aligned, forwarded }: Totals) => {
  const share = percentOf(aligned, messages);
  if (share === null) return "No mail";
  const passed = `${plural(messages, "message")}, ${share} % passed DMARC`;
  return forwarded > 0 ? `${passed}, ${formatCount(forwarded)} forwarded` : passed;
};

const changeOf = ({ period, range, compared: { days, now, before } }: DomainDigestFacts) => {
  const [share, shareBefore] = [percentOf(now.aligned, now.messages), percentOf(before.aligned, before.messages)];
  if (share === null || shareBefore === null) return null;
  const points = Math.round((share - shareBefore) * 10) / 10;
  const mail = Math.round((now.messages / before.messages - 1) * HUNDRED);
  const isPart = days <= range.toDay - range.fromDay;
  const part = isPart ? ` on the first ${days} days, compared with those of` : " compared with";
  return `${signed(points)} percentage points and ${signed(mail)} % messages${part} ${PREVIOUS[period]}`;
};

const incompleteOf = ({ period, range }: DomainDigestFacts) => {
  const day = incompleteDay(period, range);
  return day === null ? null : `Reports about ${isoDay(day)} may still arrive.`;
};

const signed = (value: number) => (value === 0 ? "±0" : `${value > 0 ? "+" : "−"}${formatCount(Math.abs(value))}`);

const reportersOf = ({ reports, reporters }: DomainDigestFacts) => {
  const names = reporters.slice(0, REPORTERS_NAMED).join(", ");
  const more = reporters.length - REPORTERS_NAMED;
  return `${plural(reports, "report")} from ${more > 0 ? `${names} and ${more} more` : names}`;
};

const policyOf = (policy: DomainDigestFacts["policy"]) => {
  if (policy === null) return "no policy known";
  const test = policy.t === "y" ? "; t=y" : "";
  return `p=${policy.p}${test}${policy.inherited_from === null ? "" : ` from ${policy.inherited_from}`}`;
};

/** The facts about a domain of which a digest is made. */
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

/** A digest names fewer reporters than these. */
const REPORTERS_MAX = 10;

/** Reads what a digest says about a domain out of the daily sums. */
export const createDigestReader =
  ({ reading, advise }: { readonly reading: RollupStore; readonly advise: Advisor }) =>
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
    const read = await inTurns(DomainSources.open(reading, domain));
    const totals = (days: DayRange) => inTurns(reading.totals(number, days));
    return {
      domain,
      period,
      range,
      lastReportAtMs,
      totals: await totals(range),
      compared: { days: lengthOf(now), now: await totals(now), before: await totals(before) },
      reports: sumOf(reporters, "reports"),
      reporters: reporters.map(({ reporter, ...of }) =>
        reporterWords(reporterView({ ...of, org: reporter === "" ? null : (written.get(reporter) ?? reporter) })),
      ),
      untrusted: reading.untrusted(number, range),
      sources: await inTurns(read.sources(range)),
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
export const comparedRanges = (period: DigestPeriod, range: DayRange): Record<"now" | "before", DayRange> => {
  const before = rangeBefore(period, range);
  const complete = lengthOf(range) - (incompleteDay(period, range) === null ? 0 : 1);
  const days = Math.min(complete, lengthOf(before));
  return { now: firstDays(range, days), before: firstDays(before, days) };
};

const lengthOf = ({ fromDay, toDay }: DayRange) => toDay - fromDay + 1;
const firstDays = ({ fromDay }: DayRange, days: number) => ({ fromDay, toDay: fromDay + days - 1 });
