import { networkOf, parseIp } from "./cidr.ts";

/** One client: an IPv4 address, or the 64 bits of an IPv6 address that one customer commonly has. Any other text as it is. */
export const clientKey = (address: string): string => {
  const ip = parseIp(address);
  return ip?.kind() === "ipv6" ? networkOf(ip.toString(), 64) : address;
};

/** The network of a client: its /24, or the /48 of an IPv6 address, which is what one site commonly gets. */
export const networkKey = (address: string): string => {
  const ip = parseIp(address);
  return ip === null ? address : networkOf(ip.toString(), ip.kind() === "ipv6" ? 48 : 24);
};
