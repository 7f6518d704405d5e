import { isInNetworks, parseCidrs, parseIp, canonicalIp } from "../base/cidr.ts";
import type { Log } from "../base/log.ts";

/** What names the peer of a request: the server. */
type Peers = Pick<Bun.Server<unknown>, "requestIP">;

/** Networks of one's own, where a reverse proxy stands. */
const NEAR = parseCidrs(["127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"]);

const THIS_MACHINE = parseCidrs(["127.0.0.0/8", "::1/128"]);

/** An address for documentation (RFC 5737), which no client has. */
const SOMEBODY = "192.0.2.1";

/** Names the client of a request by its connection and the proxies that are trusted. */
export class ClientAddresses {
  #clientOf: ReturnType<typeof createClientAddress>;
  #peers: Peers | null = null;
  #hasWarned: boolean = false;

  /** `trustedProxies` are networks whose X-Forwarded-For names the client. */
  constructor(
    trustedProxies: readonly string[],
    private readonly log: Pick<Log, "warn"> | null = null,
  ) {
    this.#clientOf = createClientAddress(trustedProxies);
  }

  trust(networks: readonly string[]): void {
    this.#clientOf = createClientAddress(networks);
  }

  /** Sets the server that requests come from. */
  attach(peers: Peers): void {
    this.#peers = peers;
  }

  /** The client of a request, of which the runtime knows the peer only until the response is sent; null without a server. */
  of(request: Request): string | null {
    const peer = this.#peers?.requestIP(request)?.address;
    if (peer === undefined) return null;
    const forwardedFor = request.headers.get("x-forwarded-for");
    const client = this.#clientOf(peer, forwardedFor);
    if (forwardedFor !== null && this.#clientOf(peer, SOMEBODY) !== SOMEBODY) this.#warn(client);
    return client;
  }

  /** Whether a trusted proxy says that the client uses HTTPS: the last word of X-Forwarded-Proto is its own. */
  isForwardedHttps(request: Request): boolean {
    const forwarded = request.headers.get("x-forwarded-proto")?.split(",").at(-1)?.trim().toLowerCase();
    if (forwarded !== "https") return false;
    const peer = this.#peers?.requestIP(request)?.address;
    return peer !== undefined && this.#clientOf(peer, SOMEBODY) === SOMEBODY;
  }

  /** Whether a request comes from this machine or a trusted proxy itself, not from a client of theirs. */
  isFromThisSide(request: Request): boolean {
    const peer = this.#peers?.requestIP(request)?.address;
    if (peer === undefined || request.headers.has("x-forwarded-for") || request.headers.has("forwarded")) return false;
    return (
      isInNetworks(THIS_MACHINE, parseIp(canonicalIp(peer) ?? peer)) || this.#clientOf(peer, SOMEBODY) === SOMEBODY
    );
  }

  /** Behind a proxy that is not trusted all clients are one, so that one who guesses passwords slows all of them down. */
  #warn(proxy: string) {
    if (this.#hasWarned || !isInNetworks(NEAR, parseIp(proxy))) return;
    this.#hasWarned = true;
    this.log?.warn("requests come through a proxy that is not trusted: all clients count as one", {
      proxy,
      setting: "POSTWARDEN_TRUSTED_PROXIES",
    });
  }
}

/** Entries further left in X-Forwarded-For are ignored. */
const FORWARDERS_MAX = 50;

/** An address without brackets and port, in canonical form; null if it is not an address. */
const readAddress = (text: string): string | null =>
  canonicalIp(
    text
      .trim()
      .replace(/^\[(.*)\](:\d+)?$/, "$1")
      .replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, "$1"),
  );

/**
 * Determines the client of a request: the peer or, if that is a trusted proxy, the rightmost address in X-Forwarded-For that is not
 * a trusted proxy. Entries left of it are not trusted.
 * `trustedProxies` are networks as address/bits.
 */
export const createClientAddress = (trustedProxies: readonly string[]) => {
  const networks = parseCidrs(trustedProxies);
  const isTrusted = (address: string) => isInNetworks(networks, parseIp(address));

  return (peer: string, forwardedFor: string | null) => {
    let client = readAddress(peer) ?? peer;
    const forwarders = forwardedFor?.split(",").slice(-FORWARDERS_MAX) ?? [];
    while (isTrusted(client)) {
      const next = readAddress(forwarders.pop() ?? "");
      if (next === null) return client;
      client = next;
    }
    return client;
  };
};
