import { isIPv6 } from "node:net";
import ipaddr from "ipaddr.js";
import { err, ok, type Result } from "../base/errors.ts";
import type { AddressProblem } from "./address-problem.ts";

/** RFC 5321 §4.1.3: "::" stands for at least two groups, which is stricter than RFC 4291. */
const GROUPS_BESIDE_COMPRESSION = 6;

/** An address literal: how it is written in an address, and the bare IP address it names (RFC 5952 form). */
export interface AddressLiteral {
  readonly text: string;
  readonly ip: string;
}

/**
 * Reads `[192.0.2.1]` or `[IPv6:2001:db8::1]` (RFC 5321 §4.1.3), brackets included. The tag is case-insensitive; leading
 * zeros of an IPv4 number are decimal, as the grammar says, and dropped. General address literals are refused: no tag
 * other than IPv6 was ever registered.
 */
export const parseAddressLiteral = (text: string): Result<AddressLiteral, AddressProblem> => {
  if (!text.endsWith("]") || text.length < 2) return err("literal_unclosed");
  const inner = text.slice(1, -1);
  if (/^ipv6:/iu.test(inner)) {
    const ip = parseIpv6(inner.slice("IPv6:".length));
    return ip === null ? err("literal_bad_ipv6") : ok({ text: `[IPv6:${ip}]`, ip });
  }
  if (!/^[\d.]+$/u.test(inner)) return err("literal_unknown");
  const octets = parseIpv4(inner);
  if (octets === null) return err("literal_bad_ipv4");
  const ip = octets.join(".");
  return ok({ text: `[${ip}]`, ip });
};

type Ipv4Octets = readonly [number, number, number, number];

const parseIpv4 = (text: string): Ipv4Octets | null => {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/u.exec(text);
  if (match === null) return null;
  const octets: Ipv4Octets = [Number(match[1]), Number(match[2]), Number(match[3]), Number(match[4])];
  return octets.every((octet) => octet <= 255) ? octets : null;
};

/** The address in its canonical form (RFC 5952), or null. */
const parseIpv6 = (text: string): string | null => {
  const [, front, tail = ""] = /^(.*:)([\d.]*\.[\d.]*)$/u.exec(text) ?? [];
  const octets = front === undefined ? null : parseIpv4(tail);
  if (front !== undefined && octets === null) return null;
  const [a, b, c, d] = octets ?? [0, 0, 0, 0];
  const groups = front === undefined ? text : `${front}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  if (!/^[\da-f:]+$/iu.test(groups) || !isIPv6(groups)) return null;
  const isCompressed = groups.includes("::");
  const written = groups.split(":").filter((group) => group !== "").length;
  return isCompressed && written > GROUPS_BESIDE_COMPRESSION ? null : ipaddr.IPv6.parse(groups).toRFC5952String();
};
