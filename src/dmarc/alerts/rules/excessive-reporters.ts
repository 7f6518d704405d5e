import { DAY_MS, isoDay } from "../../../foundation/base/days.ts";
import { organisationalDomain } from "../../../foundation/mail/organisational-domain.ts";
import { formatCount, plural, shortName } from "../../../notifications/mail/mail-text.ts";
import type { Alert } from "../../records/domains/raise.ts";
import type { DomainReporters, UnknownReporter } from "../../records/domains/reporter-store.ts";
import type { AlertData } from "./alert-data.ts";
import { NO_ALERTS, type ReviewFacts, type RuleResult, subjectOfMany } from "./review-facts.ts";

/** The days whose messages are compared, up to today. */
const WINDOW_DAYS = 30;
/** Counts are far above others from this many times their sum on. */
const FACTOR_COVERED = 20;
/** Without known reporters to compare with, most mail may really go to one receiver. */
const FACTOR_ELSEWHERE = 200;
const OTHERS_ELSEWHERE_MIN = 2;
/** Others count as this many messages at least: the mail of a small domain varies. */
const OTHERS_MESSAGES_MIN = 1_000;
/** Counts stay far above others until they fall below this part of the limit. */
const END_SHARE = 1 / 2;
/** All reporters found within this time after an alert are in the next one. */
const ALERT_MS = DAY_MS;
const REPORTERS_MAX = 10;

/** What the reports with one voucher count. */
export interface VoucherMessages {
  readonly messages: number;
  /** How many reporters these are. */
  readonly reporters: number;
}

/** An unknown reporter and its messages. */
interface Weighed extends UnknownReporter {
  readonly messages: number;
}

export interface Outliers {
  /** Those whose counts are far above all others, most messages first. */
  readonly excessive: readonly Weighed[];
  /** Vouchers of those that were so before, and no longer are. */
  readonly ended: readonly number[];
  /** The messages with which they were compared. */
  readonly others: number;
}

/**
 * The unknown reporters whose counts are far above those of all others: of known reporters where these cover the domain, elsewhere of
 * known ones and the smaller unknown ones, if there are at least two. Pure.
 */
export const findOutliers = (
  { isCovered, known, unknown }: Pick<DomainReporters, "isCovered" | "known" | "unknown">,
  messagesOf: (voucher: number) => VoucherMessages,
): Outliers => {
  const factor = isCovered ? FACTOR_COVERED : FACTOR_ELSEWHERE;
  let others = 0;
  let reporters = 0;
  const count = (of: VoucherMessages): void => {
    others += of.messages;
    reporters += of.reporters;
  };
  for (const voucher of known) count(messagesOf(voucher));
  const weighed = unknown.map((one) => ({ ...one, messages: messagesOf(one.voucher).messages }));
  const excessive: Weighed[] = [];
  for (const one of weighed.toSorted((a, b) => a.messages - b.messages)) {
    const limit = factor * Math.max(others, OTHERS_MESSAGES_MIN) * (one.isExcessive ? END_SHARE : 1);
    const isComparable = isCovered || reporters >= OTHERS_ELSEWHERE_MIN;
    if (isComparable && one.messages > limit) excessive.push(one);
    else if (!isCovered) count(messagesOf(one.voucher));
  }
  const still = new Set(excessive.map(({ voucher }) => voucher));
  const ended = weighed.filter(({ isExcessive, voucher }) => isExcessive && !still.has(voucher));
  return { excessive: excessive.toReversed(), ended: ended.map(({ voucher }) => voucher), others };
};

/** Unknown reporters whose counts are far above all others, each once. From then on advice and alerts do not count them anywhere. */
export const findExcessiveReporters = (facts: ReviewFacts): RuleResult => {
  const { domain, nowMs, today, everyone, alerts } = facts;
  const reporters = everyone.domainReporters(domain.number);
  // Nobody else can send mail that is authenticated as the domain itself.
  const own = organisationalDomain(domain.domain);
  const unknown = reporters.unknown.filter(({ author }) => author !== own);
  if (unknown.length === 0) return NO_ALERTS;
  const range = { fromDay: today - WINDOW_DAYS + 1, toDay: today };
  const sums = Map.groupBy(everyone.reporters(domain.number, range), ({ voucher }) => voucher);
  const messagesOf = (voucher: number): VoucherMessages => {
    const of = sums.get(voucher) ?? [];
    return { messages: of.reduce((sum, { messages }) => sum + messages, 0), reporters: of.length };
  };
  const { excessive, ended, others } = findOutliers({ ...reporters, unknown }, messagesOf);
  const found = excessive.filter(({ isExcessive }) => !isExcessive);
  if (found.length === 0) return { alerts: [], reporters: { excessive: [], ended } };
  // Somebody with many domains must not cause an alert with each.
  const [last] = alerts.listByRule(domain.number, "excessive_reporter", 1);
  if (last !== undefined && last.atMs <= nowMs && nowMs - last.atMs < ALERT_MS)
    return { alerts: [], reporters: { excessive: [], ended }, isPending: true };
  return {
    alerts: [
      excessiveAlert({
        count: found.length,
        reporters: found.slice(0, REPORTERS_MAX).map(({ author, messages }) => ({ name: author, messages })),
        compared_with: reporters.isCovered ? "known_reporters" : "other_reporters",
        other_messages: others,
        first_day: isoDay(range.fromDay),
        last_day: isoDay(range.toDay),
      }),
    ],
    reporters: { excessive: found.map(({ voucher }) => voucher), ended },
  };
};

const excessiveAlert = (data: AlertData<"excessive_reporter">): Alert => {
  const names = data.reporters.map(({ name }) => name);
  const [only = ""] = names;
  const subject = data.count === 1 ? only : subjectOfMany(names);
  return { rule: "excessive_reporter", subject, data, summary: excessiveSummary(data), cooldown: false };
};

/** `x.example reports 1,000,000 messages in 30 days, all known reporters together 1,234`. */
export const excessiveSummary = ({ count, reporters, compared_with, other_messages }: ExcessiveData): string => {
  const [first] = reporters;
  const who =
    count === 1
      ? `${shortName(first?.name ?? "")} reports`
      : `${formatCount(count)} unknown reporters each report up to`;
  const others = compared_with === "known_reporters" ? "all known reporters" : "all other reporters";
  return `${who} ${plural(first?.messages ?? 0, "message")} in ${WINDOW_DAYS} days, ${others} together ${formatCount(other_messages)}`;
};

type ExcessiveData = AlertData<"excessive_reporter">;

/** What follows from an alert, for people. */
export const excessiveAdvice = ({ count }: Pick<ExcessiveData, "count">) => ({
  counted: `Advice, classes and other alerts do not count ${count === 1 ? "its" : "their"} reports; charts and totals do.`,
  why: "Anyone with a domain can send reports, also false ones.",
  todo: `If you know ${count === 1 ? "the reporter, accept it" : "one of the reporters, accept it"}. Otherwise no action is needed.`,
});
