import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import type { Result } from "../base/errors.ts";
import { err, ok } from "../base/errors.ts";

type IpAddress = ipaddr.IPv4 | ipaddr.IPv6;

/** A block of addresses: `address` with its first `prefixBits` bits fixed. An IPv4-mapped block is kept as the IPv4 block it means. */
export interface Cidr {
  readonly address: IpAddress;
  readonly prefixBits: number;
}

/** Why a text is not a network. `problem` is a sentence for the person who wrote the setting. */
export interface CidrProblem {
  readonly kind: "invalid_cidr";
  readonly problem: string;
}

/** Says which addresses may be connected to. */
export interface AddressPolicy {
  /** True for a global unicast address, or one inside an allowed network. False for everything else, also for text that is no address. */
  isAllowed(ip: string): boolean;
}

/** Azure's platform endpoint: numerically public, yet answered inside the virtual machine's own network. */
const AZURE_PLATFORM_ADDRESS = "168.63.129.16";

/** All global unicast IPv6 space that IANA has given out so far (RFC 4291 §2.4 as registered). */
const GLOBAL_UNICAST_IPV6: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse("2000::"), 3];

/**
 * Builds the rule for outgoing connections: only global unicast addresses (IANA special-purpose registries, RFC 6890)
 * and what lies in `allowNetworks`.
 *
 * Addresses that carry an IPv4 address (mapped, translated, NAT64, 6to4, Teredo, ISATAP) are judged by what they carry.
 * Throws when an entry of `allowNetworks` is not a network: settings are checked with `parseCidr` before they come here.
 */
export const createAddressPolicy = (allowNetworks: readonly string[]): AddressPolicy => {
  const networks = allowNetworks.map(cidrOrThrow);
  const judge = (address: IpAddress): boolean =>
    networks.some((network) => contains(network, address)) || isPublic(address, judge);

  return {
    isAllowed(ip) {
      // isIP refuses "0x7f.1", "010.0.0.1" and "1", which ipaddr.js reads as addresses. A zone means a local link.
      if (isIP(ip) === 0 || ip.includes("%")) return false;
      // "::8.8.8.8" (deprecated, RFC 4291 §2.5.5.1) is routed nowhere, but ipaddr.js reads it as the mapped form.
      if (/^::\d+\./.test(ip)) return false;
      return judge(ipaddr.process(ip));
    },
  };
};

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

const cidrOrThrow = (text: string): Cidr => {
  const parsed = parseCidr(text);
  if (!parsed.ok) throw new Error(parsed.error.problem);
  return parsed.value;
};

const contains = (network: Cidr, address: IpAddress): boolean =>
  network.address.kind() === address.kind() && address.match(network.address, network.prefixBits);

const isPublic = (address: IpAddress, judge: (embedded: IpAddress) => boolean): boolean => {
  if (address instanceof ipaddr.IPv4) {
    return address.range() === "unicast" && address.toString() !== AZURE_PLATFORM_ADDRESS;
  }
  const { parts } = address;
  const embedded = embeddedIpv4(address, parts);
  if (embedded.length > 0) return embedded.every(judge);
  if (address.range() !== "unicast" || !address.match(GLOBAL_UNICAST_IPV6)) return false;
  // ISATAP (RFC 5214 §6.1) may use any prefix, so both halves have to be public.
  const isIsatap = ((parts[4] ?? 0) & ~0x0200) === 0 && parts[5] === 0x5efe;
  return !isIsatap || judge(ipv4At(parts, 6));
};

/** The IPv4 addresses that a transition address carries; none when it is not such an address. */
const embeddedIpv4 = (address: ipaddr.IPv6, parts: readonly number[]): ipaddr.IPv4[] => {
  switch (address.range()) {
    case "ipv4Mapped":
    case "rfc6145":
      return [ipv4At(parts, 6)];
    case "rfc6052": {
      // Inside 64:ff9b:1::/48 (RFC 8215) only the /96 form shows where the IPv4 address is; the rest stays local.
      const isNarrow = parts[3] === 0 && parts[4] === 0 && parts[5] === 0;
      return isNarrow ? [ipv4At(parts, 6)] : [];
    }
    case "6to4":
      return [ipv4At(parts, 1)];
    case "teredo":
      // RFC 4380 §4: the server's address as it is, the client's with every bit inverted.
      return [
        ipv4At(parts, 2),
        ipv4At(
          parts.map((part) => part ^ 0xffff),
          6,
        ),
      ];
    default:
      return [];
  }
};

const ipv4At = (parts: readonly number[], index: number): ipaddr.IPv4 => {
  const high = parts[index] ?? 0;
  const low = parts[index + 1] ?? 0;
  return new ipaddr.IPv4([high >> 8, high & 0xff, low >> 8, low & 0xff]);
};
