/** Whether a recipient's mail is received; `later` when that cannot be told now, `full` while there is no space for it. */
export type RecipientVerdict = "known" | "unknown" | "later" | "full";

/** A mail as it came in, with what the client said about it. Nothing is added to the bytes. */
export interface ReceivedMail {
  /** As written in RCPT, at least one. */
  readonly recipients: readonly string[];
  /** As written in MAIL; empty for the null sender. */
  readonly mailFrom: string;
  /** What the client calls itself, in lower case. */
  readonly helo: string | null;
  /** Its IP address. */
  readonly client: string;
  readonly bytes: Uint8Array;
  readonly tls: boolean;
}

/** Whether a mail was taken for good; `later` and `full` (no space) ask the client to come again, `refused` not to. */
export type AcceptOutcome = "accepted" | "later" | "full" | "refused";

/** What the receiver's owner decides. What throws, or rejects, is answered as `later`. */
export interface ReceiverRules {
  /** Whether there is no space for any mail now: MAIL is answered 452. */
  isFull?(): boolean;
  judgeRecipient(address: string): RecipientVerdict | Promise<RecipientVerdict>;
  /** Resolves `accepted` only when the mail will survive whatever happens next. */
  acceptMail(mail: ReceivedMail): Promise<AcceptOutcome>;
}

/** What has happened since the receiver was made. */
export interface ReceiverCounts {
  connections: number;
  /** Connections that found no place. */
  turnedAway: number;
  /** Connections that we ended: too slow, too old, too many errors. */
  dropped: number;
  /** Mails by their answer: 250, 4xx, 5xx. */
  accepted: number;
  later: number;
  refused: number;
  unknownRecipients: number;
}
