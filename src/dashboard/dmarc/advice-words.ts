import type { Advice, AdviceNote, AdviceRequirement, AdviceStep } from "../../dmarc/insight/advice/advice-schema.ts";
import type { Kind } from "../components/badge.tsx";

const TITLES: Readonly<Record<AdviceStep["action"], string>> = {
  mend_record: "Correct the record",
  publish_record: "Publish the record first",
  raise_parent: "Strengthen the policy of the parent domain",
  protect_missing_names: "Protect subdomains that do not exist",
  protect_subdomains: "Protect subdomains as well as the domain",
  rehearse_quarantine: "Rehearse quarantine",
  quarantine: "Go to p=quarantine",
  end_rehearsal: "End the rehearsal",
  reject: "Go to p=reject",
  reject_all: "Reject all mail from this domain",
  classify_sources: "Say whether a sender is yours",
  fix_sources: "Set up a sender of yours",
  wait: "Wait for more reports",
};

/** The next step in a few words. */
export const stepTitle = ({ next, stage }: Pick<Advice, "next" | "stage">): string => {
  if (next !== null) return `Next step: ${TITLES[next.action].charAt(0).toLowerCase()}${TITLES[next.action].slice(1)}`;
  return stage === "reject"
    ? "Nothing is left to do: p=reject protects this domain"
    : "This is as far as the advice goes for now";
};

const READY: ReadonlySet<AdviceStep["action"]> = new Set([
  "rehearse_quarantine",
  "quarantine",
  "end_rehearsal",
  "reject",
  "reject_all",
  "protect_missing_names",
  "protect_subdomains",
]);

/** What kind of a conclusion the next step is. */
export const stepKind = ({ next }: Pick<Advice, "next">): Kind => {
  if (next === null || READY.has(next.action)) return "ok";
  if (next.action === "mend_record") return "bad";
  return next.action === "wait" ? "info" : "warn";
};

/** Why, for people at a page. */
export const stepReason = ({ next }: Pick<Advice, "next">, domain: string): string => {
  if (next === null) return "No requirement is open that you could do something about.";
  if (next.action === "publish_record") {
    return `No report can arrive before the record of ${domain} is published and has your reporting address.`;
  }
  if (next.action === "mend_record" && next.record === null) {
    return (
      next.why.replace(/^Publish the dns_records of the domain, so that reports arrive\.\s*/, "") ||
      "No reports can arrive."
    );
  }
  if (next.action === "classify_sources") return next.why.replace(/ If it is yours, set up DKIM .*$/, "");
  return next.why;
};

/** What to do, in order; a page has buttons for classifying a source. */
export const stepList = (next: AdviceStep): readonly string[] => (next.action === "classify_sources" ? [] : next.steps);

/** A note for people at a page. */
export const noteText = ({ code, message }: AdviceNote): string =>
  code === "sends_mail_unset"
    ? message.replace(
        / If the domain sends no mail, .*$/,
        " If the domain sends no mail, say so in its settings: then p=reject is advised at once.",
      )
    : message.replace(", although sends_mail is false", ", although its settings say that it sends none");

const REQUIREMENTS: Readonly<Record<AdviceRequirement["code"], string>> = {
  record_in_order: "The record is in order",
  reported_days: "Days with reports",
  reporters: "Reporters",
  messages: "Messages",
  aligned_share: "Mail of yours that passes, 30 days",
  recent_share: "Mail of yours that passes, last 7 days with reports",
  unknown_sources: "Unclassified senders",
  few_forwarded: "Forwarded mail",
  no_aligned_mail: "Mail that passes, of a domain that sends none",
};

export const requirementTitle = ({ code }: AdviceRequirement): string => REQUIREMENTS[code];

const SHARES: ReadonlySet<AdviceRequirement["code"]> = new Set(["aligned_share", "recent_share", "few_forwarded"]);
const AT_MOST: ReadonlySet<AdviceRequirement["code"]> = new Set([
  "few_forwarded",
  "unknown_sources",
  "no_aligned_mail",
]);
const WORDS: Readonly<Record<string, string>> = {
  action_required: "action required",
  policy_invalid: "invalid policy",
};
const HUNDRED = 100;

const valueText = (code: AdviceRequirement["code"], value: string | number): string => {
  if (typeof value === "string") return WORDS[value] ?? value.replaceAll("_", " ");
  return SHARES.has(code) ? `${Math.round(value * HUNDRED * HUNDRED) / HUNDRED} %` : value.toLocaleString("en-US");
};

/** The figures of a requirement: "6 of 14", "99.2 %, at least 99 %". */
export const requirementFigures = ({ code, observed, expected, met }: AdviceRequirement): string => {
  const [is, needed] = [valueText(code, observed), valueText(code, expected)];
  if (typeof expected === "string") return is;
  if (AT_MOST.has(code)) return `${is}, ${expected === 0 ? "none allowed" : `below ${needed} needed`}`;
  return met || SHARES.has(code) ? `${is}, at least ${needed} needed` : `${is} of ${needed}`;
};
