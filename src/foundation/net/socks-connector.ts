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

/** How a proxy failed, which says nothing about the target. */
export type SocksProblem =
  "unreachable" | "silent" | "login_refused" | "not_allowed" | "general_failure" | "closed" | "not_socks5";

interface SocksConnectorDeps {
  readonly clock: Clock;
  /** The same gate as for direct connections: a proxy is no way around it. */
  readonly mayConnect: (address: string) => boolean;
  readonly proxy: SocksProxy;
  /** Called before a connect ends as `proxy_failed`. */
  readonly noteProblem?: (problem: SocksProblem) => void;
}

/** A sentence about a problem without its subject, the proxy; ends with what to do. */
export const describeSocksProblem = (problem: SocksProblem | null): string => {
  switch (problem) {
    case "unreachable":
      return "does not accept connections. Check its host and port, its firewall, and that it runs.";
    case "silent":
      return "accepts connections and stays silent. Check that it is a SOCKS5 proxy, and its log.";
    case "login_refused":
      return "refuses the login. Check user and password; write special characters in them as %XX.";
    case "not_allowed":
      return "forbids the connection (SOCKS5 reply 2). Allow connections to port 25 in its rules.";
    case "general_failure":
      return "reports a general failure (SOCKS5 reply 1). Check its log, and that its machine may connect to port 25.";
    case "closed":
      return "closes connections during the negotiation. Check its log, and that it allows this machine.";
    case "not_socks5":
      return "does not speak SOCKS5. Check its host and port.";
    case null:
      return "is not usable.";
    default:
      return problem satisfies never;
  }
};

/**
 * Replies of the proxy about the target (RFC 1928 §6, replies 3 to 6), and 8: a proxy without IPv6 fails for IPv6 targets
 * only.
 */
const TARGET_FAILURES = /(NetworkUnreachable|HostUnreachable|ConnectionRefused|TTLExpired|AddressNotSupported)$/;

/** Matches the messages of the package `socks`, which has no codes. */
const PROBLEMS: ReadonlyArray<readonly [RegExp, SocksProblem]> = [
  [/Authentication failed|no accepted authentication type/, "login_refused"],
  [/NotAllowed$/, "not_allowed"],
  [/Socks5 proxy rejected connection/, "general_failure"],
  [/Socket closed/, "closed"],
];

const problemOf = (error: unknown): SocksProblem => {
  const message = error instanceof Error ? error.message : "";
  return PROBLEMS.find(([pattern]) => pattern.test(message))?.[1] ?? "not_socks5";
};

/** Octets of the proxy until it has accepted the client: the method, and the status of a login (RFC 1929 §2). */
const METHOD_BYTES = 2;
const LOGIN_BYTES = 2;
const METHOD_NO_LOGIN = 0;

/** A listener must exist, else an error would be thrown; the negotiation itself reports what went wrong. */
const ignoreError = () => undefined;

/** Why there is no wire: something about the target, or a problem of the proxy. */
type SocksFailure = Exclude<ConnectFailure, "proxy_failed"> | { readonly problem: SocksProblem };

interface Negotiation {
  readonly socket: Socket;
  readonly proxy: SocksProxy;
  /** Called with the authentication method that the proxy has chosen. */
  readonly onMethod: (method: number | undefined) => void;
}

/** Negotiates a connection to an address over a connected socket. */
const negotiate = async ({ socket, proxy, onMethod }: Negotiation, target: Parameters<Connector>[0]) => {
  // Loaded here, because most services have no proxy.
  const { SocksClient } = await import("socks");
  socket.once("data", (chunk: Buffer) => onMethod(chunk[1]));
  await SocksClient.createConnection({
    proxy: {
      ...{ host: proxy.host, port: proxy.port, type: 5 },
      ...(proxy.user === null ? {} : { userId: proxy.user, password: proxy.password ?? "" }),
    },
    command: "connect",
    destination: { host: target.address, port: target.port },
    existing_socket: socket,
    timeout: target.timeoutMs,
  });
};

/** Opens a wire through the proxy; after a failure nothing is left open. */
const openThrough = async (
  { clock, proxy }: SocksConnectorDeps,
  target: Parameters<Connector>[0],
): Promise<Result<Wire, SocksFailure>> => {
  const socket = new Socket();
  let isConnected = false;
  let acceptedBytes = METHOD_BYTES + LOGIN_BYTES;
  const onMethod = (method: number | undefined) => {
    if (method === METHOD_NO_LOGIN) acceptedBytes = METHOD_BYTES;
  };
  socket.on("error", ignoreError);
  const opened = new Promise<Result<Wire, SocksFailure>>((resolve) => {
    socket.once("close", () => resolve(err({ problem: isConnected ? "closed" : "unreachable" })));
    socket.connect(proxy.port, proxy.host, () => {
      isConnected = true;
      negotiate({ socket, proxy, onMethod }, target).then(
        () => resolve(ok(createSocketWire(socket, clock))),
        (error: unknown) => {
          const isTarget = error instanceof Error && TARGET_FAILURES.test(error.message);
          resolve(err(isTarget ? "refused_or_unreachable" : { problem: problemOf(error) }));
        },
      );
    });
  });
  const waited = await waitFor(clock, opened, { timeoutMs: target.timeoutMs });
  if (waited.ok && waited.value.ok) return waited.value;
  // A proxy that accepted the client may be waiting for the target; before that, the proxy itself is silent.
  const isAccepted = socket.bytesRead >= acceptedBytes;
  socket.destroy();
  if (waited.ok) return waited.value;
  return err(isAccepted ? "timeout" : { problem: isConnected ? "silent" : "unreachable" });
};

/**
 * Connects through a SOCKS5 proxy, by IP address: names are never given to the proxy. `proxy_failed` when the proxy
 * itself cannot be reached or refuses us, which says nothing about the target.
 */
export const createSocksConnector = (deps: SocksConnectorDeps): Connector =>
  async function connectThroughProxy(target) {
    if (!deps.mayConnect(target.address)) return err("address_not_allowed");
    const opened = await openThrough(deps, target);
    if (opened.ok) return opened;
    if (typeof opened.error === "string") return err(opened.error);
    deps.noteProblem?.(opened.error.problem);
    return err("proxy_failed");
  };

/** A proxy as it is shown: without user and password. */
export const formatProxy = ({ host, port }: SocksProxy): string =>
  `socks5://${host.includes(":") ? `[${host}]` : host}:${port}`;
