import { createServer, type Server, type Socket } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import type { Clock } from "../base/clock.ts";
import { err, ok, type Result, errorCode, errorText } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { waitFor } from "../base/wait.ts";
import type { TlsMaterial } from "./self-signed-file.ts";
import {
  RECEIVER_LIMITS,
  type ReceiverLimits,
  type ReceiverCounts,
  type ReceiverRules,
} from "./smtp-receiver-rules.ts";
import { plainAddress, ReceiverLoad } from "./smtp-receiver-load.ts";
import { formatReply } from "./smtp-receiver-replies.ts";
import { ReceiverSession } from "./smtp-receiver-session.ts";

interface SmtpReceiverOptions {
  /** What the receiver calls itself in the banner and in EHLO. */
  readonly hostName: string;
  readonly tls: TlsMaterial;
  readonly clock: Clock;
  readonly log: Log;
  readonly rules: ReceiverRules;
  /** Other limits than those of the service. */
  readonly limits?: Partial<ReceiverLimits>;
}

/** Why nothing is received. `message` is a sentence for the operator. */
interface ListenFailure {
  readonly kind: "tls_unusable" | "listen_failed";
  readonly message: string;
}

/** Where the receiver listens. */
interface ListenAddress {
  readonly address: string;
  readonly port: number;
}

const TOO_MANY = formatReply([421, "4.7.0 Too many connections, try again later"]);

/**
 * A mail server that only receives, for recipients that `judgeRecipient` knows: no relay, no AUTH; STARTTLS is offered
 * (RFC 3207) but not required. A mail gets its 250 after `acceptMail` resolved to `accepted`, never before.
 *
 * It is no mailbox, so that `postmaster` (RFC 5321 §4.5.1) is judged as any other name: accepting it would promise a reader.
 * No `Received:` field is added: mails are stored unchanged, and the envelope is passed separately.
 */
export class SmtpReceiver {
  readonly #limits: ReceiverLimits;
  readonly #load: ReceiverLoad;
  readonly #sessions = new Set<ReceiverSession>();
  readonly #counts: ReceiverCounts = {
    connections: 0,
    turnedAway: 0,
    dropped: 0,
    accepted: 0,
    later: 0,
    refused: 0,
    unknownRecipients: 0,
  };
  /** Connections that are being refused because there are too many. */
  #farewells = 0;
  #secureContext: SecureContext | null = null;
  #server: Server | null = null;
  #closing: Promise<void> | null = null;
  #onEmpty = (): void => undefined;

  constructor(private readonly options: SmtpReceiverOptions) {
    this.#limits = { ...RECEIVER_LIMITS, ...options.limits };
    this.#load = new ReceiverLoad(this.#limits);
  }

  /** Begins to receive; port 0 is any free one. Call once. */
  async listen(address: string, port: number): Promise<Result<ListenAddress, ListenFailure>> {
    const { tls, log } = this.options;
    try {
      this.useCertificate(tls);
    } catch (error) {
      return err({
        kind: "tls_unusable",
        message: `The certificate for report mail cannot be used: ${errorText(error)}`,
      });
    }
    const bound = await bind(
      createServer({ noDelay: true }, (socket) => this.#accept(socket)),
      address,
      port,
    );
    if (!bound.ok) return bound;
    this.#server = bound.value.server;
    if (this.#closing !== null) this.#server.close();
    this.#server.on("error", (error) => log.error("the receiver of report mail failed", { error }));
    return ok(bound.value.at);
  }

  /**
   * Stops accepting, sends 421 to idle clients, waits for the mails that are under way (`closeMs` at most), then closes.
   * Always resolves.
   */
  close(): Promise<void> {
    this.#closing ??= this.#shutDown();
    return this.#closing;
  }

  /** Connections from now on get this certificate. Throws when it cannot be used, and the old one stays. */
  useCertificate({ cert, key }: TlsMaterial): void {
    // Suites without forward secrecy stay: TLS is opportunistic here (RFC 7435), and a sender without a common suite would
    // deliver in plain text or not at all.
    this.#secureContext = createSecureContext({ cert, key, minVersion: "TLSv1.2" });
  }

  /** What happened since the beginning, how many connections are open and how many bytes of mail are in memory. */
  counts(): Readonly<ReceiverCounts> & { readonly open: number; readonly heldBytes: number } {
    return { ...this.#counts, open: this.#load.connections, heldBytes: this.#load.bytes };
  }

  #accept(socket: Socket) {
    const client = plainAddress(socket.remoteAddress ?? "");
    const secureContext = this.#secureContext;
    // A client that has disconnected already has no address.
    if (secureContext === null || this.#closing !== null || client === "") return void socket.destroy();
    const slot =
      this.#load.enter(client) ??
      (this.#load.isWaiting(client) && this.#endLongestWaiting() ? this.#load.enter(client) : null);
    if (slot === null) {
      this.#turnAway(socket);
      return;
    }
    this.#counts.connections++;
    const { hostName, rules, clock, log } = this.options;
    const context = { hostName, rules, clock, log, limits: this.#limits, counts: this.#counts, secureContext };
    const onClosed = () => {
      this.#sessions.delete(session);
      if (this.#sessions.size === 0) this.#onEmpty();
    };
    const session: ReceiverSession = new ReceiverSession(context, { socket, client, slot, onClosed });
    this.#sessions.add(session);
    void session.run();
  }

  /** Sends 421 to a connection that got no slot. */
  #turnAway(socket: Socket) {
    this.#counts.turnedAway++;
    socket.on("error", ignoreError);
    if (this.#farewells >= this.#limits.farewells) return void socket.destroy();
    this.#farewells++;
    const cancel = this.options.clock.after(this.#limits.farewellMs, () => socket.destroy());
    socket.once("close", () => {
      this.#farewells--;
      cancel();
    });
    socket.resume();
    socket.end(TOO_MANY);
  }

  /** Ends the connection that has waited longest without content of a mail; false when none has waited long enough. */
  #endLongestWaiting() {
    const latestMs = this.options.clock.monotonicMs() - this.#limits.evictableAfterMs;
    const [longest] = [...this.#sessions]
      .map((session) => ({ session, sinceMs: session.waitingSinceMs() ?? Number.POSITIVE_INFINITY }))
      .filter(({ sinceMs }) => sinceMs <= latestMs)
      .toSorted((a, b) => a.sinceMs - b.sinceMs);
    longest?.session.giveWay();
    return longest !== undefined;
  }

  async #shutDown() {
    this.#server?.close();
    for (const session of [...this.#sessions]) session.close();
    if (this.#sessions.size === 0) return;
    const { promise: empty, resolve } = Promise.withResolvers<void>();
    this.#onEmpty = resolve;
    await waitFor(this.options.clock, empty, { timeoutMs: this.#limits.closeMs });
    for (const session of [...this.#sessions]) session.destroy();
  }
}

const bind = (
  server: Server,
  address: string,
  port: number,
): Promise<Result<{ server: Server; at: ListenAddress }, ListenFailure>> =>
  new Promise((resolve) => {
    const fail = (error: unknown) => resolve(err({ kind: "listen_failed", message: whyNot(error, address, port) }));
    server.once("error", fail);
    server.listen({ host: address, port }, () => {
      server.off("error", fail);
      const at = server.address();
      resolve(ok({ server, at: { address, port: typeof at === "object" && at !== null ? at.port : port } }));
    });
  });

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program listens there",
  EACCES: "ports below 1024 need root or the capability CAP_NET_BIND_SERVICE",
  EADDRNOTAVAIL: "this machine has no such address",
};

const whyNot = (error: unknown, address: string, port: number) => {
  const code = errorCode(error);
  const where = address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
  return `Cannot receive report mail on ${where}: ${REASONS[code] ?? errorText(error)}.`;
};

/** A listener must exist, else an error would be thrown; `close` always follows it. */
const ignoreError = () => undefined;
