import { isIP, isIPv4 } from "node:net";
import ipaddr from "ipaddr.js";
import { err, ok, type Result } from "./errors.ts";

/** An address as ipaddr.js has it. */
export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6;

/** A block of addresses: `address` with its first `prefixBits` bits fixed. An IPv4-mapped block is kept as the IPv4 block it means. */
interface Cidr {
  readonly address: IpAddress;
  readonly prefixBits: number;
}

/** Why a text is not a network. `problem` is a sentence for the person who wrote the setting. */
interface CidrProblem {
  readonly kind: "invalid_cidr";
  readonly problem: string;
}

/**
 * Reads an address in its usual notations; an IPv4-mapped address (RFC 4291 §2.5.5.2) is the IPv4 address. Null for what is no
 * address, also for notations that ipaddr.js reads and nobody means ("0x7f.1", "1"), and for an address with a zone.
 */
export const parseIp = (text: string): IpAddress | null =>
  isIP(text) === 0 || text.includes("%") ? null : ipaddr.process(text);

/** The same as text in its canonical form (RFC 5952); null for what is no address. */
export const canonicalIp = (text: string): string | null => parseIp(text)?.toString() ?? null;

/** Reads `address/bits`, or a bare address as a network of one. Fails with a sentence that names the text. */
export const parseCidr = (text: string): Result<Cidr, CidrProblem> => {
  const [ip = "", bits, ...rest] = text.trim().split("/");
  const fail = (problem: string) => err({ kind: "invalid_cidr", problem } as const);
  if (isIP(ip) === 0 || ip.includes("%") || rest.length > 0) {
    return fail(`"${text}" is not a network: write it as 10.0.0.0/8 or fd00::/8.`);
  }
  const address = ipaddr.parse(ip);
  const bitsMax = address.kind() === "ipv4" ? 32 : 128;
  if (bits !== undefined && (!/^\d{1,3}$/.test(bits) || Number(bits) > bitsMax)) {
    return fail(`"${text}" is not a network: the prefix length must be a number from 0 to ${bitsMax}.`);
  }
  const prefixBits = bits === undefined ? bitsMax : Number(bits);
  if (address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() && prefixBits >= 96) {
    return ok({ address: address.toIPv4Address(), prefixBits: prefixBits - 96 });
  }
  return ok({ address, prefixBits });
};

/** Networks of settings, which were validated. Throws for a text that is not a network. */
export const parseCidrs = (texts: readonly string[]): readonly Cidr[] =>
  texts.map((text) => {
    const parsed = parseCidr(text);
    if (!parsed.ok) throw new Error(parsed.error.problem);
    return parsed.value;
  });

/** Whether one of the networks holds the address. */
export const isInNetworks = (networks: readonly Cidr[], address: IpAddress | null): boolean =>
  address !== null &&
  networks.some(
    (network) => network.address.kind() === address.kind() && address.match(network.address, network.prefixBits),
  );

/** The network of an address with its first `bits` bits fixed: `192.0.2.0/24`. Takes a valid address and a length that fits it. */
export const networkOf = (ip: string, bits: number): string => {
  const family = isIPv4(ip) ? ipaddr.IPv4 : ipaddr.IPv6;
  return `${family.networkAddressFromCIDR(`${ip}/${bits}`).toString()}/${bits}`;
};

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
