import type { SmtpReply } from "../net/smtp-reply.ts";
import { findRetryHint } from "./reply-rules/retry-hint.ts";
import type { REPLY_READINGS, Rule, REPLY_STAGES } from "./reply-rules/rule.ts";
import type { SignName } from "./reply-rules/signs.ts";
import { createSigns } from "./reply-rules/signs.ts";
import { RULES } from "./reply-rules/table.ts";
import { readableText } from "./reply-rules/text.ts";

/** What a reply means for a verification. `ambiguous`: a refusal that may be about us or about the mailbox. */
export type ReplyReading = (typeof REPLY_READINGS)[number];

/** Which of our commands the reply answers; `banner` is the greeting. */
export type ReplyStage = (typeof REPLY_STAGES)[number];

/** What the caller knows of its own side, so that a reply which quotes us is not taken for one about the mailbox. */
export interface ReplyHints {
  readonly heloName?: string;
  /** Our envelope sender, "" for the null sender. */
  readonly mailFrom?: string;
  /** The recipient that was asked about. */
  readonly recipient?: string;
  /** The host that answered: its name may contain "spam" or "block". */
  readonly mxHost?: string;
  /** Whether MAIL FROM carried SMTPUTF8 (RFC 6531). */
  readonly smtputf8Sent?: boolean;
}

export interface InterpretedReply {
  readonly reading: ReplyReading;
  /** Stable kebab-case id of the rule that spoke. */
  readonly rule: string;
  /** How long the server itself asked us to wait, in seconds (1 to 86,400). Only on temporary refusals. */
  readonly retryAfterS?: number;
}

/**
 * Reads what a reply says, from code, enhanced code and words, at the stage it was given.
 *
 * Never throws. A temporary refusal never reads as a "no" about the mailbox, nor does a permanent one that says "for
 * now". Only a reply to RCPT can be about the mailbox at all. A refusal in which the tables see words about us is `blocked` or
 * `ambiguous` even beside "user unknown"; so is one without a word they know. Only "5.1.1" and its kin decide alone.
 */
export const readReply = (reply: SmtpReply, stage: ReplyStage, hints: ReplyHints = {}): InterpretedReply => {
  const text = readableText(
    reply.text,
    [hints.recipient, hints.mxHost].filter((own) => own !== undefined),
    hints.recipient?.includes("@") ? hints.recipient.slice(0, hints.recipient.lastIndexOf("@")) : undefined,
  );
  const signs = createSigns(text, knownSigns(reply, text.links, hints));
  const rule = rulesFor(stage, reply).find((candidate) => isSeen(candidate, signs));
  if (!rule) return { reading: "protocol_error", rule: "unreadable" };
  const retryAfterS = reply.code < 500 && reply.code >= 400 ? findRetryHint(text.words) : undefined;
  return { reading: rule.reading, rule: rule.id, ...(retryAfterS === undefined ? {} : { retryAfterS }) };
};

const SETTLED_BY_RANDOM: ReadonlySet<string> = new Set(
  RULES.filter((rule) => rule.settledByRandom).map(({ id }) => id),
);

/**
 * Whether a refusal that this rule read as `ambiguous` means the mailbox once the same host accepted a random recipient. Only of
 * refusals whose words decide nothing, or speak of an unknown recipient and of nothing else. What was refused for its size, its
 * sender or a policy may be refused for this recipient alone, though the mailbox exists. False for every other rule.
 */
export const mayBeSettledByRandom = (rule: string): boolean => SETTLED_BY_RANDOM.has(rule);

const isSeen = ({ signs = [], unless = [] }: Rule, seen: (name: SignName) => boolean): boolean => {
  for (const name of signs) if (!seen(name)) return false;
  for (const name of unless) if (seen(name)) return false;
  return true;
};

/** Servers use few codes; a hostile one that invents many must not fill memory. */
const REMEMBERED_PLACES_MAX = 1024;
const rulesByPlace = new Map<string, readonly Rule[]>();

/** The rules that may speak at this stage and for these codes, in order; sorted out once, so that a reply asks only those. */
const rulesFor = (stage: ReplyStage, { code, enhanced }: SmtpReply): readonly Rule[] => {
  const place = `${stage} ${code} ${enhanced}`;
  const before = rulesByPlace.get(place);
  if (before) return before;
  const rules = RULES.filter((rule) => concerns(rule, stage, code, enhanced));
  if (rulesByPlace.size < REMEMBERED_PLACES_MAX) rulesByPlace.set(place, rules);
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

/** GMX and its kin put our address into every link; their cases r16xx are about the recipient, all others about us. */
const CASE_OF_RECIPIENT = /\S*[?&]c=r16\d\d\b\S*/g;

/** Facebook too; its case RCP-P1 says that there is no such recipient. */
const RECIPIENT_OF_FACEBOOK = /\S*\bfacebook\.\w+\/\S*response_codes\?\S*/g;
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

interface ConclusionEvidence {
  readonly verdict: "deliverable" | "undeliverable" | "risky";
  readonly subStatus: string;
}

const CONCLUSIONS = {
  accepted: { verdict: "deliverable", subStatus: "mailbox_exists" },
  mailbox_not_found: { verdict: "undeliverable", subStatus: "mailbox_not_found" },
  mailbox_disabled: { verdict: "undeliverable", subStatus: "mailbox_disabled" },
  null_mx: { verdict: "undeliverable", subStatus: "null_mx" },
  smtputf8_unsupported: { verdict: "undeliverable", subStatus: "smtputf8_unsupported" },
  mailbox_full: { verdict: "risky", subStatus: "mailbox_full" },
  greylisted: { verdict: "risky", subStatus: "greylisted" },
  rate_limited: { verdict: "risky", subStatus: "rate_limited" },
  blocked: { verdict: "risky", subStatus: "smtp_blocked" },
  sender_rejected: { verdict: "risky", subStatus: "sender_rejected" },
  tls_required: { verdict: "risky", subStatus: "tls_required" },
  temporary: { verdict: "risky", subStatus: "smtp_temporary_error" },
  protocol_error: { verdict: "risky", subStatus: "smtp_protocol_error" },
  // Nobody was heard to say that the mailbox is missing, somebody was heard to refuse.
  ambiguous: { verdict: "risky", subStatus: "smtp_blocked" },
} as const satisfies Record<ReplyReading, ConclusionEvidence>;

/** The sub_statuses that a single reply can lead to. */
export type ReplySubStatus = (typeof CONCLUSIONS)[ReplyReading]["subStatus"];

/** The sub_status of a check that heard only this reading (for `accepted`: with the random recipient refused). */
export const subStatusOf = (reading: ReplyReading): ReplySubStatus => CONCLUSIONS[reading].subStatus;

/** The verdict that goes with `subStatusOf`. */
export const verdictOf = (reading: ReplyReading): ConclusionEvidence["verdict"] => CONCLUSIONS[reading].verdict;
