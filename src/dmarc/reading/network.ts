import ipaddr from "ipaddr.js";

/** The network that an address is counted to: a /24 of IPv4, a /48 of IPv6, canonical. */
export const networkOf = (ip: string): string => {
  if (!ip.includes(":")) return `${ip.slice(0, ip.lastIndexOf("."))}.0/24`;
  const { parts } = ipaddr.IPv6.parse(ip);
  return `${new ipaddr.IPv6([...parts.slice(0, 3), 0, 0, 0, 0, 0]).toString()}/48`;
};
