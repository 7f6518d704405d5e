import { createServer, type Server, type Socket } from "node:net";
import type { Clock } from "../base/clock.ts";
import { err, ok, type Result } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { type Engine, loadEngine, type TlsMaterial } from "./smtp-receiver-engine.ts";
import { RECEIVER_LIMITS, type ReceiverLimits } from "./smtp-receiver-limits.ts";
import { createReceiverLoad, plainAddress } from "./smtp-receiver-load.ts";
import type { ReceiverCounts, ReceiverRules } from "./smtp-receiver-rules.ts";
import type { Visit } from "./smtp-receiver-visit.ts";

export interface ReceiverDeps extends ReceiverRules {
  /** What the receiver calls itself in the banner and in EHLO. */
  readonly hostName: string;
  readonly tls: TlsMaterial;
  readonly clock: Clock;
  readonly log: Log;
  /** Other ceilings than those of the service. */
  readonly limits?: Partial<ReceiverLimits>;
}

/** Why nothing is received. `message` is a sentence for the operator. */
export interface ListenFailure {
  readonly kind: "tls_unusable" | "listen_failed";
  readonly message: string;
}

/** Where the receiver listens. */
export interface ListenAddress {
  readonly address: string;
  readonly port: number;
}

/** A receiver of mail. */
export interface SmtpReceiver {
  /** Begins to receive; port 0 is any free one. Call once. */
  listen(address: string, port: number): Promise<Result<ListenAddress, ListenFailure>>;
  /**
   * Stops accepting, tells idle clients 421, waits for the mails that are under way (`closeMs` at most), then closes.
   * Always resolves.
   */
  close(): Promise<void>;
  /** Connections from now on get this certificate. Throws when it cannot be used, and the old one stays. */
  useCertificate(material: TlsMaterial): void;
  /** What happened since the beginning, how many connections are open and how many bytes of mail are in memory. */
  counts(): Readonly<ReceiverCounts> & { readonly open: number; readonly heldBytes: number };
}

const TOO_MANY = "421 4.7.0 Too many connections, try again later\r\n";

/**
 * A mail server that only receives, for recipients that `judgeRecipient` knows: no relay, no AUTH, STARTTLS offered
 * (RFC 3207) but not demanded. A mail is answered 250 after `acceptMail` said `accepted`, never before.
 *
 * It is no mailbox, so that `postmaster` (RFC 5321 §4.5.1) is judged as any other name: an acceptance would promise a
 * reader. No `Received:` field is added: mails are kept as they came, and the client's words are handed on beside them.
 */
export const createSmtpReceiver = (deps: ReceiverDeps): SmtpReceiver => {
  const { clock, log, hostName, tls, judgeRecipient, acceptMail, isFull } = deps;
  const limits = { ...RECEIVER_LIMITS, ...deps.limits };
  const load = createReceiverLoad(limits);
  const counts = emptyCounts();
  const visits = new Set<Visit>();
  let farewells = 0;
  let engine: Engine | null = null;
  let listener: Server | null = null;
  let closing: Promise<void> | null = null;
  let onEmpty: (() => void) | null = null;

  const turnAway = (socket: Socket) => {
    counts.turnedAway++;
    socket.on("error", ignoreError);
    if (farewells >= limits.farewells) return void socket.destroy();
    farewells++;
    const cancel = clock.after(limits.farewellMs, () => socket.destroy());
    socket.once("close", () => {
      farewells--;
      cancel();
    });
    socket.resume();
    socket.end(TOO_MANY);
  };

  /** Ends the connection that has waited longest without content of a mail; false when none has waited long enough. */
  const makePlace = (): boolean => {
    const latestMs = clock.monotonicMs() - limits.evictableAfterMs;
    let longest: { readonly visit: Visit; readonly sinceMs: number } | null = null;
    for (const visit of visits) {
      const sinceMs = visit.waitingSinceMs();
      if (sinceMs !== null && sinceMs <= Math.min(latestMs, longest?.sinceMs ?? latestMs)) longest = { visit, sinceMs };
    }
    longest?.visit.giveWay();
    return longest !== null;
  };

  const accept = (socket: Socket) => {
    const client = plainAddress(socket.remoteAddress ?? "");
    // A client that left before it was looked at has no address.
    if (engine === null || closing !== null || client === "") return void socket.destroy();
    const place = load.enter(client) ?? (load.isWaiting(client) && makePlace() ? load.enter(client) : null);
    if (place === null) return turnAway(socket);
    counts.connections++;
    const onGone = () => {
      visits.delete(visit);
      if (visits.size === 0) onEmpty?.();
    };
    const visit: Visit = engine.serve({ socket, client, place, onGone });
    visits.add(visit);
  };

  const shutDown = async (): Promise<void> => {
    listener?.close();
    for (const visit of [...visits]) visit.close();
    if (visits.size === 0) return;
    await new Promise<void>((resolve) => {
      const cancel = clock.after(limits.closeMs, resolve);
      onEmpty = () => {
        cancel();
        resolve();
      };
    });
    for (const visit of [...visits]) visit.destroy();
  };

  return {
    async listen(address, port) {
      try {
        const rules = { judgeRecipient, acceptMail, ...(isFull && { isFull }) };
        engine = await loadEngine({ hostName, tls, limits, rules, clock, log, counts });
      } catch (error) {
        return err({
          kind: "tls_unusable",
          message: `The certificate for report mail cannot be used: ${textOf(error)}`,
        });
      }
      const bound = await bind(createServer({ noDelay: true }, accept), address, port);
      if (!bound.ok) return bound;
      listener = bound.value.server;
      if (closing !== null) listener.close();
      listener.on("error", (error) => log.error("the receiver of report mail has a problem", { error }));
      return ok(bound.value.at);
    },
    close() {
      closing ??= shutDown();
      return closing;
    },
    useCertificate: (material) => engine?.useCertificate(material),
    counts: () => ({ ...counts, open: load.connections(), heldBytes: load.bytes() }),
  };
};

const emptyCounts = (): ReceiverCounts => ({
  connections: 0,
  turnedAway: 0,
  dropped: 0,
  accepted: 0,
  later: 0,
  refused: 0,
  unknownRecipients: 0,
});

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

const whyNot = (error: unknown, address: string, port: number): string => {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const where = address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
  return `Cannot receive report mail on ${where}: ${REASONS[code] ?? textOf(error)}.`;
};

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** A listener must exist, else an error would be thrown; `close` always follows it. */
const ignoreError = (): void => undefined;
