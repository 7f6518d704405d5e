import { EASTERN } from "./languages-east.ts";
import { NORTHERN_AND_SOUTHERN } from "./languages-north-south.ts";
import { WESTERN } from "./languages-west.ts";
import { GAP, anyOf, word } from "./pattern.ts";
import { LISTS_ITS_RECIPIENTS, SUBJECT } from "./recipient-english.ts";
import { uncheckedIn } from "./vocabulary.ts";

const FAILED_TO = anyOf(
  ["could not", "couldn'?t", "cannot", "can'?t", "can not", "did not", "didn'?t", "unable to", "not able to"],
  ["failed to", "fails to", "failure to", "(?:not possible|impossible) (?:for us )?to", "no way to"],
);
const CHECK = anyOf(
  ["verify", "validate", "check", "confirm", "resolve", "determine", "look ?up", "look", "contact", "reach"],
  ["ascertain", "establish", "evaluate", "query", "test", "re-?verify", "re-?check"],
);
const CHECKED = anyOf(
  ["verified", "validated", "checked", "confirmed", "resolved", "determined", "looked up", "contacted", "reached"],
  ["ascertained", "established", "evaluated", "queried", "tested", "opened", "read", "loaded"],
);
const CHECKING = anyOf(
  ["verif(?:ication|ying|y)", "validat(?:ion|ing|e)", "check(?:ing|s)?", "confirm(?:ation|ing)", "resol(?:ution|ving)"],
  ["determin(?:ation|ing)", "look(?:ing)?[ -]?up", "contacting", "reaching", "call-?out", "call-?back", "probe"],
);
const WENT_WRONG = anyOf(
  ["failed", "failure", "fails", "error", "unsuccessful", "incomplete", "impossible", "not possible", "aborted"],
  ["interrupted", "skipped", "not (?:completed|performed|available|successful)", "did not (?:complete|succeed)"],
  ["could not be (?:completed|performed|done|made|carried out|finished)"],
);

/** Up to a few words, none of which ends a clause: "lookup in domain map failed" is a lookup that found nothing. */
const OF_WHOM = "(?: (?!in (?:\\S{1,16} ){0,2}?(?:map|table|list)\\b)[^\\s:;.]{1,40}){0,5}?";

const UNCHECKED = [
  // The purported responsible address is that of a sender.
  `\\b${FAILED_TO} (?:\\w{2,16}ly )?${CHECK}\\b(?! purported)`,
  `\\b(?:(?:could|was|were|is|are|has|have|does|do)n'?t|can'?t|cannot|not|never)(?: (?:yet|been|be|\\w{2,16}ly)){0,3} ${CHECKED}\\b`,
  `\\bun(?:verified|verifiable|validated|confirmed|checked|determined|resolved|reachable)\\b|\\bnot (?:verifiable|reachable|resolvable|determinable)\\b`,
  `\\b${CHECKING}${OF_WHOM} ${WENT_WRONG}\\b`,
  `\\b(?:failed|failure|error|problem|trouble|unsuccessful)(?: (?:in|of|on|to|at|with|during|while|when|the|a|your|an)){0,3} ${CHECKING}\\b`,
];
const FAILED_CHECK = `\\b${CHECKING} (?:of|for|on) (?:[^\\s:;.]{1,40} ){0,4}?${WENT_WRONG}\\b|\\b(?:failed|unsuccessful) (?:${word("recipient", "user", "address", "mailbox", "account")} )${CHECKING}\\b`;
/** Within one clause, so that what follows a colon is read for itself: "could not verify: no such user". */
const WITHIN_CLAUSE = "(?:[^.;:!?]|\\.(?! )){0,48}?";
/** Postfix reports its own failure of address verification so, with 5.1.1: the mail would not have reached a mailbox. */
const NEVER_ASKED = ["\\bmail for \\S{1,128} loops? back\\b", "\\bloops? back to (?:myself|itself)\\b"];

/**
 * The server could not find out whether the mailbox exists. That it was unable to verify a recipient is not knowledge about
 * it, whatever the code.
 */
export const INABILITY: readonly string[] = [
  `${SUBJECT}${GAP}${anyOf(UNCHECKED)}`,
  `${anyOf(UNCHECKED)}${WITHIN_CLAUSE}${SUBJECT}`,
  FAILED_CHECK,
  ...NEVER_ASKED,
  ...uncheckedIn([...WESTERN, ...NORTHERN_AND_SOUTHERN, ...EASTERN]),
];

const ITS_TABLE = "(?! (?:data ?base|directory|table|map|list|server|service|store|back-?end|look-?up|cache|quota))";
const NAMED = `${anyOf("user", "recipient", "rcpt", "addressee", "mail-?box", "account", "address", "alias")}${ITS_TABLE}\\b`;

/** Beside an inability, only this is knowledge: "callout failed: 550 user unknown". */
export const NAMED_UNKNOWN: readonly string[] = [
  `\\b(?:unknown|no such|invalid|non-?exist[ae]nt|no) (?:local |virtual |such )?${NAMED}`,
  `(?:\\b${NAMED}|@)[^a-z0-9]{0,6}(?:is |was |has been |could |does |do |did ){0,2}${anyOf(["unknown\\b(?! (?:host|error|reason|problem|server))", "not (?:exist|be found|found|known)", "n't exist", "doesn'?t exist", "no longer exist"])}`,
  "\\bnot found in (?:the )?(?:\\S{1,16} )?(?:recipient|user) (?:table|list)\\b|\\bnosuchuser\\b|\\buserunknown\\b",
  LISTS_ITS_RECIPIENTS,
];

const REPLY_WORD = anyOf(
  ["said", "says", "replied", "replies", "reply", "answered", "answer", "returned", "responded", "response"],
  ["gave", "got", "failed", "failure", "error", "code", "status", "result", "with", "reports?", "reported"],
);

/** A 4xx reply of another server, quoted within a permanent refusal: "cannot verify recipient: server replied 421". */
export const QUOTED_TEMPORARY: readonly string[] = [
  `\\b${REPLY_WORD}(?: \\S{1,40}){0,2}?[: ("'<-]{1,4}4[2-57]\\d\\b(?!\\.\\d|[%/]| ?(?:bytes?|kb|mb|gb|ms|s|sec|seconds?|minutes?|messages?|mails?|days?|recipients?)\\b)`,
  `(?:^|[ (<"'-])4[2-57]\\d[ -]#?4\\.\\d{1,2}\\.\\d{1,3}\\b|\\(#?4\\.[0-7]\\.\\d{1,3}\\)`,
];
