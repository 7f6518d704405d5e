const MIB = 1024 * 1024;

/** How much the receiver lets its clients take. Times are milliseconds of the injected clock. */
export interface ReceiverLimits {
  /** Connections at once, of all clients. */
  readonly connections: number;
  /** Connections at once of one client: an IPv4 address, or the /64 of an IPv6 address. */
  readonly connectionsPerClient: number;
  /** Connections at once of one network: the /24 of an IPv4 address, the /48 of an IPv6 address. */
  readonly connectionsPerNetwork: number;
  /** Of `connections`: places that only clients get whose network has none. */
  readonly reservedConnections: number;
  /** A connection that has waited so long without content of a mail gives way when there are too many. */
  readonly evictableAfterMs: number;
  /** The same for this machine itself: a mail server in front of Postwarden hands on the mail of everybody. */
  readonly connectionsPerLocalClient: number;
  /** Connections that are being told that there are too many; what comes beyond is closed without a word. */
  readonly farewells: number;
  /** The size of a mail, announced with SIZE (RFC 1870). Never more of one mail is kept. */
  readonly mailBytes: number;
  /** So much of one mail is read, and thrown away, before the connection is cut. */
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
  /** Commands answered with 5xx, until the connection ends. */
  readonly refusedCommands: number;
  /** Octets of a command line (RFC 5321 §4.5.3.1.4 wants 512; extensions add to it). */
  readonly commandBytes: number;
  /** Replies until content of a mail comes: more commands than 100 recipients need make no progress. */
  readonly repliesPerMail: number;
  /** How long a client may leave a command unfinished, or a mail without a byte. */
  readonly idleMs: number;
  /** How long after the banner, and after each mail, the next MAIL may take to come. */
  readonly mailWaitMs: number;
  /** How long after that MAIL its content may take to begin. */
  readonly envelopeMs: number;
  /** How long the content of one mail may take, however steadily it drips. */
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
