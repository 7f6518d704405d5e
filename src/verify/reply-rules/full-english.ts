import { anyOf, word } from "./pattern.ts";

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
