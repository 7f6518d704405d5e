import type { Stage } from "./advice.ts";
import type { AdviceFacts, AdvisedSource, MailWeight } from "./advice-facts.ts";

export const REQUIREMENT_CODES = [
  "record_in_order",
  "reported_days",
  "reporters",
  "messages",
  "aligned_share",
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
const HUNDRED = 100;

/** What the stage above the given one needs; at the top, what keeps it justified. */
export const requirementsFor = (stage: Stage, facts: AdviceFacts, weight: MailWeight): readonly Requirement[] => {
  const record = recordRequirement(facts);
  if (facts.sendsMail === false) return [record, noMail(weight)];
  const common = [record, ...amounts(facts, weight), alignment(weight), known(weight)];
  return stage === "quarantine" ? [...common, passedOn(weight)] : common;
};

const recordRequirement = ({ status, failing }: AdviceFacts): Requirement => {
  const met = status === "active";
  const message = met ? "The record is in order and reports come here." : "The record is not in order yet.";
  const observed = failing.length === 0 ? status : failing.map(({ code }) => code).join(", ");
  return { code: "record_in_order", met, observed, expected: "active", message };
};

const atLeast = (code: Requirement["code"], observed: number, expected: number, what: string): Requirement => {
  const met = observed >= expected;
  const message = met ? `There are ${observed} ${what}.` : `There are ${observed} of ${expected} ${what} so far.`;
  return { code, met, observed, expected, message };
};

const amounts = ({ reportedDays, reporters }: AdviceFacts, { messages }: MailWeight): readonly Requirement[] => [
  atLeast("reported_days", reportedDays, DAYS_MIN, "days with reports in the last 30 days"),
  atLeast("reporters", reporters, REPORTERS_MIN, "reporters in the last 14 days"),
  atLeast("messages", messages, MESSAGES_MIN, "messages in the last 14 days"),
];

/** A share in percent, cut and not rounded: 98.99 never reads as 99. */
const percent = (share: number): string => `${Math.floor(share * HUNDRED * 10) / 10} %`;

const alignment = ({ messages, alignedShare, failing }: MailWeight): Requirement => {
  const met = messages > 0 && alignedShare >= ALIGNED_SHARE_MIN;
  const who = met || failing.length === 0 ? "" : ` Most failures: ${nameSome(failing)}.`;
  const message =
    messages === 0
      ? "There is no mail to judge yet."
      : `${percent(alignedShare)} of the mail passes, without forwarders and threats; it takes 99 %.${who}`;
  return { code: "aligned_share", met, observed: alignedShare, expected: ALIGNED_SHARE_MIN, message };
};

const known = ({ unknown }: MailWeight): Requirement => {
  const met = unknown.length === 0;
  const message = met
    ? "No source with weight is unknown."
    : `Say of each of these sources what it is: ${nameSome(unknown)}.`;
  return { code: "unknown_sources", met, observed: unknown.length, expected: 0, message };
};

const passedOn = ({ forwarded, all }: MailWeight): Requirement => {
  const share = all === 0 ? 0 : forwarded / all;
  const met = share < FORWARDED_SHARE_MAX;
  const message = met
    ? "Hardly any mail is passed on by others."
    : `${percent(share)} of the mail is passed on by others, mailing lists perhaps: with p=reject it would be lost. Stay at p=quarantine.`;
  return { code: "few_forwarded", met, observed: share, expected: FORWARDED_SHARE_MAX, message };
};

const noMail = ({ allAligned }: MailWeight): Requirement => {
  const met = allAligned === 0;
  const message = met
    ? "No mail passed DMARC in 14 days."
    : `${allAligned} messages passed DMARC in 14 days: the domain does send mail, although sends_mail is false.`;
  return { code: "no_aligned_mail", met, observed: allAligned, expected: 0, message };
};

const nameSome = (sources: readonly AdvisedSource[]): string => {
  const names = sources.slice(0, NAMES_MAX).map(({ name }) => name);
  const more = sources.length - names.length;
  return [...names, ...(more > 0 ? [`${more} more`] : [])].join(", ");
};
