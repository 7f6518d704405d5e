import { sumOf } from "../../../foundation/base/sums.ts";
import { z } from "zod";
import { DAY_MS, isoDay } from "../../../foundation/base/days.ts";
import { organisationalDomain } from "../../../foundation/mail/organisational-domain.ts";
import { dayField, integerField, textField } from "../../../foundation/http/schema-fields.ts";
import { action, formatCount, plural, shortName } from "../../../notifications/mail/mail-content.ts";
import type { DomainReporters, UnknownReporter } from "../../records/domains/reporter-store.ts";
import { alertRule, domainLink, items, texts } from "./alert-rule.ts";
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
interface VoucherMessages {
  readonly messages: number;
  /** How many reporters these are. */
  readonly reporters: number;
}

/** An unknown reporter and its messages. */
interface Weighed extends UnknownReporter {
  readonly messages: number;
}

interface Outliers {
  /** The vouchers whose counts are far above all others, most messages first. */
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
  const count = (of: VoucherMessages) => {
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
const findExcessiveReporters = (facts: ReviewFacts): RuleResult => {
  const { domain, nowMs, today, everyone, alerts } = facts;
  const reporters = everyone.domainReporters(domain.number);
  // Nobody else can send mail that is authenticated as the domain itself.
  const own = organisationalDomain(domain.domain);
  const unknown = reporters.unknown.filter(({ author }) => author !== own);
  if (unknown.length === 0) return NO_ALERTS;
  const range = { fromDay: today - WINDOW_DAYS + 1, toDay: today };
  const sums = Map.groupBy(everyone.reporters(domain.number, range), ({ voucher }) => voucher);
  const messagesOf = (voucher: number) => {
    const of = sums.get(voucher) ?? [];
    return { messages: sumOf(of, "messages"), reporters: of.length };
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

const dataSchema = z.object({
  count: integerField("Number of unknown reporters whose counts are far above all others."),
  reporters: z
    .array(
      z.object({
        name: textField("The organizational domain that the mail of its reports is authenticated as."),
        messages: integerField("Messages in its reports."),
      }),
    )
    .describe("The ten with the most messages."),
  compared_with: z
    .enum(["known_reporters", "other_reporters"])
    .describe(
      "`known_reporters` where these cover the domain; otherwise `other_reporters`, the known ones and those whose counts are not far above the others.",
    ),
  other_messages: integerField("Messages in the reports of all of these together."),
  first_day: dayField("First day that is compared."),
  last_day: dayField("Last day that is compared."),
});
type ExcessiveData = z.output<typeof dataSchema>;

export const EXCESSIVE_REPORTER = alertRule({
  name: "excessive_reporter",
  words: "Far too high counts",
  description: "An unknown reporter counts far more messages than all others.",
  summary:
    "The counts of a reporter that is neither known nor accepted are far above those of all others; once, until they no longer are",
  title: "an unknown reporter counts far more messages than all others",
  data: dataSchema,
  example: {
    count: 1,
    reporters: [{ name: "reports.example", messages: 1_000_000 }],
    compared_with: "known_reporters",
    other_messages: 1_234,
    first_day: "2025-12-03",
    last_day: "2026-01-01",
  },
  review: findExcessiveReporters,
  // Rules after it do not count the reporters that it finds.
  reviewRank: 1,
  mail: (data, domain) => {
    const { counted, why, todo } = excessiveAdvice(data);
    return [
      items(
        data.reporters.map(({ name, messages }) => ({ text: `${shortName(name)}: ${plural(messages, "message")}` })),
        data.count,
      ),
      texts(`${counted} ${why}`),
      action(todo),
      domainLink(domain, "reports", "Show the reports"),
    ];
  },
  open: {
    facts: (store, domains) => store.excessiveReporters(domains),
    holds: ({ number, data: { reporters } }, excessive) =>
      reporters.some(({ name }) => excessive.has(`${number} ${name}`)),
    attention: (data, { domain, path }) => ({
      severity: "warn",
      label: "Reporter",
      title: `${domain}: ${excessiveSummary(data)}`,
      detail: Object.values(excessiveAdvice(data)).join(" "),
      action: { text: "See the reports", path: `${path}/reports` },
    }),
  },
});

const excessiveAlert = (data: ExcessiveData) => {
  const names = data.reporters.map(({ name }) => name);
  const [only = ""] = names;
  const subject = data.count === 1 ? only : subjectOfMany(names);
  return { rule: "excessive_reporter", subject, data, summary: excessiveSummary(data), cooldown: false };
};

/** `x.example reports 1,000,000 messages in 30 days, all known reporters together 1,234`. */
const excessiveSummary = ({ count, reporters, compared_with, other_messages }: ExcessiveData) => {
  const [first] = reporters;
  const who =
    count === 1
      ? `${shortName(first?.name ?? "")} reports`
      : `${formatCount(count)} unknown reporters each report up to`;
  const others = compared_with === "known_reporters" ? "all known reporters" : "all other reporters";
  return `${who} ${plural(first?.messages ?? 0, "message")} in ${WINDOW_DAYS} days, ${others} together ${formatCount(other_messages)}`;
};

/** What follows from an alert, for people. */
export const excessiveAdvice = ({ count }: Pick<ExcessiveData, "count">) => ({
  counted: `Advice, classes and other alerts do not count ${count === 1 ? "its" : "their"} reports; charts and totals do.`,
  why: "Anyone with a domain can send reports, also false ones.",
  todo: `If you know ${count === 1 ? "the reporter, accept it" : "one of the reporters, accept it"}. Otherwise no action is needed.`,
});
