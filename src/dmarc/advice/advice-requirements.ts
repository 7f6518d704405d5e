import type { Stage } from "./advice.ts";
import { type AdviceFacts, type AdvisedSource, type MailWeight, weigh } from "./advice-facts.ts";
import { mendedPolicy } from "./advice-record.ts";

export const REQUIREMENT_CODES = [
  "record_in_order",
  "reported_days",
  "reporters",
  "messages",
  "aligned_share",
  "recent_share",
  "unknown_sources",
  "few_forwarded",
  "no_aligned_mail",
] as const;

/** Something that the next stage needs. */
export interface Requirement {
  readonly code: (typeof REQUIREMENT_CODES)[number];
  readonly met: boolean;
  /** What there is, and what there should be: a number, a share of 1, or words. */
  readonly observed: number | string;
  readonly expected: number | string;
  /** One sentence. */
  readonly message: string;
}

const DAYS_MIN = 14;
const REPORTERS_MIN = 2;
const MESSAGES_MIN = 100;
const ALIGNED_SHARE_MIN = 0.99;
/** Mail that is passed on fails under reject, whoever wrote it: mailing lists do so with all mail. */
const FORWARDED_SHARE_MAX = 0.01;
const NAMES_MAX = 5;
/** Shares are told so exactly. */
const SHARE_DIGITS = 10_000;
const PERMILLE = 1_000;
/** Fractions are not exact: 0.29 of 10,000 is a little less than 2,900. */
const ROUNDING = 1e-9;

/** What the stage above the given one needs; at the top, what keeps it justified. */
export const requirementsFor = (stage: Stage, facts: AdviceFacts): readonly Requirement[] => {
  const record = recordRequirement(facts);
  if (facts.sendsMail === false) return [record, noMail(facts)];
  const weight = weigh(facts.sources);
  const shares = [alignment(weight), recentAlignment(weigh(facts.recentSources))];
  const common = [record, ...amounts(facts, weight), ...shares, known(weight)];
  if (stage !== "quarantine" && stage !== "reject_rehearsal") return common;
  return [...common, passedOn(weight, stage === "quarantine" ? "Stay at p=quarantine." : "Keep t=y.")];
};

const recordRequirement = ({ status, failing, record, reportedDays }: AdviceFacts): Requirement => {
  const problem = record === null ? null : (mendedPolicy(record)?.problem ?? null);
  if (status === "active" && problem !== null) {
    return { code: "record_in_order", met: false, observed: "policy_invalid", expected: "active", message: problem };
  }
  const met = status === "active";
  const inOrder = `The record is valid and names our address${reportedDays > 0 ? ", and reports come here" : ""}.`;
  const message = met ? inOrder : "The record is not in order yet.";
  const observed = failing.length === 0 ? status : failing.map(({ code }) => code).join(", ");
  return { code: "record_in_order", met, observed, expected: "active", message };
};

const atLeast = (
  code: Requirement["code"],
  [observed, expected]: readonly [number, number],
  [what, where]: readonly [string, string],
): Requirement => {
  const met = observed >= expected;
  const message = met ? `${observed} ${what}, ${where}.` : `${observed} of ${expected} ${what} so far, ${where}.`;
  return { code, met, observed, expected, message };
};

const amounts = ({ policyDays, reporters }: AdviceFacts, { messages }: MailWeight): readonly Requirement[] => [
  atLeast(
    "reported_days",
    [policyDays, DAYS_MIN],
    ["days with reports", "counted in the last 30 days and since the present policy stands"],
  ),
  atLeast("reporters", [reporters, REPORTERS_MIN], ["reporters", "each with two days or more in the last 30 days"]),
  atLeast("messages", [messages, MESSAGES_MIN], ["messages", "in the last 30 days"]),
];

/** Cut and not rounded: a share below what is expected never reads as it. */
const told = (share: number): number => Math.floor(share * SHARE_DIGITS + ROUNDING) / SHARE_DIGITS;
/** A share in percent, cut and not rounded: 98.99 never reads as 99. */
const percent = (share: number): string => `${Math.floor(share * PERMILLE + ROUNDING) / 10} %`;

const alignment = ({ messages, alignedShare, failing }: MailWeight): Requirement => {
  const met = messages > 0 && alignedShare >= ALIGNED_SHARE_MIN;
  const message =
    messages === 0
      ? "Reports name no mail of yours yet."
      : `${percent(alignedShare)} of your mail of the last 30 days passes; 99 % is needed. Forwarded and forged mail is left out.${met ? "" : worst(failing)}`;
  return { code: "aligned_share", met, observed: told(alignedShare), expected: ALIGNED_SHARE_MIN, message };
};

/** Days without mail hide no failures. */
const recentAlignment = ({ messages, alignedShare, failing }: MailWeight): Requirement => {
  const met = messages === 0 || alignedShare >= ALIGNED_SHARE_MIN;
  const message =
    messages === 0
      ? "Reports of the last 7 days name no mail of yours."
      : `${percent(alignedShare)} of your mail of the last 7 days with reports passes; 99 % is needed.${met ? "" : worst(failing)}`;
  const observed = messages === 0 ? "no mail" : told(alignedShare);
  return { code: "recent_share", met, observed, expected: ALIGNED_SHARE_MIN, message };
};

const worst = (failing: readonly AdvisedSource[]): string =>
  failing.length === 0 ? "" : ` Most failures: ${nameSome(failing)}.`;

const known = ({ unknown }: MailWeight): Requirement => {
  const met = unknown.length === 0;
  const message = met
    ? "No sender that could be yours is unclassified."
    : `${unknown.length} ${unknown.length === 1 ? "sender is" : "senders are"} unclassified: ${nameSome(unknown)}.`;
  return { code: "unknown_sources", met, observed: unknown.length, expected: 0, message };
};

const passedOn = ({ forwarded, all }: MailWeight, advice: string): Requirement => {
  const share = all === 0 ? 0 : forwarded / all;
  const met = share < FORWARDED_SHARE_MAX;
  const message = met
    ? "Hardly any mail is forwarded."
    : `${percent(share)} of the mail is forwarded, for example by mailing lists: with p=reject it would be lost. ${advice}`;
  return { code: "few_forwarded", met, observed: told(share), expected: FORWARDED_SHARE_MAX, message };
};

/** That reports of the last 14 days tell of no mail that passes; of how many of these days they tell must be said with it. */
export const nonePassed = (reportedDays: number): string =>
  `Reports tell of ${reportedDays} of the last 14 days, and of no mail that passed DMARC.`;

const noMail = ({ passedLately, reportedLately }: AdviceFacts): Requirement => {
  const met = passedLately === 0;
  const silence =
    reportedLately === 0
      ? "You said that this domain sends no mail; no report of the last 14 days says otherwise, for there was none."
      : nonePassed(reportedLately);
  const message = met
    ? silence
    : `${passedLately} ${passedLately === 1 ? "message" : "messages"} passed DMARC in 14 days: the domain does send mail, although sends_mail is false.`;
  return { code: "no_aligned_mail", met, observed: passedLately, expected: 0, message };
};

const nameSome = (sources: readonly AdvisedSource[]): string => {
  const names = sources.slice(0, NAMES_MAX).map(({ name }) => name);
  const more = sources.length - names.length;
  return [...names, ...(more > 0 ? [`${more} more`] : [])].join(", ");
};
