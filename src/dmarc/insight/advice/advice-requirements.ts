import {
  failingMessages,
  type AdviceFacts,
  type AdvisedSource,
  type MailWeight,
  weighMail,
  type AdviceRequirement,
  type AdviceStage,
} from "./advice-model.ts";
import { parseRecord } from "../../records/record/record.ts";
import { trimRecordSpace, type RecordTag } from "../../records/record/record-tags.ts";
import type { RecordValues } from "../../records/record/record-values.ts";
import { configureAdvice, serviceById } from "../../records/services/services.ts";

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

/** The tags of a policy that an edit may set. */
export type PolicyTag = "p" | "sp" | "np" | "t";

export const POLICY_STRENGTH = { none: 0, quarantine: 1, reject: 2 } as const;
const POLICY_TAGS = ["p", "sp", "np"] as const;
const POLICY_PROBLEMS: ReadonlySet<string> = new Set(["p_missing", "p_invalid", "policy_void"]);

/**
 * Sets one tag in the text of a DMARC record. Everything else stays byte for byte: where the tag is present, only its value is
 * replaced; otherwise `; name=value` is inserted after `p` (`p` itself, and all without a `p`, after `v`). Of a repeated tag the first
 * one is set, because it is the one that counts. A text whose tag has the value already, and a text that is no DMARC record, are
 * returned unchanged.
 */
export const setTag = (text: string, name: PolicyTag, value: string): string => {
  const { valid, tags } = parseRecord(text);
  if (!valid) return text;
  const tag = tags.find((candidate) => candidate.name === name);
  if (tag !== undefined) {
    const { start, end } = valueRange(text, tag);
    return tag.value.toLowerCase() === value ? text : text.slice(0, start) + value + text.slice(end);
  }
  const before = tags.find((candidate) => candidate.name === "p" && name !== "p") ?? tags[0];
  if (before === undefined) return text;
  const { end } = valueRange(text, before);
  return `${text.slice(0, end)}; ${name}=${value}${text.slice(end)}`;
};

/** The range of a tag's value without white space around it; an empty one is right behind the `=`. */
const valueRange = (text: string, { valueStart, valueEnd, value }: RecordTag) => {
  const whole = text.slice(valueStart, valueEnd);
  const start = value === "" ? valueStart : valueStart + whole.indexOf(trimRecordSpace(whole));
  return { start, end: start + value.length };
};

/** A record whose policy was corrected. */
interface CorrectedPolicy {
  readonly text: string;
  /** What was wrong, in sentences. */
  readonly problem: string;
  /** The same, and what receivers apply with the new text. */
  readonly why: string;
}

/**
 * Corrects a record without `p`, or with a `p`, `sp` or `np` that receivers do not know and that makes all of them `none`. Such a tag
 * becomes `none`, which is what they apply today; the others stay, and are effective again. Null when there is nothing to correct.
 */
export const correctedPolicy = (text: string): CorrectedPolicy | null => {
  const { warnings, tags } = parseRecord(text);
  const problem = warnings.flatMap(({ code, message }) => (POLICY_PROBLEMS.has(code) ? [message] : [])).join(" ");
  const invalid = POLICY_TAGS.filter((name) => {
    const value = tags.find((tag) => tag.name === name)?.value.toLowerCase();
    return value === undefined ? name === "p" : !Object.hasOwn(POLICY_STRENGTH, value);
  });
  const corrected = strengthened(
    text,
    invalid.map((name) => [name, "none"]),
  );
  const values = corrected === null ? null : parseRecord(corrected).values;
  if (corrected === null || corrected === text || values === null) return null;
  const { p, sp, np } = values;
  return { text: corrected, problem, why: `${problem} With this text they apply p=${p}, sp=${sp}, np=${np}.` };
};

/** Whether the text has the tag itself. */
export const hasTag = (text: string, name: PolicyTag): boolean =>
  parseRecord(text).tags.some((tag) => tag.name === name);

/** The text of a record with tags set in order. Null when the new text would protect less in any respect: it is never advised. */
export const strengthened = (text: string, tags: ReadonlyArray<readonly [PolicyTag, string]>): string | null => {
  const edited = tags.reduce((record, [name, value]) => setTag(record, name, value), text);
  const [before, after] = [parseRecord(text).values, parseRecord(edited).values];
  return before === null || after === null || isWeakerRecord(before, after) ? null : edited;
};

/** Whether `after` protects less than `before`: by a policy, a relaxed alignment, or a test mode over an enforced policy. */
const isWeakerRecord = (before: RecordValues, after: RecordValues): boolean =>
  POLICY_TAGS.some(
    (tag) =>
      POLICY_STRENGTH[after[tag]] < POLICY_STRENGTH[before[tag]] ||
      (before.t === "n" && after.t === "y" && POLICY_STRENGTH[before[tag]] > POLICY_STRENGTH.none),
  ) ||
  (before.adkim === "s" && after.adkim === "r") ||
  (before.aspf === "s" && after.aspf === "r");

/** What a fix depends on. */
type FixFacts = Pick<AdviceFacts, "domain" | "policy" | "health">;

/** What keeps mail of a sender from passing, and what to do about it. */
export interface SourceFix {
  /** One sentence. */
  readonly why: string;
  /** Sentences, in the order in which to follow them. */
  readonly steps: readonly string[];
}

const ADDRESSES_MAX = 3;

/** What to do about a sender of the user's whose mail fails. */
export const fixOf = (source: AdvisedSource, facts: FixFacts): SourceFix => {
  const failing = failingMessages(source);
  const why = `${source.name} sends ${count(failing)} a month that ${failing === 1 ? "does" : "do"} not pass DMARC.`;
  const [keys, setup] = [keySteps(source, facts), setupSteps(source, facts)];
  // Own servers are set up already, most likely; a service may never have been.
  const steps = source.kind === "own" ? [...keys, ...setup] : [...setup, ...keys];
  return { why, steps: [...strictSteps(source, facts), ...steps] };
};

/** What to find out about an unclassified source. */
export const questionOf = (source: AdvisedSource, { domain }: FixFacts): SourceFix => {
  if (source.bundled !== undefined) return questionOfMany(source, source.bundled, domain);
  const proves = source.authenticated_unaligned > 0 && source.aligned === 0;
  const how = proves ? `authenticates as another domain than ${domain}` : `is not authenticated as ${domain}`;
  return {
    why: `${source.name} sends ${count(source.messages)} a month and ${how}. Is it yours?`,
    steps: [
      `If it is yours, set up DKIM for ${domain} there, and classify ${source.key} as misconfigured.`,
      `If it is not, classify ${source.key} as threat.`,
    ],
  };
};

/** Senders without any tie to the domain that use other domains of the account, too: see `StrangerStore`. */
const questionOfMany = ({ name, messages }: AdvisedSource, keys: readonly string[], domain: string): SourceFix => ({
  why: `${name} sends ${count(messages)} a month. Nothing ties them to ${domain}, and they use other domains of yours in From as well, as spammers do. Are they yours?`,
  steps: [
    `If they are not, classify all of them as threat: ${keys.slice(0, KEYS_NAMED_MAX).join(", ")}${keys.length > KEYS_NAMED_MAX ? ", …" : ""}.`,
    `If one is, classify it as misconfigured, and set up DKIM for ${domain} there.`,
  ],
});

const KEYS_NAMED_MAX = 20;

const count = (messages: number): string =>
  `${messages.toLocaleString("en-US")} ${messages === 1 ? "message" : "messages"}`;

/** Mail that would pass with relaxed alignment (RFC 9989 §4.10.1). */
const strictSteps = ({ dkim }: AdvisedSource, { domain, policy }: FixFacts): readonly string[] => {
  const other = dkim.find(({ aligned, domain: signer }) => aligned && signer !== domain);
  if (policy?.adkim !== "s" || other === undefined) return [];
  return [
    `It signs as ${other.domain}, but the policy requires strict alignment (adkim=s). Have it sign as ${domain}, the domain in From.`,
  ];
};

const KEY_CODES: ReadonlySet<string> = new Set([
  "dkim_missing",
  "dkim_dangling_alias",
  "dkim_several",
  "dkim_invalid",
  "dkim_revoked",
  "dkim_key_too_short",
  "spf_lookups",
  "spf_void_lookups",
  "spf_syntax",
  "spf_several",
  "spf_target_missing",
]);

/** Invalid keys and SPF records that the health check found: any of them may be the cause. */
const keySteps = ({ kind }: AdvisedSource, { health }: FixFacts): readonly string[] => {
  if (kind !== "own" && kind !== "service") return [];
  return health
    .filter(({ code, severity }) => severity === "error" && KEY_CODES.has(code))
    .map(({ message, fix }) => (fix === null ? message : `${message} ${fix}`));
};

const setupSteps = (source: AdvisedSource, { domain }: FixFacts): readonly string[] => {
  const service = source.service_id === null ? null : serviceById(source.service_id);
  if (service !== null) return configureAdvice(service, domain);
  const where = source.kind === "own" ? "on the servers" : `at ${source.name}`;
  const addresses = source.addresses.slice(0, ADDRESSES_MAX).map(({ ip }) => ip);
  const sign = `Sign the mail with DKIM as ${domain} ${where}.`;
  if (addresses.length === 0) return [sign];
  return [
    sign,
    `Or let SPF pass: use an envelope address at ${domain}, and have its SPF record name ${addresses.join(", ")}.`,
  ];
};
