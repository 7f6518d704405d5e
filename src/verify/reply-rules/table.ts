import type { Rule } from "./rule.ts";

/** Not about anybody: the meaning lies in the code alone. */
const BY_CODE: readonly Rule[] = [
  { id: "closing-221", reading: "protocol_error", classes: [2], codes: [221] },
  // A dialogue out of step must not make a mailbox exist.
  {
    id: "reply-to-another-command",
    reading: "protocol_error",
    stages: ["mail", "rcpt"],
    classes: [2],
    codes: [211, 214, 220, 235],
  },
  { id: "accepted-2xx", reading: "accepted", classes: [2] },
  { id: "intermediate-3xx", reading: "protocol_error", classes: [3] },
];

/** About us: connection, sender, policy. Asked before anything is believed about the mailbox. */
const ABOUT_US: readonly Rule[] = [
  {
    id: "receiving-too-fast",
    reading: "accepted",
    stages: ["rcpt"],
    classes: [4, 5],
    enhanced: ["2.1"],
    signs: ["receiving_fast"],
  },
  { id: "tls-refused", reading: "tls_required", stages: ["starttls"], classes: [5] },
  { id: "tls-refused-for-now", reading: "temporary", stages: ["starttls"], classes: [4] },
  { id: "tls-demanded-by-words", reading: "tls_required", classes: [4, 5], signs: ["tls_demanded"] },
  { id: "tls-demanded-by-code", reading: "tls_required", classes: [5], enhanced: ["7.10"] },
  { id: "authentication-demanded", reading: "blocked", classes: [4, 5], signs: ["auth_demanded"] },
  { id: "tls-demanded-530", reading: "tls_required", classes: [5], codes: [530] },
  {
    id: "smtputf8-refused-by-code",
    reading: "smtputf8_unsupported",
    stages: ["mail", "rcpt"],
    classes: [5],
    enhanced: ["6.7"],
  },
  {
    id: "smtputf8-refused-by-words",
    reading: "smtputf8_unsupported",
    stages: ["mail", "rcpt"],
    classes: [5],
    signs: ["smtputf8"],
  },
  {
    id: "smtputf8-parameter-refused",
    reading: "smtputf8_unsupported",
    stages: ["mail"],
    classes: [5],
    codes: [501, 504, 555],
    signs: ["smtputf8_sent"],
  },
  { id: "greylisting-words", reading: "greylisted", classes: [4, 5], signs: ["greylisted"] },
  { id: "domain-authentication", reading: "blocked", classes: [4, 5], signs: ["authentication_record"] },
  {
    id: "null-mx-of-recipient",
    reading: "null_mx",
    stages: ["rcpt"],
    classes: [5],
    signs: ["null_mx"],
    unless: ["sender"],
  },
  { id: "sender-by-words", reading: "sender_rejected", stages: ["mail", "rcpt"], classes: [4, 5], signs: ["sender"] },
  {
    id: "sender-by-code",
    reading: "sender_rejected",
    stages: ["mail", "rcpt"],
    classes: [4, 5],
    enhanced: ["1.7", "1.8", "7.27"],
  },
  {
    id: "names-our-sender",
    reading: "sender_rejected",
    stages: ["mail", "rcpt"],
    classes: [4, 5],
    signs: ["names_our_sender"],
  },
  { id: "rate-by-words", reading: "rate_limited", classes: [4, 5], signs: ["rate_limited"], unless: ["blocklist"] },
  { id: "rate-by-code", reading: "rate_limited", classes: [4, 5], enhanced: ["4.5", "5.3"] },
  { id: "link-to-blocklist", reading: "blocked", classes: [4, 5], signs: ["link_to_blocklist"] },
  { id: "link-with-our-address", reading: "blocked", classes: [4, 5], signs: ["link_with_address"] },
  { id: "blocklist-named", reading: "blocked", classes: [4, 5], signs: ["blocklist"] },
  { id: "policy-words", reading: "blocked", classes: [4, 5], signs: ["policy"] },
  { id: "relay-refused", reading: "blocked", stages: ["mail", "rcpt"], classes: [4, 5], signs: ["relay"] },
];

/** Not at RCPT: a refusal that named no reason is still about us. */
const BEFORE_RCPT: readonly Rule[] = [
  { id: "bad-sequence-503", reading: "protocol_error", classes: [5], codes: [503] },
  {
    id: "command-unknown",
    reading: "protocol_error",
    stages: ["banner", "ehlo", "mail"],
    classes: [5],
    codes: [500, 502, 504],
  },
  { id: "parameters-refused", reading: "protocol_error", stages: ["mail"], classes: [5], codes: [555] },
  { id: "connection-refused", reading: "blocked", stages: ["banner", "ehlo"], classes: [5] },
  { id: "mail-policy-code", reading: "blocked", stages: ["mail"], classes: [5], enhanced: ["7.*"] },
  { id: "mail-refused-outright", reading: "blocked", stages: ["mail"], classes: [5], signs: ["refusal"] },
  { id: "mail-refused", reading: "sender_rejected", stages: ["mail"], classes: [5] },
];

/** Enhanced codes that speak of the recipient (RFC 3463 §3.2; 1.10 by RFC 7505). */
const NOT_FOUND_CODES = ["1.0", "1.1", "1.3", "1.6", "1.10"] as const;

/** RCPT, permanent: the only place where a mailbox can be refused. */
const RCPT_PERMANENT: ReadonlyArray<Omit<Rule, "stages">> = [
  { id: "mailbox-full-by-code", reading: "mailbox_full", classes: [5], enhanced: ["2.2"] },
  { id: "message-too-big", reading: "ambiguous", classes: [5], signs: ["oversize"] },
  { id: "message-too-big-by-code", reading: "ambiguous", classes: [5], enhanced: ["3.4", "2.3"] },
  { id: "disabled-525", reading: "mailbox_disabled", classes: [5], codes: [525] },
  { id: "disabled-7-13", reading: "mailbox_disabled", classes: [5], enhanced: ["7.13"] },
  {
    id: "policy-code-full",
    reading: "mailbox_full",
    classes: [5],
    enhanced: ["7.*"],
    signs: ["full_mailbox"],
    unless: ["refusal"],
  },
  {
    id: "policy-code-unknown-words",
    reading: "ambiguous",
    classes: [5],
    enhanced: ["7.*"],
    signs: ["unknown_recipient"],
  },
  {
    id: "policy-code-disabled-words",
    reading: "ambiguous",
    classes: [5],
    enhanced: ["7.*"],
    signs: ["disabled_recipient"],
  },
  { id: "policy-code", reading: "blocked", classes: [5], enhanced: ["7.*"] },
  {
    id: "edge-blocked-recipient",
    reading: "mailbox_not_found",
    classes: [5],
    enhanced: ["4.1"],
    signs: ["recipient_access_denied"],
  },
  { id: "null-mx-556", reading: "null_mx", classes: [5], codes: [556] },
  {
    id: "null-mx-1-10",
    reading: "null_mx",
    classes: [5],
    enhanced: ["1.10"],
    unless: ["unknown_recipient", "refusal"],
  },
  {
    id: "list-expansion",
    reading: "mailbox_not_found",
    classes: [5],
    codes: [524],
    enhanced: ["2.4"],
    signs: ["list_expansion"],
  },
  { id: "moved-551", reading: "mailbox_not_found", classes: [5], codes: [551], enhanced: ["1.6"] },
  {
    id: "unknown-by-code-and-words",
    reading: "mailbox_not_found",
    classes: [5],
    enhanced: NOT_FOUND_CODES,
    signs: ["unknown_recipient"],
  },
  { id: "disabled-but-refused", reading: "ambiguous", classes: [5], signs: ["disabled_recipient", "refusal"] },
  { id: "disabled-by-code", reading: "mailbox_disabled", classes: [5], enhanced: ["2.1"], unless: ["refusal"] },
  {
    id: "full-by-words",
    reading: "mailbox_full",
    classes: [5],
    signs: ["full_mailbox"],
    unless: ["unknown_recipient"],
  },
  { id: "disabled-by-words", reading: "mailbox_disabled", classes: [5], signs: ["disabled_recipient"] },
  { id: "unknown-but-refused", reading: "ambiguous", classes: [5], signs: ["unknown_recipient", "refusal"] },
  {
    id: "unknown-code-but-refused",
    reading: "ambiguous",
    classes: [5],
    enhanced: [...NOT_FOUND_CODES, "2.1"],
    signs: ["refusal"],
  },
  {
    id: "unknown-code-but-names-us",
    reading: "ambiguous",
    classes: [5],
    enhanced: NOT_FOUND_CODES,
    signs: ["names_us"],
  },
  {
    id: "unknown-by-code",
    reading: "mailbox_not_found",
    classes: [5],
    enhanced: NOT_FOUND_CODES,
    codesNot: [500, 502, 503, 504],
  },
  { id: "unknown-but-names-us", reading: "ambiguous", classes: [5], signs: ["unknown_recipient", "names_us"] },
  {
    id: "unknown-by-words",
    reading: "mailbox_not_found",
    classes: [5],
    codesNot: [500, 501, 502, 503, 504, 555],
    signs: ["unknown_recipient"],
  },
  { id: "full-552", reading: "mailbox_full", classes: [5], codes: [552], unless: ["refusal"] },
  { id: "refused-outright", reading: "blocked", classes: [5], signs: ["refusal"] },
  { id: "command-refused", reading: "protocol_error", classes: [5], codes: [500, 501, 502, 503, 504, 555] },
  { id: "host-accepts-no-mail", reading: "blocked", classes: [5], codes: [521] },
  { id: "undecided-5xx", reading: "ambiguous", classes: [5] },
];

/** Temporary refusals: never a "no", whatever they say. */
const TEMPORARY: readonly Rule[] = [
  { id: "full-for-now-by-code", reading: "mailbox_full", stages: ["rcpt"], classes: [4], enhanced: ["2.2"] },
  { id: "system-storage", reading: "temporary", classes: [4], enhanced: ["3.1"] },
  {
    id: "full-for-now",
    reading: "mailbox_full",
    stages: ["rcpt"],
    classes: [4],
    signs: ["full_mailbox"],
    unless: ["oversize"],
  },
  {
    id: "policy-code-wait",
    reading: "greylisted",
    classes: [4],
    enhanced: ["7.*"],
    codesNot: [421],
    signs: ["try_in"],
  },
  { id: "refused-for-now", reading: "blocked", classes: [4], signs: ["refusal"], unless: ["unknown_recipient"] },
  { id: "server-trouble", reading: "temporary", classes: [4], signs: ["timeout"] },
  { id: "server-trouble-by-code", reading: "temporary", classes: [4], enhanced: ["3.0", "4.2"] },
  { id: "closing-421", reading: "rate_limited", classes: [4], codes: [421] },
  {
    id: "policy-code-for-now",
    reading: "blocked",
    classes: [4],
    enhanced: ["7.*"],
    unless: ["temporary", "unknown_recipient"],
  },
  {
    id: "deferred-450-4-2-0",
    reading: "greylisted",
    stages: ["rcpt"],
    classes: [4],
    codes: [450],
    enhanced: ["2.0"],
    unless: ["unknown_recipient", "disabled_recipient"],
  },
  { id: "temporary-4xx", reading: "temporary", classes: [4] },
];

/** Every rule, in the order in which they are asked. The last rule of each class and stage has no conditions, so one always speaks. */
export const RULES: readonly Rule[] = [
  ...BY_CODE,
  ...ABOUT_US,
  ...BEFORE_RCPT,
  ...RCPT_PERMANENT.map((rule): Rule => ({ ...rule, stages: ["rcpt"] })),
  ...TEMPORARY,
];
