import { GAP, anyOf, upTo, word } from "./pattern.ts";

/** Whose mailbox it is. "@" stands for every address, see `readableText`; an IP address is not a mailbox. */
const OWNERS = ["users?", "recipients?", "addressees?", "customers?", "subscribers?", "members?", "persons?", "rcpts?"];
const PLACES = ["mail-?box(?:es)?", "mail box(?:es)?", "accounts?", "alias(?:es)?", "mail ?drops?", "inbox"];
const NAMES = [
  "(?:user|mail|account|login)[ -]?(?:names?|id)",
  "local[ -]?part",
  "e-?mail id",
  "user ?accounts?",
  "home directory",
  "mail-?address",
  "(?<!\\bip |\\bipv[46] |\\bsource |\\bclient |\\bserver |\\bsender |\\bfrom )address(?:es)?",
];
const SUBJECT_WORDS = [...OWNERS, ...PLACES, ...NAMES];
/** "The recipient's domain" is not a recipient. */
const OF_ITS_HOST = "(?!'?s? (?:e-?mail |mail )?(?:domains?|servers?|hosts?|systems?|mx|networks?|providers?|policy))";
/** A recipient, an address or a mailbox. */
export const SUBJECT = `(?:@|${word(SUBJECT_WORDS)}${OF_ITS_HOST})`;

const NO = anyOf(
  "does ?n[o']t",
  "dosn'?t",
  "does no",
  "doesn'?t",
  "do not",
  "did not",
  "don'?t",
  "didn'?t",
  "is not",
  "not",
  "no longer",
);

/** Up to a few words after the subject: these phrases are unambiguous. */
const NOT_THERE = [
  `${NO} (?:currently |actually )?exists?\\b`,
  "doesnt exists?\\b|non-?exist[ae]nt|non exist[ae]nt|inexistent|\\bno exists?\\b",
  "(?:could|can|was|were|is|be|are|has)?(?:n't|not| not) (?:be |been )?(?:found|located)\\b",
  "no longer (?:here|valid|exist|on (?:(?:this|our|the) )?(?:server|system))|not (?:present|ok)\\b",
  "\\bunknown\\b(?! (?:host|client|command|helo|error|option|sender|server|ip|domain|reason|problem|encoding|charset|protocol|failure|agent|method|mechanism))",
  "(?:does not|doesn't) receive (?:any )?(?:e-?mail|mail|messages)\\b",
  "\\blook-?up in (?:\\S{1,16} ){0,2}?(?:map|table|list) failed\\b",
];

/** Directly after the subject, because these words are used about many other things too. */
const NOT_VALID = [
  "invalid",
  "illegal",
  "incorrect",
  "unallocated",
  "unrecogni[sz]ed",
  "undeliverable",
  "unrout(?:e)?able",
  "unava\\w{0,3}able(?!:| (?:due|because|temporar|at this time|now|right))",
  "not used\\b",
  "not recogni[sz]ed",
  "(?:not|cannot) (?:be )?(?:known|listed|valid|local|registered|here|handled|defined|configured|hosted|provisioned)",
  "not (?:available|active on|a (?:valid|known|registered|local)|a mailbox)(?! (?:due|because|temporar|at this time|now|right))",
  "not (?:on|at) this (?:server|system|host)",
  "(?:deleted|removed|cancell?ed)\\b",
];
const LINKING = anyOf(
  [
    "is",
    "was",
    "are",
    "has",
    "have",
    "been",
    "currently",
    "marked",
    "as",
    "status",
    "the",
    "specified",
    "given",
    "entered",
  ],
  ["name", "address", "account", "mailbox", "user", "id", "could", "can", "\\([^)]{0,40}\\)"],
);

/** Before the subject. */
const UNKNOWN_KIND = [
  "unknown",
  "invalid",
  "illegal",
  "bad",
  "wrong",
  "incorrect",
  "undeliverable",
  "unrecogni[sz]ed",
  "unrout(?:e)?able",
  "non-?exist[ae]nt",
  "inexistent",
  "unavailable",
  "not found",
  "no valid",
  "not a valid",
  "not a known",
];
const OR_ELSE = "(?:(?:or|and|/)? ?(?:illegal|invalid|disabled|unknown|inactive|nonexistent) )?";
const QUALIFIER = anyOf(
  [
    "local",
    "virtual",
    "final",
    "destination",
    "recipient'?s?",
    "target",
    "to",
    "delivery",
    "e-?mail",
    "user",
    "mail ?box",
    "mail",
  ],
  ["smtp", "active", "valid", "internet", "known", "registered", "rcpt", "such", "account", "forward(?:ing)?"],
);
/** After "invalid recipient": then it was not the recipient. */
const NOT_OF_LIST = "(?! (?:list|size|count|limit|number|content|agent|polic|would|could|send))";
const NAMED = word(SUBJECT_WORDS, "name", "e-?mail", "address", "id");

/** "… by that name", "… here": what follows "no mailbox" when it means that there is none. */
const HERE = anyOf(
  [
    "here",
    "by (?:that|this) name",
    "with (?:that|this|such) (?:name|e-?mail|address)",
    "exists?",
    "found",
    "named",
    "available",
  ],
  [
    "at (?:this|that) (?:address|host|domain)",
    "on (?:this|that) (?:server|system|host)",
    "matching",
    "for (?:this|that|the) (?:user|address)",
  ],
);

/** cPanel, of a recipient that is unknown; one whose verification fails for now gets 4xx there. */
export const LISTS_ITS_RECIPIENTS = "\\bcheck all recipients of this message to verify (?:that )?they are valid\\b";

/** The recipient is unknown. */
export const UNKNOWN_RECIPIENT: readonly string[] = [
  `${SUBJECT}${GAP}${anyOf(NOT_THERE)}`,
  `${SUBJECT}[^a-z0-9]{0,6}(?:@[^a-z0-9]{0,4})?(?:${LINKING} ?){0,4}${anyOf(NOT_VALID)}`,
  // The text of RFC 5321 for 550; providers that use it mean the mailbox.
  "\\bmailbox(?: @| <@>)? (?:is )?(?:unavailable|not available)\\b(?! (?:due|because|temporar|at this time|now|right))(?![^;]{0,40}(?:quota|full\\b|storage))",
  `\\b${anyOf(UNKNOWN_KIND)}[ /-]${OR_ELSE}(?:${QUALIFIER} ){0,3}${NAMED}${NOT_OF_LIST}`,
  `\\bno such (?:a )?(?:${QUALIFIER} ){0,3}${word(NAMED, "one", "target")}${NOT_OF_LIST}`,
  `\\bno (?:${QUALIFIER} )?${word(SUBJECT_WORDS, "one", "body")}(?: \\S{1,30}){0,3} ${HERE}\\b`,
  `\\bno (?:${QUALIFIER} )?${word(OWNERS, PLACES)}\\W*$`,
  "\\b(?:nobody|no[ -]?one)\\b (?:here )?(?:by|with|at) (?:that|this) (?:name|e-?mail|address)",
  "\\bno (?:redirect|forward(?:ing)?|alias|mapping) (?:entry|address|rule)s? for\\b",
  `\\bnot (?:an? |one of |in )?(?:our |my |this |a )?(?:(?:valid|known|active|local|registered|existing|current|one of our) ){0,2}${anyOf("users?|recipients?|mail-?box|account|customers?|subscribers?|e-?mail address|address(?:ee)?")} (?:of|on|at|in|here|for)\\b`,
  `\\bnot an? (?:(?:valid|known|active|local|registered|existing|current|recogni[sz]ed) ){1,2}(?:e-?mail )?${NAMED}`,
  "\\bnot (?:our|a|one of our) (?:valid )?(?:customers?|subscribers?|(?:local )?users?)\\b",
  "\\bnot a member of (?:the |this )?domain|@[^a-z0-9]{0,4} is not a registered gateway user\\b",
  "\\bnot (?:listed |found |present |known )?in (?:the |our |my |this |any )?(?:local |virtual |relay |domino |ldap |active |server'?s? )?(?:recipient|mailbox|alias|user|directory|address book|public name|validrcptto)",
  `${SUBJECT}${GAP}(?:does not|doesn'?t|do not) have an? ${GAP}\\baccount\\b`,
  `${SUBJECT}${GAP}\\b(?:have|has|with) no (?:mail|mail-?box|account|inbox)\\b`,
  `\\b${anyOf("do not", "don'?t", "doesn'?t", "does not")} (?:have|know|recogni[sz]e|host) (?:(?:of|about|an?|any|this|that|the|such) ){1,3}${NAMED}`,
  "\\bdon'?t exists? (?:that|this|the|such) user|\\bhandle mail for (?:that|this) user\\b",
  `\\b${anyOf("can'?t", "cannot", "can not", "could not", "couldn'?t", "unable to")} (?:find|locate|recogni[sz]e) (?:(?:the|this|that|a|your|any) )?(?:${QUALIFIER} )?${word(OWNERS, PLACES, "to address", "recipient'?s address", "destination address", "user'?s? mailbox")}`,
  "(?:ex)?recip(?:ient)?notfound\\b|\\bnosuchuser\\b|\\buserunknown\\b|\\bunknownuser\\b|\\bnosuchmailbox\\b",
  "\\b(?:not|isn't) in my list of allowed recipients|\\bnot have a final e-?mail delivery point",
  "\\bthis \\w{3,16} (?:does not|doesn't) exist|\\bno \\S{1,40} in (?:name )?directory\\b|\\b(?:can't|cannot) accept (?:user|recipient)\\b",
  "^not exists?\\b|\\bnot (?:listed here|found in (?:ldap|the directory))|\\bincorrectly addressed\\b",
  "\\bdestination server rejected recipients?\\b",
  `\\b(?:e-?)?mail ${NO} exists?\\b`,
  LISTS_ITS_RECIPIENTS,
  "\\bnot (?:found )?(?:by|via) (?:smtp )?address lookup\\b|\\bmissing home directory\\b",
  "^addressee unknown|\\bmailbox name not allowed\\b|\\bnot one of our own addresses\\b|\\bnot a valid rfc ",
  "\\bofr_?\\d* 416\\b|\\bofr 416\\b|\\blpn\\d+ 416\\b",
];

/** What is done to a mailbox; not what is done to connections, messages or certificates. */
const SWITCHED_OFF = [
  "disabled",
  "de-?activated",
  "inactivated",
  "in-?active",
  "suspend(?:ed)?",
  "discontinued",
  "dormant",
  "frozen",
  "archived",
  "terminated",
  "decommissioned",
  "deprovisioned",
  "revoked",
  "retired",
  "on hold",
  "banned",
  "blocked (?:due to|for|because of) (?:\\S{1,16} ){0,2}inactivity",
  "not (?:been )?(?:active|enabled|activated)",
  "no longer (?:active|available|in use|in service|accept(?:s|ing)|receiv\\w+|monitored|used|with|employed)",
  "(?:is|has been) (?:administratively )?blocked(?=\\W*$)",
  "has left",
  "(?:has not|hasn't) (?:entered|logged in)",
  "never (?:been )?logged (?:in|on)\\w*",
  "is not accepting (?:any |new )?(?:mail|e-?mail|messages)",
  "(?<!\\b(?:connection|session|channel|certificate|password|message|link|file|database) (?:is |was |has |has been )?)(?:closed|locked|expired)",
];

/** The recipient exists but is disabled. */
export const DISABLED_RECIPIENT: readonly string[] = [
  `(?:${SUBJECT}|<[^ >]{1,64}>)${GAP}\\b${anyOf(SWITCHED_OFF)}\\b(?! (?:sender|ip|network|domain|server|host))`,
  `\\b${anyOf("disabled", "suspended", "inactive", "archived", "de-?activated", "frozen", "locked", "expired", "closed", "terminated")} ${upTo(1)}${anyOf("user", "recipient", "mail-?box", "account", "address", "e-?mail")}\\b`,
  "\\binactivity\\b[^.;]{0,60}\\b(?:mail-?box|account|recipient)\\b|\\b(?:mail-?box|account)\\b[^.;]{0,40}\\b(?:due to|for|because of) (?:\\S{1,16} ){0,2}inactivity",
  "\\bnot (?:currently )?(?:being )?accept(?:ed|ing)\\b[^.;]{0,30}\\b(?:for|to) (?:this|that) (?:mail-?box|account|recipient)",
  "\\bno longer (?:an? )?(?:employ\\w+|works?\\b|with (?:us|the company))",
  "\\bno recipient activity\\b|\\buser is over the quota and disabled\\b",
];

const ROOM = [
  "quota",
  "storage(?: space| allocation| limit)?",
  "(?:disk|mailbox|storage|inbox) ?(?:space|size|limit)",
  "disk ?space",
];
const WHOSE = anyOf(
  [
    "the",
    "its",
    "his",
    "her",
    "their",
    "your",
    "his/her",
    "user'?s?",
    "recipient'?s?",
    "mail",
    "e-?mail",
    "mailbox",
    "account",
  ],
  [
    "inbox",
    "message",
    "disk",
    "disc",
    "storage",
    "allocated",
    "allowed",
    "allowable",
    "maximum",
    "max",
    "available",
    "free",
    "file",
  ],
  ["hard", "soft", "limit", "local", "dropfile", "size", "space", "of", "for"],
);
const HOLDS_MAIL = [
  "mail-?box",
  "mail box",
  "inbox",
  "account",
  "user",
  "maildir",
  "mail ?drop",
  "mail ?file",
  "mail ?folder",
  "storage",
  "folder",
  "recipient",
  "disk",
  "customer",
];

const IS_FULL = [
  "full\\b",
  "over ?(?:the |its |his |their |disk |mail |storage )?(?:quota|quote|limit)",
  "out of (?:space|storage|quota)",
  "has no (?:space|storage|room)",
  "over ?drawn|at capacity",
  "has reached (?:its|the|his|their) (?:\\S{1,16} ){0,2}limit",
];

/** The recipient exists and its mailbox is full. */
export const FULL_MAILBOX: readonly string[] = [
  `${word(HOLDS_MAIL)}(?! (?:might|may) be disabled)(?:[^.;!?]|\\.(?! )){0,40}?\\b${anyOf(IS_FULL)}`,
  `\\b${anyOf("over", "out of", "exceed(?:s|ed|ing)?", "would exceed", "insufficient", "not enough", "no", "low on", "reached", "exhausted")} (?:${WHOSE} ){0,5}${anyOf(ROOM)}\\b`,
  `\\b${anyOf(ROOM)}(?: \\S{1,20}){0,3} ${anyOf("exceeded", "exceed", "exceeds", "full", "reached", "is over", "not enough", "exhausted", "violation", "used up")}\\b`,
  `\\b${anyOf("mail-?box", "account", "inbox", "user", "recipient", "customer")}\\b(?: \\S{1,24}){0,4} exce?eds? (?:the |its )?(?:${WHOSE} ){0,3}${anyOf("size", "limit", "storage", "message count", "count", "quota")}\\b`,
  "\\bmail ?box (?:space not enough|limit exce?eded)\\b|\\boverquota\\b|\\bover-quota\\b|\\bmailbox ?full\\b|\\bfull (?:mail ?box|inbox)\\b|\\bmailfolder is full\\b",
  "\\bno (?:more )?(?:room|space) (?:left |available )?(?:in|for|on)\\b|\\bdisk full\\b",
  "\\bmail ?file size exceeds\\b",
  "\\bover the maximum allowed (?:mailbox size|number of messages)\\b|exceeded (?:storage|disk) allocation",
  "(?:not|n't) have (?:enough|sufficient) (?:disk ?|storage )?(?:space|room)|\\bnot enough (?:disk ?)?space|\\bexceeding receiving limits",
  "\\btoo (?:much mail(?: data)?\\b(?! from)|many (?:mails|messages) (?:on|in) )",
];
