import { isoDay, type DayRange } from "../../base/days.ts";
import { isLearned, type Learning } from "./alert-learning.ts";
import { lateDayOf } from "./digest-range.ts";
import type { Hint } from "./digest-page.ts";
import { type Place, publishHints, readCommand } from "./mail-words.ts";
import type { DigestPeriod } from "../../base/digest-schedule.ts";
import type { Advice, AdviceStep } from "../advice/advice.ts";
import type { StatePolicy } from "../domains/domain-state.ts";
import type { DomainRow } from "../domains/domain-store.ts";
import { parseDay, percentOf } from "../sources/day-range.ts";
import { trustSentence } from "../queries/reporter.ts";
import type { Totals } from "../sources/rollup-store.ts";
import { UNAUTHENTICATED_KEY } from "../sources/unauthenticated-mail.ts";
import { isForeign, actionableFailures } from "../sources/domain-sources.ts";
import type { Source } from "../sources/source-response.ts";

/** All that a digest says about a domain. */
export interface DigestFacts {
  readonly domain: Pick<DomainRow, "id" | "domain" | "label" | "status">;
  readonly period: DigestPeriod;
  readonly range: DayRange;
  readonly totals: Totals;
  /** As many days of the period and of the one before: those that are whole already. */
  readonly compared: { readonly days: number; readonly now: Totals; readonly before: Totals };
  /** Reports of the period. */
  readonly reports: number;
  /** Reporters in a few words each, the most messages first. */
  readonly reporters: readonly string[];
  /** Of the reports and messages: those that rest on reports that are not trusted. */
  readonly untrusted: { readonly reports: number; readonly messages: number };
  readonly sources: readonly Source[];
  readonly learning: Learning;
  /** Null before the first report. */
  readonly lastReportAtMs: number | null;
  readonly policy: StatePolicy | null;
  readonly failingChecks: readonly string[];
  /** What the last look at the DNS would have the owner publish; null where that is not known, or nothing. */
  readonly wantedRecord: string | null;
  readonly advice: Pick<Advice, "stage"> & { readonly next: Pick<AdviceStep, "action" | "record" | "why"> | null };
}

/** A sender as a digest shows it. */
export interface DigestSource {
  readonly name: string;
  readonly classification: string;
  readonly messages: number;
  readonly failing: number;
}

/** What is said about a domain, in words and numbers that text and page share. */
export interface DigestSection {
  readonly domainId: string;
  readonly domain: string;
  readonly label: string | null;
  /** `2026-11-18`, `2026-11-16 to 2026-11-22`. */
  readonly days: string;
  /** Something must be done for reports to come. */
  readonly problems: readonly string[];
  /** `1,790 messages, 98.2 % passed DMARC`, or that there were no reports. */
  readonly headline: string;
  /** Against the period before; null where there is nothing to compare. */
  readonly change: string | null;
  /** That the numbers may still grow; null where they hardly do. */
  readonly late: string | null;
  readonly hasReports: boolean;
  readonly failing: readonly DigestSource[];
  readonly failingMore: number;
  readonly newSources: readonly DigestSource[];
  readonly newMore: number;
  /** `Unauthenticated mail from 41 networks: 312 messages`; null when there was none. */
  readonly spoofing: string | null;
  /** `12 reports from google.com, Yahoo and 2 more`. */
  readonly reporters: string | null;
  /** How much rests on reports that are not trusted; null when nothing does. */
  readonly untrusted: string | null;
  /** `active, p=quarantine`. */
  readonly standing: string;
  /** The next step towards enforcement; null when there is none. */
  readonly next: string | null;
  /** How it is taken. */
  readonly hints: readonly Hint[];
}

const SOURCES_MAX = 5;
const REPORTERS_MAX = 3;
const HUNDRED = 100;

/** `1,790`. */
export const number = (value: number): string => value.toLocaleString("en-US");
/** `1,790 messages`. */
export const plural = (count: number, what: string): string => `${number(count)} ${what}${count === 1 ? "" : "s"}`;

/** Puts the facts of a domain into words; `baseUrl` is that of the service, without a `/` at the end. Pure. */
export const sectionOf = (facts: DigestFacts, baseUrl: string): DigestSection => {
  const { domain, range, totals, reports, sources } = facts;
  const hasReports = reports > 0;
  const failing = sources.filter((source) => actionableFailures(source) > 0);
  const fresh = newcomers(facts);
  return {
    domainId: domain.id,
    domain: domain.domain,
    label: domain.label,
    days: range.fromDay === range.toDay ? isoDay(range.fromDay) : `${isoDay(range.fromDay)} to ${isoDay(range.toDay)}`,
    problems: problemsOf(facts),
    headline: hasReports ? mailOf(totals) : `No reports${sinceWhen(facts)}`,
    change: hasReports ? changeOf(facts) : null,
    late: hasReports ? lateOf(facts) : null,
    hasReports,
    failing: failing.slice(0, SOURCES_MAX).map(digestSource),
    failingMore: Math.max(0, failing.length - SOURCES_MAX),
    newSources: fresh.slice(0, SOURCES_MAX).map(digestSource),
    newMore: Math.max(0, fresh.length - SOURCES_MAX),
    spoofing: spoofingOf(sources),
    reporters: hasReports ? reportersOf(facts) : null,
    untrusted: trustSentence({
      ...{ reports, messages: totals.messages },
      ...{ untrustedReports: facts.untrusted.reports, untrustedMessages: facts.untrusted.messages },
    }),
    standing: `${domain.status.replace("_", " ")}, ${policyOf(facts.policy)}`,
    ...nextOf(facts, { baseUrl, domainId: domain.id }),
  };
};

/** The next step, and how it is taken. What fails stands above already. */
const nextOf = (facts: DigestFacts, place: Place): Pick<DigestSection, "next" | "hints"> => {
  const {
    advice,
    domain: { domain },
    wantedRecord,
  } = facts;
  const { action = null, record = null, why: next = null } = advice.next ?? {};
  if (record !== null) return { next, hints: publishHints(place, domain, record) };
  if (action === "mend_record" || action === "publish_record") {
    return { next: "Mend the DNS record, so that reports come.", hints: publishHints(place, domain, wantedRecord) };
  }
  const isAboutSources = action === "classify_sources" || action === "fix_sources";
  return { next, hints: isAboutSources ? [{ words: "All sources:", code: readCommand(place, "/sources") }] : [] };
};

/** Senders of the period that were not seen before, but for those from which the domain was learnt. */
const newcomers = ({ range, sources, learning }: DigestFacts): readonly Source[] => {
  const from = isoDay(range.fromDay);
  return sources
    .filter((source) => !isForeign(source))
    .filter(({ first_day }) => first_day >= from && isLearned(learning, parseDay(first_day) ?? 0))
    .toSorted((a, b) => b.messages - a.messages);
};

const spoofingOf = (sources: readonly Source[]): string | null => {
  const forged = sources.find(({ key }) => key === UNAUTHENTICATED_KEY);
  if (forged === undefined) return null;
  const { name, messages, rejected, quarantined } = forged;
  return `${name}: ${plural(messages, "message")}, ${number(rejected)} rejected, ${number(quarantined)} quarantined`;
};

const digestSource = (source: Source): DigestSource => {
  const { name, service, classification, messages } = source;
  const shown = service === null || service === name ? name : `${name} (${service})`;
  return { name: shown, classification, messages, failing: actionableFailures(source) };
};

const problemsOf = ({ domain, failingChecks }: DigestFacts): readonly string[] =>
  domain.status === "action_required" && failingChecks.length === 0
    ? ["The DNS records are not in order."]
    : domain.status === "active"
      ? []
      : failingChecks;

const sinceWhen = ({ lastReportAtMs }: DigestFacts): string => {
  if (lastReportAtMs === null) return " have come yet. The first takes 24 to 48 hours after the record is published.";
  return ` about this time. The last one arrived on ${new Date(lastReportAtMs).toISOString().slice(0, "YYYY-MM-DD".length)}.`;
};

const mailOf = ({ messages, aligned, forwarded }: Totals): string => {
  const share = percentOf(aligned, messages);
  const passedOn = forwarded > 0 ? `, ${number(forwarded)} passed on by forwarders` : "";
  return share === null ? "No mail" : `${plural(messages, "message")}, ${share} % passed DMARC${passedOn}`;
};

const BEFORE: Readonly<Record<DigestPeriod, string>> = {
  daily: "the day before",
  weekly: "the week before",
  monthly: "the month before",
};

const changeOf = ({ period, range, compared: { days, now, before } }: DigestFacts): string | null => {
  const [share, shareBefore] = [percentOf(now.aligned, now.messages), percentOf(before.aligned, before.messages)];
  if (share === null || shareBefore === null) return null;
  const points = Math.round((share - shareBefore) * 10) / 10;
  const mail = Math.round((now.messages / before.messages - 1) * HUNDRED);
  const isPart = days <= range.toDay - range.fromDay;
  const [on, those] = isPart ? [` on the first ${days} days`, "those of "] : ["", ""];
  return `${signed(points)} points and ${signed(mail)} % messages${on} against ${those}${BEFORE[period]}`;
};

const lateOf = ({ period, range }: DigestFacts): string | null => {
  const day = lateDayOf(period, range);
  return day === null ? null : `Reports about ${isoDay(day)} may still come.`;
};

const signed = (value: number): string => (value > 0 ? `+${number(value)}` : value < 0 ? `−${number(-value)}` : "±0");

const reportersOf = ({ reports, reporters }: DigestFacts): string => {
  const names = reporters.slice(0, REPORTERS_MAX);
  const more = reporters.length - names.length;
  const who = more > 0 ? `${names.join(", ")} and ${more} more` : names.join(", ");
  return `${plural(reports, "report")} from ${who}`;
};

const policyOf = (policy: StatePolicy | null): string => {
  if (policy === null) return "no policy known";
  const test = policy.t === "y" ? "; t=y" : "";
  return `p=${policy.p}${test}${policy.inherited_from === null ? "" : ` from ${policy.inherited_from}`}`;
};
