import type { SignName } from "./signs.ts";

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
