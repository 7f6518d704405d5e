import { isoDay, type DayRange } from "../../base/days.ts";
import { type DigestPeriod, rangeBefore } from "../domains/digest-schedule.ts";
import type { Advice } from "../advice/advice.ts";
import type { StatePolicy } from "../domains/domain-state.ts";
import type { DomainRow } from "../domains/domain-store.ts";
import { percentOf } from "../reading/range.ts";
import type { Totals } from "../reading/reading-store.ts";
import { troubleOf } from "../reading/sources.ts";
import type { ShownSource } from "../reading/source-view.ts";

/** All that a digest says about a domain. */
export interface DigestFacts {
  readonly domain: Pick<DomainRow, "domain" | "label" | "status">;
  readonly period: DigestPeriod;
  readonly range: DayRange;
  readonly totals: Totals;
  /** Of the period before. */
  readonly previous: Totals;
  /** Reports of the period. */
  readonly reports: number;
  /** Names of reporters, the most messages first; empty for one without. */
  readonly reporters: readonly string[];
  readonly sources: readonly ShownSource[];
  /** The first day that any report about the domain tells of; null before the first report. */
  readonly firstDay: number | null;
  readonly lastReportAtMs: number | null;
  readonly policy: StatePolicy | null;
  readonly failingChecks: readonly string[];
  readonly advice: Pick<Advice, "stage" | "next">;
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
  readonly hasReports: boolean;
  readonly failing: readonly DigestSource[];
  readonly failingMore: number;
  readonly newSources: readonly DigestSource[];
  readonly newMore: number;
  /** `12 reports from google.com, Yahoo and 2 more`. */
  readonly reporters: string | null;
  /** `active, p=quarantine`. */
  readonly standing: string;
  /** The next step towards enforcement; null when there is none. */
  readonly next: string | null;
  /** What to publish for it, where that is a record. */
  readonly nextRecord: string | null;
}

const SOURCES_MAX = 5;
const REPORTERS_MAX = 3;
const LEARNING_DAYS = 7;
const HUNDRED = 100;

/** `1,790`. */
export const number = (value: number): string => value.toLocaleString("en-US");
/** `1,790 messages`. */
export const plural = (count: number, what: string): string => `${number(count)} ${what}${count === 1 ? "" : "s"}`;

/** Puts the facts of a domain into words. Pure. */
export const sectionOf = (facts: DigestFacts): DigestSection => {
  const { domain, range, totals, reports, sources, advice } = facts;
  const hasReports = reports > 0;
  const failing = sources.filter((source) => troubleOf(source) > 0);
  const fresh = newcomers(facts);
  return {
    domain: domain.domain,
    label: domain.label,
    days: range.fromDay === range.toDay ? isoDay(range.fromDay) : `${isoDay(range.fromDay)} to ${isoDay(range.toDay)}`,
    problems: problemsOf(facts),
    headline: hasReports ? mailOf(totals) : `No reports${sinceWhen(facts)}`,
    change: hasReports ? changeOf(facts) : null,
    hasReports,
    failing: failing.slice(0, SOURCES_MAX).map(digestSource),
    failingMore: Math.max(0, failing.length - SOURCES_MAX),
    newSources: fresh.slice(0, SOURCES_MAX).map(digestSource),
    newMore: Math.max(0, fresh.length - SOURCES_MAX),
    reporters: hasReports ? reportersOf(facts) : null,
    standing: `${domain.status.replace("_", " ")}, ${policyOf(facts.policy)}`,
    next: nextOf(facts),
    nextRecord: advice.next?.record ?? null,
  };
};

/** The failing checks stand above already. */
const nextOf = ({ advice: { next }, failingChecks }: DigestFacts): string | null =>
  next?.action === "mend_record" && failingChecks.length > 0 ? "Publish what GET …/dns says." : (next?.why ?? null);

/** Senders of the period that were not seen before, but for those of the first week. */
const newcomers = ({ range, sources, firstDay }: DigestFacts): readonly ShownSource[] => {
  if (firstDay === null) return [];
  const from = isoDay(Math.max(range.fromDay, firstDay + LEARNING_DAYS));
  return sources.filter(({ first_day }) => first_day >= from).toSorted((a, b) => b.messages - a.messages);
};

const digestSource = (source: ShownSource): DigestSource => {
  const { name, service, classification, messages } = source;
  const shown = service === null || service === name ? name : `${name} (${service})`;
  return { name: shown, classification, messages, failing: troubleOf(source) };
};

const problemsOf = ({ domain, failingChecks }: DigestFacts): readonly string[] =>
  domain.status === "action_required" && failingChecks.length === 0
    ? ["The DNS records are not in order: see dns_records."]
    : domain.status === "active"
      ? []
      : failingChecks;

const sinceWhen = ({ lastReportAtMs, firstDay }: DigestFacts): string => {
  if (firstDay === null || lastReportAtMs === null)
    return " have come yet. The first takes 24 to 48 hours after the record is published.";
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

const changeOf = ({ period, range, totals, previous }: DigestFacts): string | null => {
  const [share, shareBefore] = [
    percentOf(totals.aligned, totals.messages),
    percentOf(previous.aligned, previous.messages),
  ];
  if (share === null || shareBefore === null) return null;
  const points = Math.round((share - shareBefore) * 10) / 10;
  const mail = Math.round((totals.messages / previous.messages - 1) * HUNDRED);
  const before = rangeBefore(period, range);
  const isSameLength = before.toDay - before.fromDay === range.toDay - range.fromDay;
  const amount = isSameLength ? ` and ${signed(mail)} % messages` : "";
  return `${signed(points)} points${amount} against ${BEFORE[period]}`;
};

const signed = (value: number): string => (value > 0 ? `+${number(value)}` : value < 0 ? `−${number(-value)}` : "±0");

const reportersOf = ({ reports, reporters }: DigestFacts): string => {
  const names = reporters.slice(0, REPORTERS_MAX).map((name) => (name === "" ? "one without a name" : name));
  const more = reporters.length - names.length;
  const who = more > 0 ? `${names.join(", ")} and ${more} more` : names.join(", ");
  return `${plural(reports, "report")} from ${who}`;
};

const policyOf = (policy: StatePolicy | null): string => {
  if (policy === null) return "no policy known";
  const test = policy.t === "y" ? "; t=y" : "";
  return `p=${policy.p}${test}${policy.inherited_from === null ? "" : ` from ${policy.inherited_from}`}`;
};
