import { type AdvisedSource, type AdviceFacts, type MailWeight, newFailures, weighMail } from "./advice-facts.ts";
import type { AdviceRequirement, AdviceStage } from "./advice-model.ts";
import { correctedPolicy } from "./record-edit.ts";
import { findingWithFix, keyErrors } from "./source-fix.ts";

const DAYS_MIN = 14;
/** A domain that mails on few days has reports about few: its policy lasts for this many days, with reports about some. */
export const POLICY_AGE_MIN = 28;
export const FEW_DAYS_MIN = 4;
const REPORTERS_MIN = 2;
/** A small domain may write to the users of one mailbox provider only. */
const SOLE_REPORTER_AGE_MIN = 60;
export const MESSAGES_MIN = 100;
/** Fewer are enough when none of them failed since the policy began: a small domain never has a hundred a month. */
const FEW_MESSAGES_MIN = 10;
export const ALIGNED_SHARE_MIN = 0.99;
/** Forwarded mail fails under reject, whoever wrote it: mailing lists forward all mail so. */
const FORWARDED_SHARE_MAX = 0.01;
const NAMES_MAX = 5;
/** Digits of a share. */
const SHARE_DIGITS = 10_000;
const PERMILLE = 1_000;
/** Fractions are not exact: 0.29 of 10,000 is a little less than 2,900. */
const ROUNDING = 1e-9;

/** What the stage above the given one needs; at the last stage, what keeps it justified. */
export const requirementsFor = (stage: AdviceStage, facts: AdviceFacts): AdviceRequirement[] => {
  const record = recordRequirement(facts);
  if (facts.sendsMail === false) return [record, noAlignedMail(facts)];
  const weight = weighMail(facts.sources);
  const common = [
    record,
    keysInOrder(facts),
    reportedDays(facts),
    reportersOf(facts),
    messagesOf(facts, weight),
    alignedShare(facts, weight),
    recentShare(facts, weighMail(facts.recentSources)),
    noNewFailures(facts),
    unknownSources(weight),
  ];
  if (stage !== "quarantine" && stage !== "reject_rehearsal") return common;
  return [...common, fewForwarded(weight, stage === "quarantine" ? "Stay at p=quarantine." : "Keep t=y.")];
};

const recordRequirement = ({ status, failing, record, reportedDays }: AdviceFacts): AdviceRequirement => {
  const base = { code: "record_in_order" as const, expected: "active" };
  const problem = record === null ? null : (correctedPolicy(record)?.problem ?? null);
  if (status === "active" && problem !== null) {
    return { ...base, met: false, observed: "policy_invalid", message: problem };
  }
  const met = status === "active";
  const valid = `The record is valid and has the reporting address${reportedDays > 0 ? ", and reports arrive" : ""}.`;
  const observed = failing.length === 0 ? status : failing.map(({ code }) => code).join(", ");
  return { ...base, met, observed, message: met ? valid : "The record is not correct yet." };
};

const keysInOrder = (facts: AdviceFacts): AdviceRequirement => {
  const errors = keyErrors(facts);
  const [first] = errors;
  const message = first === undefined ? "No key that signs mail now has an error." : findingWithFix(first);
  return { code: "keys_in_order", met: first === undefined, observed: errors.length, expected: 0, message };
};

const reportedDays = ({ policyDays, policyAgeDays, reportedLately }: AdviceFacts): AdviceRequirement => {
  const isRare = policyDays < DAYS_MIN && policyDays >= FEW_DAYS_MIN && policyAgeDays >= POLICY_AGE_MIN;
  const met = policyDays >= DAYS_MIN || isRare;
  const days = met ? `${policyDays} days` : `${policyDays} of ${DAYS_MIN} days`;
  const so = `${days} with reports${met ? "" : " so far"}, in the last 30 days and since the present policy was published.`;
  const few = `${POLICY_AGE_MIN} days since then, with reports about ${FEW_DAYS_MIN} of them,`;
  const rare = isRare ? ` After ${few} that is enough.` : reportedLately < DAYS_MIN / 2 ? ` Or ${few} are enough.` : "";
  const message = `${so}${policyDays >= DAYS_MIN ? "" : rare}`;
  return { code: "reported_days", met, observed: policyDays, expected: isRare ? FEW_DAYS_MIN : DAYS_MIN, message };
};

const reportersOf = ({ reporters, little, policyAgeDays }: AdviceFacts): AdviceRequirement => {
  const observed = little === null ? reporters : Math.max(reporters, little.reporters);
  const mayBeOne = observed < REPORTERS_MIN && little?.failing === 0;
  const expected = mayBeOne && policyAgeDays >= SOLE_REPORTER_AGE_MIN ? 1 : REPORTERS_MIN;
  const met = observed >= expected;
  const period =
    little === null ? "in the last 30 days" : "since the present policy was published, at most 90 days ago";
  const so = met ? someReporters(observed) : `${observed} of ${expected} reporters so far, each`;
  const sole = mayBeOne
    ? ` With little mail of which none failed, 1 is enough after ${SOLE_REPORTER_AGE_MIN} days.`
    : "";
  const message = `${so} with at least two days ${period}.${sole}`;
  return { code: "reporters", met, observed, expected, message };
};

const someReporters = (count: number) => (count === 1 ? "1 reporter" : `${count} reporters, each`);

/** Enough mail for a rate, or little mail of which none failed. */
const messagesOf = ({ little }: AdviceFacts, { messages }: MailWeight): AdviceRequirement => {
  const code = "messages" as const;
  const month = `${countOf(messages)} in the last 30 days`;
  if (little === null) return { code, met: true, observed: messages, expected: MESSAGES_MIN, message: `${month}.` };
  const failed = little.failing === 0 ? "none failed" : `${little.failing.toLocaleString("en-US")} failed`;
  const expected = little.failing === 0 ? FEW_MESSAGES_MIN : MESSAGES_MIN;
  const since = `${countOf(little.messages)} since the present policy was published, at most 90 days ago; ${failed}. ${expected} are needed${little.failing === 0 ? "" : ", or ten of which none failed"}.`;
  const message = `${month}: too few for a rate. ${since}`;
  return { code, met: little.messages >= expected, observed: little.messages, expected, message };
};

const countOf = (messages: number) => `${messages.toLocaleString("en-US")} ${messages === 1 ? "message" : "messages"}`;

/** Cut and not rounded: a share below the expected one never reads as it. */
const cutShare = (share: number): number => Math.floor(share * SHARE_DIGITS + ROUNDING) / SHARE_DIGITS;
/** A share in percent, cut and not rounded: 98.99 never reads as 99. */
const percent = (share: number): string => `${Math.floor(share * PERMILLE + ROUNDING) / 10} %`;

const alignedShare = ({ little }: AdviceFacts, weight: MailWeight): AdviceRequirement => {
  const { messages, failing } = weight;
  const isFew = little !== null && little.messages > messages;
  const [all, share] = isFew
    ? [little.messages, 1 - little.failing / little.messages]
    : [messages, weight.alignedShare];
  const met = all > 0 && share >= ALIGNED_SHARE_MIN;
  const period = isFew ? "since the present policy was published" : "of the last 30 days";
  const message =
    all === 0
      ? "The reports show no mail of yours yet."
      : `${percent(share)} of your mail ${period} passes; 99 % is needed. Forwarded and forged mail is left out.${met ? "" : mostFailures(failing)}`;
  return { code: "aligned_share", met, observed: cutShare(share), expected: ALIGNED_SHARE_MIN, message };
};

/** Mail that receivers could not check is left out of the last days up to this share: more is a problem of the domain's DNS. */
const UNCHECKED_SHARE_MAX = 0.02;

/** Days without mail hide no failures. */
const recentShare = ({ recentUnchecked }: AdviceFacts, weight: MailWeight): AdviceRequirement => {
  const { messages, aligned, failing } = weight;
  const isShort = messages > 0 && weight.alignedShare < ALIGNED_SHARE_MIN;
  const unchecked = isShort ? Math.min(recentUnchecked(), Math.floor(messages * UNCHECKED_SHARE_MAX)) : 0;
  const share = unchecked === 0 ? weight.alignedShare : aligned / (messages - unchecked);
  const left = unchecked === 0 ? "" : ` Left out: ${countOf(unchecked)} that receivers could not check (temperror).`;
  const met = messages === 0 || share >= ALIGNED_SHARE_MIN;
  const message =
    messages === 0
      ? "The reports about the last 7 days show no mail of yours."
      : `${percent(share)} of your mail of the last 7 days with reports passes; 99 % is needed.${left}${met ? "" : mostFailures(failing)}`;
  const observed = messages === 0 ? "no mail" : cutShare(share);
  return { code: "recent_share", met, observed, expected: ALIGNED_SHARE_MIN, message };
};

const mostFailures = (failing: readonly AdvisedSource[]): string =>
  failing.length === 0 ? "" : ` Most failures: ${someNames(failing)}.`;

/** A small sender that broke lately hardly changes the share of a large domain. */
const noNewFailures = (facts: AdviceFacts): AdviceRequirement => {
  const failing = newFailures(facts);
  const met = failing.length === 0;
  const message = met
    ? "No sender that used to pass fails now."
    : `${failing.length} ${failing.length === 1 ? "sender" : "senders"} that used to pass ${failing.length === 1 ? "fails" : "fail"} now: ${someNames(failing)}.`;
  return { code: "no_new_failures", met, observed: failing.length, expected: 0, message };
};

const unknownSources = ({ unknown }: MailWeight): AdviceRequirement => {
  const met = unknown.length === 0;
  const isOne = unknown.length === 1;
  const act = unknown.some(({ isAwaited }) => !isAwaited)
    ? `Classify ${isOne ? "it" : "them"}.`
    : `The reverse DNS lookups of ${isOne ? "its" : "their"} addresses are not complete; they may show who ${isOne ? "it is" : "they are"}.`;
  const message = met
    ? "No sender that could be yours is unclassified."
    : `${unknown.length} ${isOne ? "sender is" : "senders are"} unclassified: ${someNames(unknown)}. ${act}`;
  return { code: "unknown_sources", met, observed: unknown.length, expected: 0, message };
};

const fewForwarded = ({ forwarded, all }: MailWeight, advice: string): AdviceRequirement => {
  const share = all === 0 ? 0 : forwarded / all;
  const met = share < FORWARDED_SHARE_MAX;
  const message = met
    ? "Hardly any mail is forwarded."
    : `${percent(share)} of the mail is forwarded, for example by mailing lists: with p=reject it would be lost. ${advice}`;
  return { code: "few_forwarded", met, observed: cutShare(share), expected: FORWARDED_SHARE_MAX, message };
};

const noAlignedMail = ({ passedLately, reportedLately }: AdviceFacts): AdviceRequirement => {
  const met = passedLately === 0;
  const none =
    reportedLately === 0
      ? "You declared that this domain sends no mail. No reports about the last 14 days have arrived."
      : "You declared that this domain sends no mail, and no mail has passed DMARC in 14 days.";
  const message = met
    ? none
    : `${countOf(passedLately)} passed DMARC in 14 days: the domain does send mail, although its settings say that it sends none.`;
  return { code: "no_aligned_mail", met, observed: passedLately, expected: 0, message };
};

const someNames = (sources: readonly AdvisedSource[]): string => {
  const names = sources.slice(0, NAMES_MAX).map(({ name }) => name);
  const more = sources.length - names.length;
  return [...names, ...(more > 0 ? [`${more} more`] : [])].join(", ");
};
