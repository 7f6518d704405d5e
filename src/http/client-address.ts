import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

/** Entries further left in X-Forwarded-For are ignored. */
const FORWARDERS_MAX = 50;

/** An address in canonical form, IPv4-mapped IPv6 as IPv4; null if it is not an address. */
const readAddress = (text: string): string | null => {
  const bare = text
    .trim()
    .replace(/^\[(.*)\](:\d+)?$/, "$1")
    .replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, "$1");
  return isIP(bare) === 0 ? null : ipaddr.process(bare).toString();
};

const readNetwork = (text: string): [ipaddr.IPv4 | ipaddr.IPv6, number] => {
  const [network, bits] = ipaddr.parseCIDR(text.includes("/") ? text : `${text}/${isIP(text) === 6 ? 128 : 32}`);
  if (network instanceof ipaddr.IPv6 && network.isIPv4MappedAddress() && bits >= 96)
    return [network.toIPv4Address(), bits - 96];
  return [network, bits];
};

/**
 * Determines the client of a request: the peer or, if that is a trusted proxy, the rightmost address in X-Forwarded-For that is not
 * a trusted proxy. Entries left of it are not trusted.
 * `trustedProxies` are networks as address/bits.
 */
export const createClientAddress = (trustedProxies: readonly string[]) => {
  const networks = trustedProxies.map(readNetwork);
  const isTrusted = (address: string): boolean => {
    const parsed = ipaddr.parse(address);
    return networks.some(([network, bits]) => network.kind() === parsed.kind() && parsed.match(network, bits));
  };

  return (peer: string, forwardedFor: string | null): string => {
    let client = readAddress(peer) ?? peer;
    const forwarders = forwardedFor?.split(",").slice(-FORWARDERS_MAX) ?? [];
    while (isIP(client) > 0 && isTrusted(client)) {
      const next = readAddress(forwarders.pop() ?? "");
      if (next === null) return client;
      client = next;
    }
    return client;
  };
};

export type ClientAddress = ReturnType<typeof createClientAddress>;
