import { cached } from "../../foundation/base/bounded-map.ts";
import { EASTERN } from "./languages-east.ts";
import { NORTHERN_AND_SOUTHERN } from "./languages-north-south.ts";
import { WESTERN } from "./languages-west.ts";
import { FULL_MAILBOX, DISABLED_RECIPIENT, UNKNOWN_RECIPIENT } from "./recipient-english.ts";
import {
  INABILITY,
  NAMED_UNKNOWN,
  QUOTED_TEMPORARY,
  FOR_NOW,
  LOOKUP_FAILED,
  SERVER_FAILED,
  AUTH_DEMANDED,
  GREYLISTED,
  RATE_LIMITED,
  SHUT_OUT,
  TEMPORARY,
  TLS_DEMANDED,
  UNKNOWN_RECIPIENTS_COUNTED,
  BLOCKLIST_NAMES,
  POLICY_WORDS,
  VENDOR_LINKS,
} from "./server-phrases.ts";
import { anyOf, disabledIn, fullIn, unknownIn } from "./pattern.ts";
import { REFUSAL, REJECTION, RELAY, SENDER, ADDRESS_BLOCKED, IP_ABROAD, SENDER_ABROAD } from "./refusal-phrases.ts";

const ABROAD = [...WESTERN, ...NORTHERN_AND_SOUTHERN, ...EASTERN];

/** After "accepts no mail": from a sender or under a condition, so it accepts other mail. */
const CONDITION = anyOf(
  "from",
  "without",
  "unless",
  "until",
  "sent",
  "for",
  "to",
  "over",
  "via",
  "by",
  "if",
  "which",
  "that",
);

/** Signs in the prose of a reply. */
const WORDS = {
  unknown_recipient: [...UNKNOWN_RECIPIENT, ...unknownIn(ABROAD)],
  disabled_recipient: [...DISABLED_RECIPIENT, ...disabledIn(ABROAD)],
  full_mailbox: [...FULL_MAILBOX, ...fullIn(ABROAD)],
  blocklist: BLOCKLIST_NAMES,
  vendor_link: VENDOR_LINKS,
  policy: [...POLICY_WORDS, ...IP_ABROAD],
  authentication_record: ["\\b(?:spf|dkim)\\b(?! domain\\b)|\\bdmarc\\b|\\bsender policy framework"],
  refusal: REFUSAL,
  rejection: REJECTION,
  relay: RELAY,
  sender: [...SENDER, ...SENDER_ABROAD],
  address_blocked: ADDRESS_BLOCKED,
  greylisted: GREYLISTED,
  rate_limited: RATE_LIMITED,
  unknown_recipients_counted: UNKNOWN_RECIPIENTS_COUNTED,
  /** Beside the one above: not only this session or this mail. */
  shut_out: SHUT_OUT,
  tls_demanded: TLS_DEMANDED,
  auth_demanded: AUTH_DEMANDED,
  temporary: TEMPORARY,
  /** Gmail: the mailbox exists and receives too much mail. */
  receiving_fast: ["\\breceiving (?:mail|e-?mail|messages) (?:at a rate|too (?:quickly|fast))"],
  /** Exchange Online's directory-based edge blocking. */
  recipient_access_denied: ["\\brecipient address(?:es)? rejected ?: ?access denied"],
  /** Worse than a rate limit: the IP address is blocked. */
  address_shut_out: [
    "\\bip\\b(?: \\S{1,40}){0,2} (?:has been|is|was) (?:temporarily |permanently )?(?:blocked|banned|blacklisted)\\b",
  ],
  /** A reply that mentions the sender may be about the sender. */
  mentions_sender: [
    "\\b(?:envelope )?senders?\\b|\\bmail ?from\\b|\\breturn[- ]path\\b|\\boriginator\\b|\\bbounces\\b",
  ],
  list_expansion: ["\\bmailing list expansion"],
  null_mx: [
    "\\bnull[- ]?mx\\b",
    `\\bdomain (?:\\S{1,64} )?(?:does not|doesn't) accept (?:any )?(?:e-?)?mails?\\b(?! (?:\\S{1,16} ){0,2}${CONDITION})`,
  ],
  /** The command was not understood, or its arguments. */
  syntax: [
    "\\bsyntax\\b|\\bparameters?\\b|\\barguments?\\b|\\bmalformed\\b|\\bunrecogni[sz]ed (?:command|parameter)|\\bsequence error\\b|\\b(?:say|send|need|issue) (?:helo|ehlo)\\b|\\b(?:helo|ehlo)(?: \\S{1,12})? (?:first|needed|required)\\b",
  ],
  smtputf8: [
    "\\bsmtputf8\\b|\\bnon-?ascii\\b(?: \\S{1,20}){0,3} (?:not|address)|\\binternationali[sz]ed (?:e-?mail |mail )?address|\\beai\\b|\\bnon-?ascii address",
  ],
  smtputf8_lacking: [
    "\\bnot\\b|n't\\b|\\bunsupported\\b|\\brequire[ds]?\\b|\\bmust\\b|\\bno\\b|\\bcannot\\b|\\bwithout\\b",
  ],
  /** The server refused something other than the address. */
  parameter: [
    "\\bparameters?\\b|\\boptions?\\b|\\barguments?\\b|\\bextensions?\\b|\\bsmtputf8\\b|\\bnot (?:implemented|supported)\\b|\\bunsupported\\b",
  ],
  for_now: FOR_NOW,
  lookup_failed: LOOKUP_FAILED,
  server_failed: SERVER_FAILED,
  inability: INABILITY,
  /** Matched in what is left of the text without its phrases of inability. */
  named_unknown: NAMED_UNKNOWN,
  quoted_temporary: QUOTED_TEMPORARY,
  /** About the message, its route or the server, without a recipient. */
  about_message: [
    "\\btransaction\\b|\\bloop(?:s|ing)?\\b|\\bmailloop\\b|\\bhops?\\b|\\bheaders?\\b|\\b8-?bit\\b|\\bline ?feeds?\\b|\\bmessages?\\b|\\bsize\\b|\\bcontents?\\b|\\byou(?:rs?)?\\b|\\blimits?\\b|\\bexceed|\\bquota\\b|\\blists?\\b|\\bgroup\\b|\\bcache\\b|\\bformat\\b|\\bnumber of\\b",
    "\\bservice\\b|\\bserver\\b|\\bsystem\\b|\\bconfiguration\\b|\\brequested (?:mail )?action\\b|\\bpurported\\b|\\bconnection\\b",
  ],
  /** Postfix and servers like it. */
  recipient_rejected: ["\\brecipient address(?:es)? rejected ?: ?\\w"],
  unavailable: ["\\bunavailable\\b|\\bnot available\\b|\\bcannot be accessed\\b|\\bno access\\b"],
  /** Parts of a message and its route: they do not fill a mailbox. */
  about_content: [
    "\\bheaders?\\b|\\blines?\\b|\\bmalformed\\b|\\bcontents?\\b|\\bhops?\\b|\\bloop(?:s|ing)?\\b|\\brecipients\\b|\\bencoding\\b|\\bmime\\b|\\bformat\\b",
  ],
  oversize: [
    "\\b(?:message|mail|e-?mail)(?: body)?(?: size(?: \\d{1,16})?| is| was){0,2} (?:exceeds|too (?:big|large)|larger than|over (?:the )?(?:maximum|fixed)|limit exceeded)|\\bfixed maximum message size|\\bmessage length exceeds|\\bmaximum message size",
  ],
  timeout: [
    "\\btime(?:d)?[ -]?out|\\bidle\\b|\\bconnection expired\\b|\\binactivity\\b|\\bsystem (?:problem|error|failure)|\\binternal\\b|\\blocal error|\\bshutting down|\\bshutdown|\\bgoing down|\\bmaintenance\\b|\\bdata ?base\\b|\\bldap\\b|\\bsystem not accepting",
  ],
  try_in: [
    "\\b(?:try|retry|again|come back|wait|back|resend)\\b(?: \\S{1,16}){0,5} (?:in|after|for|within) (?:about |at least )?\\d|\\bin \\d{1,5} ?(?:s|sec|seconds|m|min|minutes)\\b",
  ],
} as const satisfies Record<string, readonly string[]>;

/** Signs in the links, or known to the caller. */
type OtherSign =
  | "link_to_blocklist"
  | "link_of_vendor_beside_recipient"
  | "link_with_address"
  | "names_us"
  | "names_our_sender"
  | "smtputf8_sent"
  | "smtputf8_not_sent";

export type SignName = keyof typeof WORDS | OtherSign;

/** Our own names, found in the reply or not. */
export interface KnownSigns {
  readonly link_with_address: boolean;
  readonly names_us: boolean;
  readonly names_our_sender: boolean;
  readonly smtputf8_sent: boolean;
  readonly smtputf8_not_sent: boolean;
}

const OF_MAILBOX = new Set<SignName>(["unknown_recipient", "disabled_recipient", "full_mailbox", "null_mx"]);

/** The first use of one pattern of 15,000 characters takes 65 ms, that of eight of 2,000 takes 8. */
const PATTERN_CHARACTERS_MAX = 2_000;

const compile = (sources: readonly string[]): readonly RegExp[] => {
  let characters = 0;
  const pieces = Map.groupBy(sources, ({ length }) => {
    characters += length;
    return Math.floor(characters / PATTERN_CHARACTERS_MAX);
  });
  return [...pieces.values()].map((of) => new RegExp(withoutAccents(of.join("|")))); // input ≤ 65,536 characters
};

/** `ascii`: of the sources that an ASCII text can match: most replies are ASCII, and most tables are not. */
type CompiledSign = Readonly<Record<"any" | "ascii", readonly RegExp[]>>;

/** Compiled at first use: a command that reads one reply must not pay for all tables. */
const compiledSign = cached(Object.keys(WORDS).length, (name: keyof typeof WORDS): CompiledSign => {
  const sources: readonly string[] = WORDS[name];
  const ascii = sources.filter((source) => ASCII_ONLY.test(source) || /[a-z]{4}/.test(source));
  return { any: compile(sources), ascii: compile(ascii) };
});

/** Returns whether a sign is in the reply, and matches each at most once. */
export const createSigns = (text: ReplyText, known: KnownSigns): ((name: SignName) => boolean) => {
  return (name) => {
    if (name === "link_to_blocklist") return text.links !== "" && matches("blocklist", text.links);
    if (name === "link_of_vendor_beside_recipient")
      return areOfVendors(text.links) && matches("unknown_recipient", text.mailboxWords);
    if (isKnown(name)) return known[name];
    const words =
      name === "named_unknown" ? withoutInability(text.words) : OF_MAILBOX.has(name) ? text.mailboxWords : text.words;
    const seen = seenIn(words);
    const before = seen.get(name);
    if (before !== undefined) return before;
    const found = matches(name, words);
    seen.set(name, found);
    return found;
  };
};

/** What a server could not verify must not count as what it knows. */
const withoutInability = (words: string): string =>
  matches("inability", words)
    ? words.replace(new RegExp(withoutAccents(WORDS.inability.join("|")), "g"), "; ") // input ≤ 4,096 characters
    : words;

const isKnown = (name: SignName): name is keyof KnownSigns =>
  !Object.hasOwn(WORDS, name) && name !== "link_to_blocklist" && name !== "link_of_vendor_beside_recipient";

/** Whether every link that names a blocklist or a filter is an ordinary one of a vendor. */
const areOfVendors = (links: string): boolean =>
  links.split(" ").every((link) => !matches("blocklist", link) || matches("vendor_link", link));

/** With addresses masked, a server's text is the same for every recipient: its signs are cached. */
const REMEMBERED_TEXTS_MAX = 256;
const seenIn = cached(REMEMBERED_TEXTS_MAX, () => new Map<SignName, boolean>());

// biome-ignore lint/suspicious/noControlCharactersInRegex: the range is ASCII itself.
const ASCII_ONLY = /^[\u0000-\u007f]*$/;

const matches = (name: keyof typeof WORDS, text: string): boolean => {
  const sign = compiledSign(name);
  return (ASCII_ONLY.test(text) ? sign.ascii : sign.any).some((pattern) => pattern.test(text));
};

/** Whether servers use the word to describe a mailbox: in "disabled" of the address disabled@ they mean that. */
export const isStatusWord = cached(REMEMBERED_TEXTS_MAX, (word: string): boolean => {
  if (!/^\p{L}+$/u.test(word)) return false;
  return STATUS_SIGNS.some((name) => matches(name, `@ ${word}`) || matches(name, `${word} user`));
});
const STATUS_SIGNS = ["unknown_recipient", "disabled_recipient", "full_mailbox"] as const;

/** A reply's text in the form that patterns match. */
interface ReplyText {
  /** Folded words (see `foldText`), addresses replaced by "@" and links by "url". */
  readonly words: string;
  /** The words with the recipient's local part as "@" too: only mailbox phrases are matched here. */
  readonly mailboxWords: string;
  /** The links alone, folded, separated by spaces; empty when there are none. */
  readonly links: string;
}

/** Longer texts are cut. Patterns are linear, but a hostile server must not cost time. */
export const TEXT_CHARS_MAX = 4096;

/**
 * Lower case, no accents, white space as single spaces, compatibility forms unified (full-width letters, half-width kana): servers
 * write the same phrase with and without accents, and break it across lines.
 */
export const foldText = (text: string): string => {
  const lower = text.slice(0, TEXT_CHARS_MAX).toLowerCase();
  return (ASCII_ONLY.test(lower) ? lower : withoutAccents(lower)).replace(/\s+/g, " ").trim();
};

/** Strips Latin and Cyrillic accents only, so that kana and Hangul stay whole. */
const withoutAccents = (text: string): string =>
  text
    .normalize("NFKD")
    .replace(/[\u0300-\u036f]/g, "")
    .normalize("NFC")
    .replace(/[łıßøæœđð’‘´`]/g, (letter) => LETTERS[letter] ?? letter);

/**
 * Prepares a reply's text. Texts that we sent must not count (an address may contain "spam" or "unknown"): addresses
 * become "@", and so does every text of `ours`. A bare local part is masked only for mailbox phrases: "sender@" must not
 * hide "sender". One for which `isStatusWord` is true ("disabled@") is masked only where the reply quotes it. Links are
 * removed: their paths and parameters are not prose. "USER_UNKNOWN" is prose.
 */
export const readableText = (
  text: string,
  ours: readonly string[] = [],
  localPart?: string,
  isStatusWord: (word: string) => boolean = () => false,
): ReplyText => {
  let words = foldText(text);
  let links = "";
  if (words.includes("://") || words.includes("www.")) {
    const found: string[] = [];
    words = words.replace(/(?:https?:\/\/|www\.)[^\s<>"]+/g, (link) => {
      found.push(link);
      return "url";
    });
    links = found.join(" ");
  }
  for (const own of ours) if (own.length > 2) words = words.replaceAll(own.toLowerCase(), "@");
  const masked = words.includes("@") ? maskAddresses(words) : words;
  const withoutLocalPart = localPart === undefined ? masked : maskLocalPart(masked, foldText(localPart), isStatusWord);
  return { words: masked.replaceAll("_", " "), mailboxWords: withoutLocalPart.replaceAll("_", " "), links };
};

/** Shorter words occur in the prose by chance. */
const LOCAL_PART_CHARS_MIN = 3;
/** In a reply about user@, "no such user" is still about a mailbox, and the word alone means nothing. */
const PLAIN_NOUNS = new Set(
  "user users mail email mailbox account recipient address name customer member id".split(" "),
);

const maskLocalPart = (words: string, localPart: string, isStatusWord: (word: string) => boolean): string => {
  if (localPart.length < LOCAL_PART_CHARS_MIN || PLAIN_NOUNS.has(localPart) || !words.includes(localPart)) return words;
  const isProse = isStatusWord(localPart);
  let masked = words;
  for (let at = masked.indexOf(localPart); at >= 0; at = masked.indexOf(localPart, at + 1)) {
    const end = at + localPart.length;
    if (PART_OF_WORD.test(masked.slice(Math.max(0, at - 2), at)) || STARTS_IN_WORD.test(masked.slice(end, end + 2)))
      continue;
    if (isProse && !isQuoted(masked.charAt(at - 1), masked.charAt(end))) continue;
    masked = `${masked.slice(0, at)}@${masked.slice(end)}`;
  }
  return masked;
};

const QUOTES: Readonly<Record<string, string>> = { "<": ">", "(": ")", "[": "]", '"': '"', "'": "'" };
const isQuoted = (before: string, after: string): boolean => before !== "" && QUOTES[before] === after;

const PART_OF_WORD = /[\p{L}\p{N}_+-]$|[\p{L}\p{N}]\.$/u;
const STARTS_IN_WORD = /^[\p{L}\p{N}_+-]|^\.[\p{L}\p{N}]/u;

const LETTERS: Readonly<Record<string, string>> = {
  ł: "l",
  ı: "i",
  ß: "ss",
  ø: "o",
  æ: "ae",
  œ: "oe",
  đ: "d",
  ð: "d",
  "’": "'",
  "‘": "'",
  "´": "'",
  "`": "'",
};

/** What cannot be part of an address where servers quote one. */
const DELIMITERS = new Set(" <>()[]{}\"',;:|=");

const maskAddresses = (text: string): string => {
  let masked = "";
  let done = 0;
  for (let at = text.indexOf("@"); at >= 0; at = text.indexOf("@", done)) {
    let start = at;
    while (start > done && !DELIMITERS.has(text.charAt(start - 1)) && text.slice(start - 2, start) !== "..") start--;
    let end = at + 1;
    while (end < text.length && !DELIMITERS.has(text.charAt(end)) && text.slice(end, end + 2) !== "..") end++;
    while (end > at + 1 && (text.charAt(end - 1) === "." || text.charAt(end - 1) === "!")) end--;
    masked += `${text.slice(done, start)}@`;
    done = end;
  }
  return masked + text.slice(done);
};

/** What a reply can mean for a verification. The names are part of the interface (`inspect reply`). */
export const REPLY_READINGS = [
  "accepted",
  "mailbox_not_found",
  "mailbox_disabled",
  "mailbox_full",
  "greylisted",
  "rate_limited",
  "blocked",
  "sender_rejected",
  "tls_required",
  "temporary",
  "null_mx",
  "smtputf8_unsupported",
  "protocol_error",
  "ambiguous",
] as const;

/** What the reply is to: the connection itself, EHLO or HELO, STARTTLS, MAIL FROM, RCPT TO. */
export const REPLY_STAGES = ["banner", "ehlo", "starttls", "mail", "rcpt"] as const;

type RuleReading = (typeof REPLY_READINGS)[number];
type RuleStage = (typeof REPLY_STAGES)[number];

/** One rule of the table: the first whose conditions all hold applies. A condition that is absent always holds. */
export interface Rule {
  /** Stable, kebab-case; shown as evidence. */
  readonly id: string;
  readonly reading: RuleReading;
  readonly stages?: readonly RuleStage[];
  /** First digits of the codes to which it applies. */
  readonly classes: ReadonlyArray<2 | 3 | 4 | 5>;
  readonly codes?: readonly number[];
  readonly codesNot?: readonly number[];
  /** Enhanced codes without their class: "1.1", or "7.*" for a whole subject. The reply must have one of them. */
  readonly enhanced?: readonly string[];
  /** None of these; a reply without an enhanced code has none of them. */
  readonly enhancedNot?: readonly string[];
  /** Only replies without an enhanced code. */
  readonly bare?: true;
  /** Every one of these must be in the text. */
  readonly signs?: readonly SignName[];
  /** None of these may be in the text. */
  readonly unless?: readonly SignName[];
  /** For an ambiguous reading: no word is about us, so an accepted random recipient shows that it is about the mailbox. */
  readonly settledByRandom?: true;
  /** For an ambiguous reading: the words are about the mailbox, so an accepted other recipient shows that the code is too. */
  readonly settledByControl?: true;
  /** The server did not find out whether the recipient exists: that says nothing about other recipients either. */
  readonly knowsNothing?: true;
  /** A temporary refusal that names our address or a blocklist: waiting seldom helps, so it is retried once. */
  readonly retriedOnce?: true;
  /** The server has shut us out: the host gets no probe from this egress until the first retry is due. */
  readonly pausesHost?: true;
}
