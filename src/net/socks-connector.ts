import { Socket } from "node:net";
import type { Clock } from "../base/clock.ts";
import { err, ok, type Result } from "../base/errors.ts";
import { waitFor } from "../base/wait.ts";
import { type ConnectFailure, type Connector, createSocketWire, type Wire } from "./connector.ts";

/** A SOCKS5 proxy (RFC 1928), with user name and password (RFC 1929) where it wants them. */
export interface SocksProxy {
  readonly host: string;
  readonly port: number;
  readonly user: string | null;
  readonly password: string | null;
}

export interface SocksConnectorDeps {
  readonly clock: Clock;
  /** The same gate as for direct connections: a proxy is no way around it. */
  readonly mayConnect: (address: string) => boolean;
  readonly proxy: SocksProxy;
}

/** Replies of the proxy about the target (RFC 1928 §6, replies 3 to 6). */
const TARGET_FAILURES = /(NetworkUnreachable|HostUnreachable|ConnectionRefused|TTLExpired)$/;

const failureOf = (error: unknown): ConnectFailure =>
  error instanceof Error && TARGET_FAILURES.test(error.message) ? "refused_or_unreachable" : "proxy_failed";

/** A listener must exist, else an error would be thrown; the negotiation itself reports what went wrong. */
const ignoreError = (): undefined => undefined;

/**
 * Connects through a SOCKS5 proxy, by IP address: names are never given to the proxy. `proxy_failed` when the proxy
 * itself cannot be reached or refuses us, which says nothing about the target.
 */
export const createSocksConnector = ({ clock, mayConnect, proxy }: SocksConnectorDeps): Connector =>
  async function connectThroughProxy({ address, port, timeoutMs }) {
    if (!mayConnect(address)) return err("address_not_allowed");
    const socket = new Socket();
    socket.on("error", ignoreError);
    const negotiation = new Promise<Result<Wire, ConnectFailure>>((resolve) => {
      socket.once("close", () => resolve(err("proxy_failed")));
      const negotiate = async () => {
        // Loaded here, because most services have no proxy.
        const { SocksClient } = await import("socks");
        await SocksClient.createConnection({
          proxy: {
            host: proxy.host,
            port: proxy.port,
            type: 5,
            ...(proxy.user === null ? {} : { userId: proxy.user, password: proxy.password ?? "" }),
          },
          command: "connect",
          destination: { host: address, port },
          existing_socket: socket,
          timeout: timeoutMs,
        });
        return createSocketWire(socket, clock);
      };
      socket.connect(proxy.port, proxy.host, () => {
        negotiate().then(
          (wire) => resolve(ok(wire)),
          (error: unknown) => resolve(err(failureOf(error))),
        );
      });
    });
    const waited = await waitFor(clock, negotiation, { timeoutMs });
    if (waited.ok && waited.value.ok) return waited.value;
    // Without a byte from the proxy, the proxy failed, not the target behind it.
    const hasProxyResponded = socket.bytesRead > 0;
    socket.destroy();
    if (waited.ok) return waited.value;
    return err(hasProxyResponded ? "timeout" : "proxy_failed");
  };
