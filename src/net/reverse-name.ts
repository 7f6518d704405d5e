import ipaddr from "ipaddr.js";

/** The name under which the DNS keeps the reverse name of an address (RFC 1035 §3.5, RFC 3596 §2.5). Takes valid addresses only. */
export const reverseQueryName = (ip: string): string => {
  const address = ipaddr.parse(ip);
  if (address instanceof ipaddr.IPv4) return `${address.octets.toReversed().join(".")}.in-addr.arpa`;
  const nibbles = address.parts.map((part) => part.toString(16).padStart(4, "0")).join("");
  return `${[...nibbles].toReversed().join(".")}.ip6.arpa`;
};
