import type { SecureContext } from "node:tls";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { ReceiverLimits } from "./smtp-receiver-limits.ts";

/** Whether a recipient's mail is received; `later` when that is not known now, `full` while there is no space for it. */
export type RecipientVerdict = "known" | "unknown" | "later" | "full";

/** A mail as it was received, with what the client said about it. Nothing is added to the bytes. */
export interface ReceivedMail {
  /** As written in RCPT, at least one. */
  readonly recipients: readonly string[];
  /** As written in MAIL; empty for the null sender. */
  readonly mailFrom: string;
  /** The name in HELO or EHLO, in lower case. */
  readonly helo: string | null;
  /** The IP address of the client. */
  readonly client: string;
  readonly bytes: Uint8Array;
  readonly tls: boolean;
}

/** Whether a mail was stored; `later` and `full` (no space) ask the client to try again, `refused` not to. */
export type AcceptOutcome = "accepted" | "later" | "full" | "refused";

/** What the receiver's owner decides. An exception or rejection counts as `later`. */
export interface ReceiverRules {
  /** Whether there is no space for any mail now: the reply to MAIL is 452. */
  isFull?(): boolean;
  judgeRecipient(address: string): RecipientVerdict | Promise<RecipientVerdict>;
  /** Resolves to `accepted` only when the mail is durable. */
  acceptMail(mail: ReceivedMail): Promise<AcceptOutcome>;
}

/** What happened since the receiver was created. */
export interface ReceiverCounts {
  connections: number;
  /** Connections that got no slot. */
  turnedAway: number;
  /** Connections that the receiver ended: too slow, too old, too many errors. */
  dropped: number;
  /** Mails by their reply: 250, 4xx, 5xx. */
  accepted: number;
  later: number;
  refused: number;
  unknownRecipients: number;
}

/** What all sessions of a receiver share. */
export interface ReceiverContext {
  readonly hostName: string;
  readonly limits: ReceiverLimits;
  readonly rules: ReceiverRules;
  readonly clock: Clock;
  readonly log: Log;
  readonly counts: ReceiverCounts;
  readonly secureContext: SecureContext;
}
