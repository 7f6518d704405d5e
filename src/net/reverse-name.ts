import ipaddr from "ipaddr.js";

/** The labels of an address in reverse order, as zones that are keyed by addresses have them (RFC 1035 §3.5, RFC 3596 §2.5). Takes valid addresses only. */
export const reverseLabels = (ip: string): string => {
  const address = ipaddr.parse(ip);
  if (address instanceof ipaddr.IPv4) return address.octets.toReversed().join(".");
  const nibbles = address.parts.map((part) => part.toString(16).padStart(4, "0")).join("");
  return [...nibbles].toReversed().join(".");
};

/** The name under which the DNS keeps the reverse name of an address. Takes valid addresses only. */
export const reverseQueryName = (ip: string): string =>
  `${reverseLabels(ip)}.${ipaddr.parse(ip).kind() === "ipv4" ? "in-addr" : "ip6"}.arpa`;
