import { type AdviceFacts, type AdvisedSource, type MailWeight, weighMail } from "./advice-facts.ts";
import type { AdviceRequirement, AdviceStage } from "./advice-schema.ts";
import { correctedPolicy } from "./record-edit.ts";

const DAYS_MIN = 14;
const REPORTERS_MIN = 2;
const MESSAGES_MIN = 100;
const ALIGNED_SHARE_MIN = 0.99;
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
    ...amounts(facts, weight),
    alignedShare(weight),
    recentShare(weighMail(facts.recentSources)),
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

const amounts = ({ policyDays, reporters }: AdviceFacts, { messages }: MailWeight): AdviceRequirement[] =>
  (
    [
      [
        "reported_days",
        policyDays,
        DAYS_MIN,
        "days with reports",
        "in the last 30 days and since the present policy was published",
      ],
      ["reporters", reporters, REPORTERS_MIN, "reporters", "each with at least two days in the last 30 days"],
      ["messages", messages, MESSAGES_MIN, "messages", "in the last 30 days"],
    ] as const
  ).map(([code, observed, expected, noun, period]) => {
    const met = observed >= expected;
    const message = met ? `${observed} ${noun}, ${period}.` : `${observed} of ${expected} ${noun} so far, ${period}.`;
    return { code, met, observed, expected, message };
  });

/** Cut and not rounded: a share below the expected one never reads as it. */
const cutShare = (share: number): number => Math.floor(share * SHARE_DIGITS + ROUNDING) / SHARE_DIGITS;
/** A share in percent, cut and not rounded: 98.99 never reads as 99. */
const percent = (share: number): string => `${Math.floor(share * PERMILLE + ROUNDING) / 10} %`;

const alignedShare = ({ messages, alignedShare: share, failing }: MailWeight): AdviceRequirement => {
  const met = messages > 0 && share >= ALIGNED_SHARE_MIN;
  const message =
    messages === 0
      ? "The reports show no mail of yours yet."
      : `${percent(share)} of your mail of the last 30 days passes; 99 % is needed. Forwarded and forged mail is left out.${met ? "" : mostFailures(failing)}`;
  return { code: "aligned_share", met, observed: cutShare(share), expected: ALIGNED_SHARE_MIN, message };
};

/** Days without mail hide no failures. */
const recentShare = ({ messages, alignedShare: share, failing }: MailWeight): AdviceRequirement => {
  const met = messages === 0 || share >= ALIGNED_SHARE_MIN;
  const message =
    messages === 0
      ? "The reports about the last 7 days show no mail of yours."
      : `${percent(share)} of your mail of the last 7 days with reports passes; 99 % is needed.${met ? "" : mostFailures(failing)}`;
  const observed = messages === 0 ? "no mail" : cutShare(share);
  return { code: "recent_share", met, observed, expected: ALIGNED_SHARE_MIN, message };
};

const mostFailures = (failing: readonly AdvisedSource[]): string =>
  failing.length === 0 ? "" : ` Most failures: ${someNames(failing)}.`;

const unknownSources = ({ unknown }: MailWeight): AdviceRequirement => {
  const met = unknown.length === 0;
  const message = met
    ? "No sender that could be yours is unclassified."
    : `${unknown.length} ${unknown.length === 1 ? "sender is" : "senders are"} unclassified: ${someNames(unknown)}. Classify ${unknown.length === 1 ? "it" : "them"}.`;
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

/** That reports about the last 14 days show no mail that passes, and about how many of these days there are reports. */
export const nonePassed = (reportedDays: number): string =>
  `Reports about ${reportedDays} of the last 14 days show no mail that passed DMARC.`;

const noAlignedMail = ({ passedLately, reportedLately }: AdviceFacts): AdviceRequirement => {
  const met = passedLately === 0;
  const none =
    reportedLately === 0
      ? "You declared that this domain sends no mail. No reports about the last 14 days have arrived."
      : nonePassed(reportedLately);
  const message = met
    ? none
    : `${passedLately} ${passedLately === 1 ? "message" : "messages"} passed DMARC in 14 days: the domain does send mail, although sends_mail is false.`;
  return { code: "no_aligned_mail", met, observed: passedLately, expected: 0, message };
};

const someNames = (sources: readonly AdvisedSource[]): string => {
  const names = sources.slice(0, NAMES_MAX).map(({ name }) => name);
  const more = sources.length - names.length;
  return [...names, ...(more > 0 ? [`${more} more`] : [])].join(", ");
};
