import { createSecureContext } from "node:tls";
import type { Socket } from "node:net";
import type { SMTPServerSession } from "smtp-server";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { ReceiverLimits } from "./smtp-receiver-limits.ts";
import type { Place } from "./smtp-receiver-load.ts";
import type { ReceiverCounts, ReceiverRules } from "./smtp-receiver-rules.ts";
import { type Reply, Visit } from "./smtp-receiver-visit.ts";

/** A certificate (with its chain) and its private key, as PEM. */
export interface TlsMaterial {
  readonly cert: string;
  readonly key: string;
}

export interface EngineDeps {
  readonly hostName: string;
  readonly tls: TlsMaterial;
  readonly limits: ReceiverLimits;
  readonly rules: ReceiverRules;
  readonly clock: Clock;
  readonly log: Log;
  readonly counts: ReceiverCounts;
}

/** A connection that was accepted, and has a place. */
export interface AcceptedConnection {
  readonly socket: Socket;
  readonly client: string;
  readonly place: Place;
  readonly onGone: () => void;
}

/** What is not known here. AUTH would be offered, the others are tricks of old servers or for trusted front ends. */
const DISABLED_COMMANDS = ["AUTH", "LHLO", "XCLIENT", "XFORWARD", "WIZ", "SHELL", "KILL"];
const ENHANCED_CODE = /^[245]\.\d{1,3}\.\d{1,3} /;
/** The package's own timers keep still: the visit's deadlines, by the injected clock, are shorter. */
const PACKAGE_TIMEOUT_MS = 24 * 3_600_000;

/**
 * SMTP as the package `smtp-server` speaks it, one connection at a time; it is loaded here, so that nobody pays for it
 * who receives nothing. Throws when the certificate cannot be used.
 *
 * The package reads commands and content, does STARTTLS and undoes dot-stuffing. Only CRLF.CRLF ends a content (RFC
 * 5321 §4.1.1.4): bare CR and LF are content, so that nothing can be smuggled behind them.
 */
export const loadEngine = async ({ hostName, tls, limits, rules, clock, log, counts }: EngineDeps) => {
  const [{ SMTPServer }, { SMTPConnection }] = await Promise.all([
    import("smtp-server"),
    import("smtp-server/lib/smtp-connection.js"),
  ]);
  const visits = new WeakMap<SMTPServerSession, Visit>();
  const visitOf = (session: SMTPServerSession): Visit => {
    const visit = visits.get(session);
    if (visit === undefined) throw new Error("an SMTP session without a visit");
    return visit;
  };

  const smtp = new SMTPServer({
    ...tls,
    minVersion: "TLSv1.2",
    name: hostName,
    heloResponse: "%s",
    size: limits.mailBytes,
    maxRecipients: limits.recipientsPerMail,
    maxCommandLength: limits.commandBytes,
    socketTimeout: PACKAGE_TIMEOUT_MS,
    disabledCommands: DISABLED_COMMANDS,
    disableReverseLookup: true,
    hideENHANCEDSTATUSCODES: false,
    // Senders of reports write addresses that strict syntax forbids; the rules decide about recipients anyway.
    lenientAddressParsing: true,
    logger: false,
    onConnect: (_session, next) => next(),
    onSecure: (_socket, _session, next) => next(),
    onMailFrom: ({ args }, session, next) => next(asError(visitOf(session).beginMail(announcedBytes(args)))),
    onRcptTo: ({ address }, session, next) =>
      void visitOf(session)
        .judge(address)
        .then((reply) => next(asError(reply))),
    onData: (content, session, next) => {
      const { mailFrom, rcptTo } = session.envelope;
      const mail = {
        recipients: rcptTo.map(({ address }) => address),
        mailFrom: mailFrom === false ? "" : mailFrom.address,
        helo: session.hostNameAppearsAs || null,
        tls: session.secure,
      };
      visitOf(session).receive(content, mail, (reply) => {
        if (reply.code === 250) next(null, reply.text);
        else next(asError(reply));
      });
    },
  });

  class Connection extends SMTPConnection {
    visit: Visit | null = null;

    /** Without the package's wait of 100 ms for clients that talk before the banner. */
    override init(): void {
      this._setListeners(() => this.connectionReady());
    }

    override send(code: number, data?: string | string[] | null, context?: string | false): void {
      super.send(code, data, typeof data === "string" && ENHANCED_CODE.test(data) ? false : context);
      this.visit?.replied(code);
    }

    override _onClose(): void {
      super._onClose();
      this.visit?.gone();
    }

    /** RFC 5321 §3.5.3: a server that does not want to tell answers 252. */
    override handler_VRFY(_command: Buffer, next: () => void): void {
      this.send(252, "2.0.0 Not told here, RCPT tells");
      next();
    }

    override handler_HELP(_command: Buffer, next: () => void): void {
      this.send(214, "2.0.0 DMARC reports are received here (RFC 5321, RFC 9990)");
      next();
    }

    handler_EXPN(_command: Buffer, next: () => void): void {
      this.send(502, "5.5.1 Not implemented");
      next();
    }

    handler_ETRN(command: Buffer, next: () => void): void {
      this.handler_EXPN(command, next);
    }

    handler_TURN(command: Buffer, next: () => void): void {
      this.handler_EXPN(command, next);
    }

    /** What follows BDAT is content (RFC 3030 §2), which must not be read as commands. */
    handler_BDAT(_command: Buffer, next: () => void): void {
      this.send(502, "5.5.1 Not implemented");
      this.send(421, "4.7.0 BDAT was not offered");
      next();
    }
  }

  return {
    /** Serves a connection until it closes. */
    serve({ socket, client, place, onGone }: AcceptedConnection): Visit {
      const connection = new Connection(smtp, socket, { remoteAddress: client });
      const destroy = () => {
        connection._socket.destroy();
        socket.destroy();
      };
      const line = { send: (code: number, text: string) => connection.send(code, text), destroy };
      const visit = new Visit({ limits, rules, clock, log, counts, place, line, client, onGone });
      connection.visit = visit;
      visits.set(connection.session, visit);
      // What breaks a connection ends it: a reset, a handshake that fails.
      connection.on("error", () => visit.destroy());
      connection.init();
      return visit;
    },

    /** Connections from now on get this certificate. Throws when it cannot be used, and the old one stays. */
    useCertificate(material: TlsMaterial): void {
      // The server throws its old one away before it looks at a new one.
      createSecureContext({ ...material });
      smtp.updateSecureContext({ ...material });
    },
  };
};

export type Engine = Awaited<ReturnType<typeof loadEngine>>;

const asError = (reply: Reply | null): Error | null =>
  reply === null ? null : Object.assign(new Error(reply.text), { responseCode: reply.code });

const announcedBytes = (parameters: Readonly<Record<string, string | true>> | false): number => {
  const size = parameters === false ? undefined : parameters.SIZE;
  return typeof size === "string" ? Number(size) : 0;
};
