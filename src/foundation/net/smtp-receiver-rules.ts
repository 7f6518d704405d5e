import type { SecureContext } from "node:tls";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";

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

const MIB = 1024 * 1024;

/** How much the receiver lets its clients take. Times are milliseconds of the injected clock. */
export interface ReceiverLimits {
  /** Concurrent connections of all clients. */
  readonly connections: number;
  /** Concurrent connections of one client: an IPv4 address, or the /64 of an IPv6 address. */
  readonly connectionsPerClient: number;
  /** Concurrent connections of one network: the /24 of an IPv4 address, the /48 of an IPv6 address. */
  readonly connectionsPerNetwork: number;
  /** Of `connections`: reserved for clients whose network has no connection. */
  readonly reservedConnections: number;
  /** Idle time without message content after which a connection may be closed in favour of a new one. */
  readonly evictableAfterMs: number;
  /** The same for loopback: a mail server in front of Postwarden relays the mail of all clients. */
  readonly connectionsPerLocalClient: number;
  /** Connections that are being refused with 421; further ones are closed without a reply. */
  readonly farewells: number;
  /** The size of a mail, announced with SIZE (RFC 1870). No more than this of one mail is stored. */
  readonly mailBytes: number;
  /** Bytes of one mail that are read, and thrown away, before the connection is cut. */
  readonly mailBytesRead: number;
  /** Memory for all mails that are being received or taken. */
  readonly heldBytes: number;
  /** Memory for the mails of one client; a mail server on this machine may use it all. */
  readonly heldBytesPerClient: number;
  /** RFC 5321 §4.5.3.1.8 wants 100 at least. */
  readonly recipientsPerMail: number;
  readonly mailsPerConnection: number;
  /** Recipients refused as unknown, until the connection ends. */
  readonly unknownRecipients: number;
  /** 5xx replies after which the connection is closed. */
  readonly refusedCommands: number;
  /** Octets of a command line (RFC 5321 §4.5.3.1.4 wants 512; extensions add to it). */
  readonly commandBytes: number;
  /** Replies until content of a mail comes: more commands than 100 recipients need make no progress. */
  readonly repliesPerMail: number;
  /** Longest time for one command line, or without data during a message. */
  readonly idleMs: number;
  /** Longest time from the banner, or from the last message, to the next MAIL. */
  readonly mailWaitMs: number;
  /** Longest time from that MAIL to the start of its content. */
  readonly envelopeMs: number;
  /** Longest time for the content of one message, even if data keeps arriving. */
  readonly dataMs: number;
  readonly connectionMs: number;
  /** How long a client has to close after our last word. */
  readonly farewellMs: number;
  /** How long `close` waits for mails that are under way. */
  readonly closeMs: number;
}

/** The ceilings of the service. */
export const RECEIVER_LIMITS: ReceiverLimits = {
  connections: 200,
  connectionsPerClient: 20,
  connectionsPerNetwork: 40,
  reservedConnections: 40,
  evictableAfterMs: 5_000,
  connectionsPerLocalClient: 200,
  farewells: 100,
  mailBytes: 25 * MIB,
  mailBytesRead: 100 * MIB,
  heldBytes: 128 * MIB,
  heldBytesPerClient: 64 * MIB,
  recipientsPerMail: 100,
  mailsPerConnection: 1_000,
  unknownRecipients: 20,
  refusedCommands: 20,
  commandBytes: 4_096,
  repliesPerMail: 150,
  idleMs: 60_000,
  mailWaitMs: 30_000,
  envelopeMs: 120_000,
  dataMs: 600_000,
  connectionMs: 3_600_000,
  farewellMs: 5_000,
  closeMs: 5_000,
};
