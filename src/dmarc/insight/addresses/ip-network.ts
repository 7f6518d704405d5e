import ipaddr from "ipaddr.js";
import { cached } from "../../../foundation/base/cached.ts";

/** Canonical addresses whose first three groups are written out: nearly all on the internet. */
const PLAIN_IPV6 = /^[1-9a-f][0-9a-f]{0,3}(?::[1-9a-f][0-9a-f]{0,3}){2}(?=:)/;

const CACHED_MAX = 20_000;

const computeNetwork = (ip: string): string => {
  if (!ip.includes(":")) return `${ip.slice(0, ip.lastIndexOf("."))}.0/24`;
  const plain = PLAIN_IPV6.exec(ip);
  if (plain !== null) return `${plain[0]}::/48`;
  const { parts } = ipaddr.IPv6.parse(ip);
  return `${new ipaddr.IPv6([...parts.slice(0, 3), 0, 0, 0, 0, 0]).toString()}/48`;
};

/** The network of an address, in canonical form: a /24 for IPv4, a /48 for IPv6. */
export const ipNetworkOf: (ip: string) => string = cached(CACHED_MAX, computeNetwork);
