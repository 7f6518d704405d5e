import { type SmtpReply, parseReply } from "../foundation/net/smtp-reply.ts";
import {
  type REPLY_READINGS,
  type Rule,
  type REPLY_STAGES,
  type SignName,
  createSigns,
  isStatusWord,
  readableText,
} from "./reply-rules/signs.ts";
import { RULES } from "./reply-rules/table.ts";
import { type SubStatus, VERDICT_OF, type Verdict } from "./result.ts";

/** What a reply means for a verification. `ambiguous`: a refusal that may be about us or about the mailbox. */
export type ReplyReading = (typeof REPLY_READINGS)[number];

/** What ends a refusal of the policy service: it repeats what an earlier verification said, and proves nothing by itself. */
export const POLICY_MARK = "(Postwarden)";

/** The command that the reply is to; `banner` is the greeting. */
export type ReplyStage = (typeof REPLY_STAGES)[number];

/** Our own names: a reply that quotes them is not about the mailbox. */
export interface ReplyHints {
  readonly heloName?: string;
  /** Our envelope sender, "" for the null sender. */
  readonly mailFrom?: string;
  /** The recipient that was probed. */
  readonly recipient?: string;
  /** The host that replied: its name may contain "spam" or "block". */
  readonly mxHost?: string;
  /** Whether MAIL FROM carried SMTPUTF8 (RFC 6531). */
  readonly smtputf8Sent?: boolean;
}

export interface InterpretedReply {
  readonly reading: ReplyReading;
  /** Stable kebab-case id of the rule that matched. */
  readonly rule: string;
  /** The wait that the server requested, in seconds (1 to 86,400). Only on temporary refusals. */
  readonly retryAfterS?: number;
}

/**
 * Interprets a reply by its code, enhanced code and text, at its stage.
 *
 * Never throws. A temporary refusal is never a "no" about the mailbox, nor is a permanent one that says "for now". Only a
 * reply to RCPT can be about the mailbox. A refusal whose text is about us is `blocked` or `ambiguous` even beside "user
 * unknown"; so is one without a known word. Only "5.1.1" and the like decide alone.
 */
export const readReply = (reply: SmtpReply, stage: ReplyStage, hints: ReplyHints = {}): InterpretedReply => {
  const rules = rulesFor(stage, reply);
  const [first] = rules;
  // Most replies: their codes decide, whatever the text.
  if (first !== undefined && isByCodes(first) && !isTemporary(reply)) return { reading: first.reading, rule: first.id };
  const text = readableText(
    reply.text,
    [hints.recipient, hints.mxHost].filter((own) => own !== undefined),
    hints.recipient?.includes("@") ? hints.recipient.slice(0, hints.recipient.lastIndexOf("@")) : undefined,
    isStatusWord,
  );
  const signs = createSigns(text, knownSigns(reply, text.links, hints));
  const rule = rules.find((candidate) => isSeen(candidate, signs));
  if (!rule) return { reading: "protocol_error", rule: "unreadable" };
  const retryAfterS = isTemporary(reply) ? findRetryHint(text.words) : undefined;
  return { reading: rule.reading, rule: rule.id, ...(retryAfterS === undefined ? {} : { retryAfterS }) };
};

const isTemporary = ({ code }: SmtpReply): boolean => code >= 400 && code < 500;

const isByCodes = ({ signs, unless }: Rule): boolean => signs === undefined && unless === undefined;

const markedWith = (mark: "settledByRandom" | "settledByControl" | "knowsNothing" | "retriedOnce" | "pausesHost") => {
  const marked: ReadonlySet<string> = new Set(RULES.filter((rule) => rule[mark]).map(({ id }) => id));
  return (rule: string | null): boolean => rule !== null && marked.has(rule);
};

/**
 * Whether an `ambiguous` refusal of this rule is about the mailbox once the same host accepted a random recipient. Only
 * refusals whose words decide nothing, or mention an unknown recipient and nothing else. A refusal for size, sender or policy
 * may be for this recipient alone, though the mailbox exists. False for every other rule.
 */
export const mayBeSettledByRandom = markedWith("settledByRandom");

/**
 * Whether an `ambiguous` refusal of this rule is about the mailbox once the same host accepted another recipient of the
 * domain from the same egress. Only refusals in the words of an unknown recipient, without a word about us or a policy:
 * "550 5.7.1 No such user". False for every other rule.
 */
export const mayBeSettledByControl = markedWith("settledByControl");

/** Whether the server only said that it could not find out. */
export const knowsNothing = markedWith("knowsNothing");

/** Whether a temporary refusal of this rule is retried once only, unless the server requests a wait. */
export const isRetriedOnce = markedWith("retriedOnce");

/** Whether the server has shut us out for a while, so that no other probe should follow. */
export const pausesHost = markedWith("pausesHost");

const isSeen = ({ signs = [], unless = [] }: Rule, seen: (name: SignName) => boolean): boolean => {
  for (const name of signs) if (!seen(name)) return false;
  for (const name of unless) if (seen(name)) return false;
  return true;
};

/** Servers use few codes; a hostile one that invents many must not fill memory. */
const CACHED_MAX = 1024;
const rulesByCodes = new Map<string, readonly Rule[]>();

/** The rules for this stage and these codes, in order; cached, so that a reply is matched against those only. */
const rulesFor = (stage: ReplyStage, { code, enhanced }: SmtpReply): readonly Rule[] => {
  const key = `${stage} ${code} ${enhanced}`;
  const cached = rulesByCodes.get(key);
  if (cached) return cached;
  const rules = RULES.filter((rule) => concerns(rule, stage, code, enhanced));
  if (rulesByCodes.size < CACHED_MAX) rulesByCodes.set(key, rules);
  return rules;
};

const isAmong = (listed: readonly string[] | undefined, enhanced: string | null): boolean => {
  if (!listed || enhanced === null) return false;
  const [, subject, detail] = enhanced.split(".");
  return listed.includes(`${subject}.${detail}`) || listed.includes(`${subject}.*`);
};

const concerns = (rule: Rule, stage: ReplyStage, code: number, enhanced: string | null): boolean => {
  if (!rule.classes.some((digit) => digit === Math.floor(code / 100)) || rule.stages?.includes(stage) === false)
    return false;
  if (rule.codes?.includes(code) === false || rule.codesNot?.includes(code)) return false;
  if ((rule.bare && enhanced !== null) || isAmong(rule.enhancedNot, enhanced)) return false;
  return !rule.enhanced || isAmong(rule.enhanced, enhanced);
};

const IP_IN_LINK = /(?:[^0-9]|^)(?:\d{1,3}\.){3}\d{1,3}(?:[^0-9]|$)|[?&=/](?:[0-9a-f]{1,4}:){2,7}[0-9a-f:]/;

/** GMX and others put our address into every link; their cases r16xx are about the recipient, all others about us. */
const CASE_OF_RECIPIENT = /(?<!\S)\S*[?&]c=r16\d\d\b\S*/g;

/** So does Facebook; its case RCP-P1 means an unknown recipient. */
const RECIPIENT_OF_FACEBOOK = /(?<!\S)\S*\bfacebook\.\w+\/\S*response_codes\?\S*/g;
const isUnknownAtFacebook = (text: string): boolean => /\bRCP-P1\b/.test(text);

const knownSigns = (
  reply: SmtpReply,
  allLinks: string,
  { heloName, mailFrom, recipient, smtputf8Sent }: ReplyHints,
) => {
  const contains = (own: string | undefined): boolean =>
    own !== undefined && own.length > 2 && reply.text.toLowerCase().includes(own.toLowerCase());
  const otherLinks = allLinks.replace(CASE_OF_RECIPIENT, "");
  const links = isUnknownAtFacebook(reply.text) ? otherLinks.replace(RECIPIENT_OF_FACEBOOK, "") : otherLinks;
  return {
    link_with_address: links !== "" && IP_IN_LINK.test(links),
    names_us: contains(heloName),
    names_our_sender: contains(mailFrom) && !contains(recipient),
    smtputf8_sent: smtputf8Sent === true,
    smtputf8_not_sent: smtputf8Sent === false,
  };
};

const SUB_STATUS_OF = {
  accepted: "mailbox_exists",
  mailbox_not_found: "mailbox_not_found",
  mailbox_disabled: "mailbox_disabled",
  null_mx: "null_mx",
  smtputf8_unsupported: "smtputf8_unsupported",
  mailbox_full: "mailbox_full",
  greylisted: "greylisted",
  rate_limited: "rate_limited",
  blocked: "smtp_blocked",
  sender_rejected: "sender_rejected",
  tls_required: "tls_required",
  temporary: "smtp_temporary_error",
  protocol_error: "smtp_protocol_error",
  // A refusal that does not say that the mailbox is missing.
  ambiguous: "smtp_blocked",
} as const satisfies Record<ReplyReading, SubStatus>;

/** The sub_statuses that a single reply can lead to. */
export type ReplySubStatus = (typeof SUB_STATUS_OF)[ReplyReading];

/** The sub_status of a verification with only this reading (for `accepted`: with the random recipient refused). */
export const subStatusOf = (reading: ReplyReading): ReplySubStatus => SUB_STATUS_OF[reading];

/** The verdict that goes with `subStatusOf`. */
export const verdictOf = (reading: ReplyReading): Verdict => VERDICT_OF[subStatusOf(reading)];

/** What `postwarden inspect reply` prints, one object a reply. */
interface InspectedReply {
  readonly input: string;
  readonly code: number | null;
  readonly enhanced: string | null;
  readonly reading: ReplyReading;
  readonly verdict: ReturnType<typeof verdictOf>;
  readonly sub_status: ReplySubStatus;
  /** The rule that read the reply; `unparsable` when the text is no reply. */
  readonly rule: string;
}

/**
 * Reads one SMTP reply from text, as a check at `stage` would. Verdict and sub_status are what the check would conclude had it
 * received only this reply, with everything else fine and a random recipient refused. Text that is not one complete reply
 * reads as `protocol_error` with `code` null. Never throws.
 */
export const inspectReply = (input: string, stage: ReplyStage = "rcpt", hints: ReplyHints = {}): InspectedReply => {
  const parsed = parseReply(unfold(input.trim()));
  const { reading, rule } = parsed.ok
    ? readReply(parsed.value, stage, hints)
    : { reading: "protocol_error" as const, rule: "unparsable" };
  return {
    input,
    code: parsed.ok ? parsed.value.code : null,
    enhanced: parsed.ok ? parsed.value.enhanced : null,
    reading,
    verdict: verdictOf(reading),
    sub_status: subStatusOf(reading),
    rule,
  };
};

/** Mail logs fold a reply of several lines into one: "550-5.1.1 No such 550 5.1.1 user". Only such text is unfolded. */
const unfold = (text: string): string => {
  const code = /^([2-5][0-9]{2})-/.exec(text)?.[1];
  if (code === undefined || text.includes("\n") || !text.includes(` ${code} `)) return text;
  return text.replaceAll(` ${code} `, `\n${code} `).replaceAll(` ${code}-`, `\n${code}-`);
};

/** Longer hints are ignored: no greylisting waits that long, and a hostile server must not delay a verification. */
const RETRY_HINT_MAX_S = 86_400;

const UNIT =
  "(s|secs?|seconds?|sekunden?|secondes?|segundos?|secondi|sec\\.|m|mins?|minutes?|minuten?|minutos?|minuti|min\\.|h|hrs?|hours?|stunden?|heures?|horas?|ore|uur|minut|sekund\\w?|godzin\\w?|分钟|分鐘|分|秒|минут\\S?|секунд\\S?|час\\S{0,2}|분|초)";

/** The number must belong to a request to retry: "timeout after 300 seconds" does not match. */
// input ≤ 65,536 characters
const HINT = new RegExp(
  `(?:again|retry|back|wait|later|gr[ea]y-?list\\w*|defer\\w*|delay\\w*|resend|reconnect|erneut|spater|reessay\\w*|revenez|intent\\w*|reintent\\w*|tente|riprov\\w*|ponow\\w*|повтор\\S*|попроб\\S*)(?:[^.;!?\\d]|[.](?! )){0,40}?\\b(\\d{1,6})(?:\\.\\d+)? ?${UNIT}(?![a-z])`,
  "u",
);
const CLOCK_HINT = /(?:again|retry|back|wait|gr[ea]y-?list\w*)[^\d]{0,40}\b(\d{1,2}):([0-5]\d):([0-5]\d)\b/u;
// input ≤ 65,536 characters
const LEADING_HINT = new RegExp(
  `(?:^|[^\\d.])(\\d{1,6}) ?${UNIT} ?(?:后|後|later|spater|以降|and try|before retry|until)`,
  "u",
);

/** The wait that the server requests, in seconds, from folded text ("try again in 5 minutes"); undefined when it does not say. */
export const findRetryHint = (words: string): number | undefined => {
  if (!/\d/.test(words)) return undefined;
  const clock = CLOCK_HINT.exec(words);
  const match = clock ? null : (HINT.exec(words) ?? LEADING_HINT.exec(words));
  const seconds = clock
    ? Number(clock[1]) * 3600 + Number(clock[2]) * 60 + Number(clock[3])
    : Number(match?.[1] ?? 0) * secondsPer(match?.[2] ?? "s");
  return seconds > 0 && seconds <= RETRY_HINT_MAX_S ? seconds : undefined;
};

const secondsPer = (unit: string): number => {
  if (/^(?:m|分|минут|분)/u.test(unit)) return 60;
  if (/^(?:h|st|ore|uur|god|час)/u.test(unit)) return 3600;
  return 1;
};
