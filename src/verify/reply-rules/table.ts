import type { Rule } from "./signs.ts";
import { RCPT_PERMANENT } from "./rules-recipient.ts";

/** About us: connection, sender, policy. Checked before any rule about the mailbox. */
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
  { id: "authentication-refused-535", reading: "blocked", classes: [5], codes: [535] },
  { id: "authentication-demanded", reading: "blocked", classes: [4, 5], signs: ["auth_demanded"] },
  {
    id: "tls-demanded-530",
    reading: "tls_required",
    classes: [5],
    codes: [530],
    unless: ["relay"],
  },
  { id: "greylisting-words", reading: "greylisted", classes: [4, 5], signs: ["greylisted"] },
  { id: "domain-authentication", reading: "blocked", classes: [4, 5], signs: ["authentication_record"] },
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
  { id: "address-shut-out", reading: "blocked", classes: [5], signs: ["address_shut_out"] },
  {
    id: "shut-out-for-unknown-recipients",
    reading: "rate_limited",
    classes: [4, 5],
    codesNot: [421],
    signs: ["unknown_recipients_counted", "shut_out"],
    unless: ["blocklist"],
    pausesHost: true,
  },
  { id: "rate-by-words", reading: "rate_limited", classes: [4, 5], signs: ["rate_limited"], unless: ["blocklist"] },
  { id: "rate-by-code", reading: "rate_limited", classes: [4, 5], enhanced: ["4.5", "5.3"] },
  // A vendor of filters puts its link into every refusal: beside "invalid recipient" it is not about us.
  {
    id: "link-to-blocklist",
    reading: "blocked",
    classes: [4, 5],
    signs: ["link_to_blocklist"],
    unless: ["link_of_vendor_beside_recipient"],
    retriedOnce: true,
  },
  {
    id: "link-with-our-address",
    reading: "blocked",
    classes: [4, 5],
    signs: ["link_with_address"],
    retriedOnce: true,
  },
  { id: "blocklist-named", reading: "blocked", classes: [4, 5], signs: ["blocklist"], retriedOnce: true },
  { id: "policy-words", reading: "blocked", classes: [4, 5], signs: ["policy"] },
  {
    id: "smtputf8-refused-by-code",
    reading: "smtputf8_unsupported",
    stages: ["mail", "rcpt"],
    classes: [5],
    enhanced: ["6.7"],
    signs: ["smtputf8_sent"],
    unless: ["for_now"],
  },
  {
    id: "smtputf8-refused-by-words",
    reading: "smtputf8_unsupported",
    stages: ["mail", "rcpt"],
    classes: [5],
    enhancedNot: ["7.*"],
    signs: ["smtputf8", "smtputf8_sent"],
    unless: ["for_now"],
  },
  {
    id: "smtputf8-named-unsupported",
    reading: "smtputf8_unsupported",
    stages: ["mail", "rcpt"],
    classes: [5],
    enhancedNot: ["7.*"],
    signs: ["smtputf8", "smtputf8_lacking"],
    unless: ["smtputf8_not_sent", "for_now"],
  },
  {
    id: "null-mx-of-recipient",
    reading: "null_mx",
    stages: ["rcpt"],
    classes: [5],
    enhancedNot: ["7.*"],
    signs: ["null_mx"],
    unless: ["for_now", "lookup_failed", "relay"],
  },
  {
    id: "null-mx-556",
    reading: "null_mx",
    stages: ["rcpt"],
    classes: [5],
    codes: [556],
    unless: ["for_now", "lookup_failed"],
  },
  { id: "recipient-domain-for-now", reading: "temporary", stages: ["rcpt"], classes: [4], enhanced: ["1.2"] },
  { id: "relay-refused", reading: "blocked", stages: ["mail", "rcpt"], classes: [4, 5], signs: ["relay"] },
];

/** SMTPUTF8 is the only parameter of our MAIL. */
const PARAMETER_REFUSED = {
  reading: "smtputf8_unsupported",
  stages: ["mail"],
  classes: [5],
  unless: ["refusal", "rejection", "for_now"],
} as const satisfies Partial<Rule>;

const SMTPUTF8_REFUSED: readonly Rule[] = [
  {
    ...PARAMETER_REFUSED,
    id: "smtputf8-parameter-refused",
    codes: [501, 504, 555],
    enhancedNot: ["1.*", "7.*"],
    signs: ["smtputf8_sent", "parameter"],
  },
  {
    ...PARAMETER_REFUSED,
    id: "smtputf8-parameter-refused-by-code",
    codes: [504, 555],
    enhanced: ["5.4"],
    signs: ["smtputf8_sent"],
  },
  {
    ...PARAMETER_REFUSED,
    id: "smtputf8-parameter-refused-bare",
    codes: [504, 555],
    bare: true,
    signs: ["smtputf8_sent"],
  },
];

/** Not at RCPT: a refusal without a reason is still about us. */
const BEFORE_RCPT: readonly Rule[] = [
  ...SMTPUTF8_REFUSED,
  { id: "bad-sequence-503", reading: "protocol_error", classes: [5], codes: [503] },
  {
    id: "command-unknown",
    reading: "protocol_error",
    stages: ["banner", "ehlo", "mail"],
    classes: [5],
    codes: [500, 502, 504],
  },
  { id: "parameters-refused", reading: "protocol_error", stages: ["mail"], classes: [5], codes: [555] },
  {
    id: "parameters-refused-by-code",
    reading: "protocol_error",
    stages: ["mail"],
    classes: [5],
    codes: [500, 501],
    enhanced: ["5.0", "5.1", "5.2", "5.4"],
  },
  {
    id: "replies-out-of-sync",
    reading: "protocol_error",
    stages: ["mail"],
    classes: [5],
    signs: ["syntax"],
    unless: ["refusal"],
  },
  { id: "connection-refused", reading: "blocked", stages: ["banner", "ehlo"], classes: [5] },
  { id: "mail-policy-code", reading: "blocked", stages: ["mail"], classes: [5], enhanced: ["7.*"] },
  { id: "mail-refused-outright", reading: "blocked", stages: ["mail"], classes: [5], signs: ["refusal"] },
  { id: "mail-rejected", reading: "blocked", stages: ["mail"], classes: [5], signs: ["rejection"] },
  { id: "mail-refused", reading: "sender_rejected", stages: ["mail"], classes: [5] },
];

/** About nothing in particular: only the code counts. */
const BY_CODE: readonly Rule[] = [
  { id: "closing-221", reading: "protocol_error", classes: [2], codes: [221] },
  // A session out of step must not make a mailbox exist.
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

/** Temporary refusals: never a "no", whatever the text. */
const TEMPORARY: readonly Rule[] = [
  { id: "full-for-now-by-code", reading: "mailbox_full", stages: ["rcpt"], classes: [4], enhanced: ["2.2"] },
  { id: "system-storage", reading: "temporary", classes: [4], enhanced: ["3.1"] },
  {
    id: "full-for-now",
    reading: "mailbox_full",
    stages: ["rcpt"],
    classes: [4],
    codesNot: [421],
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
  {
    id: "rejected-for-now",
    reading: "blocked",
    classes: [4],
    signs: ["rejection"],
    unless: ["unknown_recipient", "temporary"],
  },
  {
    id: "recipient-trouble",
    reading: "temporary",
    stages: ["rcpt"],
    classes: [4],
    codes: [421],
    signs: ["unknown_recipient"],
  },
  {
    id: "recipient-trouble-by-code",
    reading: "temporary",
    stages: ["rcpt"],
    classes: [4],
    codes: [421],
    enhanced: ["1.1", "2.0", "2.1"],
  },
  { id: "server-trouble", reading: "temporary", classes: [4], signs: ["timeout"] },
  { id: "server-trouble-by-code", reading: "temporary", classes: [4], enhanced: ["3.0", "3.2", "3.5", "4.2"] },
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

/** Every rule, in order of precedence. The last of each class and stage has no conditions, so that one always applies. */
export const RULES: readonly Rule[] = [...BY_CODE, ...ABOUT_US, ...BEFORE_RCPT, ...RCPT_PERMANENT, ...TEMPORARY];
