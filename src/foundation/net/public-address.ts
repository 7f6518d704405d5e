import { errorCode } from "../base/errors.ts";
import ipaddr from "ipaddr.js";
import { type IpAddress, isInNetworks, parseCidrs, parseIp } from "../base/cidr.ts";

/** Which addresses may be connected to. */
export interface AddressPolicy {
  /** True for a global unicast address, or one inside an allowed network. False for everything else, also for text that is no address. */
  isAllowed(ip: string): boolean;
}

/** Azure's platform endpoint: numerically public, but reachable from inside the virtual machine's network. */
const AZURE_PLATFORM_ADDRESS = "168.63.129.16";

/** All global unicast IPv6 space that IANA has given out so far (RFC 4291 §2.4 as registered). */
const GLOBAL_UNICAST_IPV6: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse("2000::"), 3];

/**
 * Builds the rule for outgoing connections: only global unicast addresses (IANA special-purpose registries, RFC 6890)
 * and addresses in `allowNetworks`.
 *
 * Addresses that carry an IPv4 address (mapped, translated, NAT64, 6to4, Teredo, ISATAP) are judged by what they carry.
 * Throws when an entry of `allowNetworks` is not a network: settings are checked with `parseCidr` before they come here.
 */
export const createAddressPolicy = (allowNetworks: readonly string[]): AddressPolicy => {
  const networks = parseCidrs(allowNetworks);
  const judge = (address: IpAddress) => isInNetworks(networks, address) || isPublic(address, judge);

  return {
    isAllowed(ip) {
      // "::8.8.8.8" (deprecated, RFC 4291 §2.5.5.1) is routed nowhere, but ipaddr.js reads it as the mapped form.
      if (/^::\d+\./.test(ip)) return false;
      const address = parseIp(ip);
      return address !== null && judge(address);
    },
  };
};

const isPublic = (address: IpAddress, judge: (embedded: IpAddress) => boolean) => {
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
      // RFC 4380 §4: the server's address unchanged, the client's with every bit inverted.
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

/**
 * Whether this machine may connect from an IP address: binds a UDP socket to it, which sends nothing. Asking for the
 * addresses of the interfaces would miss those that a route makes local (AnyIP).
 */
export const isLocalAddress = async (address: string): Promise<boolean> => {
  try {
    const socket = await Bun.udpSocket({ hostname: address, port: 0 });
    socket.close();
    return true;
  } catch (error) {
    if (errorCode(error) !== "") return false;
    throw error;
  }
};
