import { isIP, Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Clock } from "../base/clock.ts";
import { err, ok, type Result, errorCode } from "../base/errors.ts";
import { closeSync, openSync } from "node:fs";

/** The events of a wire, for its one listener. `closed` comes exactly once, and nothing comes after it. */
export interface WireHandlers {
  data(chunk: Uint8Array): void;
  closed(): void;
}

/** One established byte stream: plain TCP, TCP through a proxy, or TLS after `upgradeTls`. */
export interface Wire {
  /**
   * Hands over the one listener. Earlier bytes wait for it. Call once, right after connecting.
   */
  listen(handlers: WireHandlers): void;
  /** Queues bytes (a string is UTF-8) and preserves their order; what the kernel does not accept immediately is sent later. */
  write(data: string | Uint8Array): void;
  /** Sends what is queued, then FIN. The wire closes when the other side has closed too. */
  end(): void;
  /** Closes immediately and frees the descriptor, in every state. Harmless when closed already. */
  destroy(): void;
  /**
   * Turns the stream into TLS, as client, within `timeoutMs`; afterwards `listen`'s handlers get plain text again.
   * The certificate is not verified (opportunistic TLS, RFC 7435). After a failure the wire is destroyed.
   */
  upgradeTls(serverName: string, timeoutMs: number): Promise<Result<void, "tls_handshake_failed">>;
}

/**
 * Why there is no wire. The platform does not distinguish more than `refused_or_unreachable`. `local_failure` is ours: the local
 * address is not available, no port is free, the firewall forbids it. `proxy_failed` is the proxy's: neither of the
 * two says anything about the target.
 */
export type ConnectFailure =
  "refused_or_unreachable" | "timeout" | "address_not_allowed" | "local_failure" | "proxy_failed";

/** Where to connect to: an IP literal (never a name), and the local address to connect from, if it matters. */
interface ConnectTarget {
  readonly address: string;
  readonly port: number;
  readonly localAddress?: string | null;
  readonly timeoutMs: number;
}

/** Opens a wire within `timeoutMs`. When it fails nothing is left open. */
export type Connector = (target: ConnectTarget) => Promise<Result<Wire, ConnectFailure>>;

/** `mayConnect` is the last gate before a packet leaves: false for addresses that are not public. */
interface DirectConnectorDeps {
  readonly clock: Clock;
  readonly mayConnect: (address: string) => boolean;
}

/**
 * Connects straight from this machine, by IPv4 or IPv6.
 *
 * Built on `node:net`, because a `Bun.connect` that is under way cannot be cancelled: for a host that drops SYNs it
 * would hold its descriptor for two minutes after our timer. Its promise is all that it returns until then, and Bun 1.4.4
 * ignores the options `signal` and `timeout`; its `localAddress` works.
 */
export const createDirectConnector = ({ clock, mayConnect }: DirectConnectorDeps): Connector =>
  async function connectDirectly({ address, port, localAddress, timeoutMs }) {
    const family = isIP(address);
    if (family === 0) throw new Error(`a connector takes IP addresses, not ${JSON.stringify(address)}`);
    if (!mayConnect(address)) return err("address_not_allowed");
    // Left to the platform, an address of the other family is bound to nothing and reads as a refusal.
    if (localAddress && isIP(localAddress) !== family) return err("local_failure");
    return await new Promise<Result<Wire, ConnectFailure>>((resolve) => {
      const socket = new Socket();
      const giveUp = (failure: ConnectFailure) => {
        cancelTimer();
        socket.destroy();
        resolve(err(failure));
      };
      const onError = (error: Error) => {
        const isOurs = isLocalError(errorCode(error)) || isOutOfDescriptors();
        giveUp(isOurs ? "local_failure" : "refused_or_unreachable");
      };
      const cancelTimer = clock.after(timeoutMs, () => giveUp("timeout"));
      socket.on("error", onError);
      socket.once("connect", () => {
        cancelTimer();
        const wire = createSocketWire(socket, clock);
        socket.off("error", onError);
        resolve(ok(wire));
      });
      socket.connect(localAddress ? { host: address, port, localAddress } : { host: address, port });
    });
  };

/** Makes a wire of a connected socket, which it owns from then on (the direct connector's, or a proxy's). */
export const createSocketWire = (socket: Socket, clock: Clock): Wire => new SocketWire(socket, clock);

class SocketWire implements Wire {
  private stream: Socket;
  private handlers: WireHandlers | null = null;
  private closed: boolean = false;

  constructor(
    socket: Socket,
    private readonly clock: Clock,
  ) {
    this.stream = socket;
    socket.on("error", ignoreError);
    socket.on("close", this.onClose);
  }

  listen(handlers: WireHandlers): void {
    this.handlers = handlers;
    if (this.closed) queueMicrotask(() => handlers.closed());
    else this.stream.on("data", this.onData);
  }

  write(data: string | Uint8Array): void {
    if (!this.closed) this.stream.write(data);
  }

  end(): void {
    if (!this.closed) this.stream.end();
  }

  destroy(): void {
    this.stream.destroy();
  }

  upgradeTls(serverName: string, timeoutMs: number): Promise<Result<void, "tls_handshake_failed">> {
    if (this.closed) return Promise.resolve(err("tls_handshake_failed"));
    const raw = this.stream;
    raw.off("data", this.onData);
    raw.off("close", this.onClose);
    const secure = connectTls({
      socket: raw,
      // SNI carries host names only (RFC 6066 §3).
      ...(isIP(serverName) === 0 ? { servername: serverName } : {}),
      rejectUnauthorized: false,
      minVersion: "TLSv1",
    });
    this.stream = secure;
    secure.on("error", ignoreError);
    return new Promise((resolve) => {
      const fail = () => {
        cancelTimer();
        secure.destroy();
        raw.destroy();
        resolve(err("tls_handshake_failed"));
        this.onClose();
      };
      const cancelTimer = this.clock.after(timeoutMs, fail);
      secure.once("close", fail);
      secure.once("secureConnect", () => {
        cancelTimer();
        secure.off("close", fail);
        secure.on("close", this.onClose);
        secure.on("data", this.onData);
        resolve(ok(undefined));
      });
    });
  }

  private readonly onData = (chunk: Uint8Array) => {
    if (!this.closed) this.handlers?.data(chunk);
  };

  private readonly onClose = () => {
    if (this.closed) return;
    this.closed = true;
    this.handlers?.closed();
  };
}

/** A listener must exist, else an error would be thrown; "close" always follows it and is what counts. */
const ignoreError = () => undefined;

/** Failures that pass as soon as something else is closed. */
const SHORTAGES: ReadonlySet<string> = new Set(["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM"]);
/** Errors that are this machine's: no descriptor, no port, no such local address, or a local firewall that forbids it. */
const LOCAL_ERRORS: ReadonlySet<string> = new Set([
  ...SHORTAGES,
  ...["EADDRNOTAVAIL", "EADDRINUSE", "EACCES", "EPERM", "EAFNOSUPPORT"],
]);

/** Whether an error of opening a socket is a problem of this machine only. */
export const isLocalError = (code: string): boolean => LOCAL_ERRORS.has(code);

/** Whether the machine is short of descriptors or buffers, so that the same may succeed in a moment. */
export const isShortage = (code: string): boolean => SHORTAGES.has(code);

/**
 * Whether this process can open no further file or socket. The platform reports a TCP connect without a descriptor as a
 * refusal (ECONNREFUSED), so a refusal counts only if a descriptor is available.
 */
export const isOutOfDescriptors = (): boolean => {
  try {
    closeSync(openSync("/dev/null", "r"));
    return false;
  } catch (error) {
    return isShortage(errorCode(error));
  }
};
