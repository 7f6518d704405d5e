import type { Rule } from "./rule.ts";
import { ABOUT_US, BEFORE_RCPT } from "./rules-about-us.ts";
import { RCPT_PERMANENT } from "./rules-recipient.ts";

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
