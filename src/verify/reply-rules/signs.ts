import { DISABLED_RECIPIENT, FULL_MAILBOX, UNKNOWN_RECIPIENT } from "./recipient-phrases.ts";
import {
  AUTH_DEMANDED,
  BLOCKLIST_NAMES,
  GREYLISTED,
  POLICY,
  RATE_LIMITED,
  REFUSAL,
  RELAY,
  SENDER,
  TEMPORARY,
  TLS_DEMANDED,
} from "./server-phrases.ts";
import type { ReplyText } from "./text.ts";
import { withoutAccents } from "./text.ts";

/** What is seen in the prose of a reply. */
const WORDS = {
  unknown_recipient: Object.values(UNKNOWN_RECIPIENT).flat(),
  disabled_recipient: DISABLED_RECIPIENT,
  full_mailbox: FULL_MAILBOX,
  blocklist: BLOCKLIST_NAMES,
  policy: POLICY,
  authentication_record: ["\\bspf\\b|\\bdkim\\b|\\bdmarc\\b|\\bsender policy framework"],
  refusal: REFUSAL,
  relay: RELAY,
  sender: SENDER,
  greylisted: GREYLISTED,
  rate_limited: RATE_LIMITED,
  tls_demanded: TLS_DEMANDED,
  auth_demanded: AUTH_DEMANDED,
  temporary: TEMPORARY,
  /** Gmail: the mailbox exists and is flooded. */
  receiving_fast: ["\\breceiving (?:mail|e-?mail|messages) (?:at a rate|too (?:quickly|fast))"],
  /** Exchange Online's directory-based edge blocking. */
  recipient_access_denied: ["\\brecipient address(?:es)? rejected ?: ?access denied"],
  list_expansion: ["\\bmailing list expansion"],
  null_mx: [
    "\\bnull[- ]?mx\\b|\\bdomain (?:\\S{1,64} )?(?:does not|doesn't) accept (?:e-?)?mail|\\bhas (?:a )?null mx",
  ],
  smtputf8: [
    "\\bsmtputf8\\b|\\bnon-?ascii\\b(?: \\S{1,20}){0,3} (?:not|address)|\\binternationali[sz]ed (?:e-?mail |mail )?address|\\beai\\b|\\bnon-?ascii address",
  ],
  oversize: [
    "\\b(?:message|mail|e-?mail)(?: file| body)?(?: size| is| was){0,2} (?:exceeds|too (?:big|large)|larger than|over (?:the )?(?:maximum|fixed)|limit exceeded)|\\bfixed maximum message size|\\bmessage length exceeds|\\bmaximum message size",
  ],
  timeout: [
    "\\btime(?:d)?[ -]?out|\\bidle\\b|\\binactivity\\b|\\bsystem (?:problem|error|failure)|\\binternal\\b|\\blocal error|\\bshutting down|\\bshutdown|\\bgoing down|\\bmaintenance\\b|\\bdata ?base\\b|\\bldap\\b|\\bsystem not accepting",
  ],
  try_in: [
    "\\b(?:try|retry|again|come back|wait|back|resend)\\b(?: \\S{1,16}){0,5} (?:in|after|for|within) (?:about |at least )?\\d|\\bin \\d{1,5} ?(?:s|sec|seconds|m|min|minutes)\\b",
  ],
} as const satisfies Record<string, readonly string[]>;

/** Signs that are looked for in the links, or given by what the caller knows. */
type OtherSign = "link_to_blocklist" | "link_with_address" | "names_us" | "names_our_sender" | "smtputf8_sent";

export type SignName = keyof typeof WORDS | OtherSign;

/** What the caller knows of its own side, found in the reply or not. */
export interface KnownSigns {
  readonly link_with_address: boolean;
  readonly names_us: boolean;
  readonly names_our_sender: boolean;
  readonly smtputf8_sent: boolean;
}

const compile = (sources: readonly string[]): RegExp => new RegExp(withoutAccents(sources.join("|")));

const isAscii = (source: string): boolean => ![...source].some((letter) => letter > "\u007f");

interface CompiledSign {
  readonly any: RegExp;
  /** The sources that an ASCII text can match: most replies are ASCII, and most tables are not. */
  readonly ascii: RegExp;
}

const compiled = new Map<string, CompiledSign>(
  Object.entries(WORDS).map(([name, sources]) => [
    name,
    { any: compile(sources), ascii: compile(sources.filter((source) => isAscii(source) || /[a-z]{4}/.test(source))) },
  ]),
);

/** Answers whether a sign is seen, and looks for each at most once. */
export const createSigns = (text: ReplyText, known: KnownSigns): ((name: SignName) => boolean) => {
  const seen = seenIn(text.words);
  return (name) => {
    if (name === "link_to_blocklist") return text.links !== "" && matches("blocklist", text.links);
    if (isKnown(name)) return known[name];
    const before = seen.get(name);
    if (before !== undefined) return before;
    const found = matches(name, text.words);
    seen.set(name, found);
    return found;
  };
};

const isKnown = (name: SignName): name is keyof KnownSigns =>
  !Object.hasOwn(WORDS, name) && name !== "link_to_blocklist";

/** With addresses masked a server says the same words about every recipient: what was seen in them need not be looked for again. */
const REMEMBERED_TEXTS_MAX = 256;
const seenByText = new Map<string, Map<SignName, boolean>>();

const seenIn = (words: string): Map<SignName, boolean> => {
  const before = seenByText.get(words);
  if (before) return before;
  if (seenByText.size >= REMEMBERED_TEXTS_MAX) seenByText.clear();
  const seen = new Map<SignName, boolean>();
  seenByText.set(words, seen);
  return seen;
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: the range is ASCII itself.
const ASCII_ONLY = /^[\u0000-\u007f]*$/;

const matches = (name: keyof typeof WORDS, text: string): boolean => {
  const sign = compiled.get(name);
  return sign !== undefined && (ASCII_ONLY.test(text) ? sign.ascii : sign.any).test(text);
};
