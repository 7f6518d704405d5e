import { canonicalIp, isInNetworks, parseCidrs, parseIp } from "../base/cidr.ts";

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
  const isTrusted = (address: string): boolean => isInNetworks(networks, parseIp(address));

  return (peer: string, forwardedFor: string | null): string => {
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

export type ClientAddress = ReturnType<typeof createClientAddress>;
