import { err, ok, type Result } from "../base/errors.ts";
import type { AddressProblem } from "./address-problem.ts";

const IPV6_GROUPS = 8;
/** RFC 5321 §4.1.3: "::" stands for at least two groups, which is stricter than RFC 4291. */
const IPV6_GROUPS_BESIDE_COMPRESSION = 6;

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
    const groups = parseIpv6(inner.slice("IPv6:".length));
    if (groups === null) return err("literal_bad_ipv6");
    const ip = formatIpv6(groups);
    return ok({ text: `[IPv6:${ip}]`, ip });
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

/** The eight 16-bit groups, or null. */
const parseIpv6 = (text: string): readonly number[] | null => {
  const halves = text.split("::");
  if (halves.length > 2) return null;
  const [headText = "", tailText] = halves;
  const head = parseGroups(headText, tailText === undefined);
  if (head === null) return null;
  if (tailText === undefined) return head.length === IPV6_GROUPS ? head : null;
  const tail = parseGroups(tailText, true);
  if (tail === null || head.length + tail.length > IPV6_GROUPS_BESIDE_COMPRESSION) return null;
  const zeros = Array.from({ length: IPV6_GROUPS - head.length - tail.length }, () => 0);
  return [...head, ...zeros, ...tail];
};

const parseGroups = (text: string, mayEndInIpv4: boolean): readonly number[] | null => {
  if (text === "") return [];
  const parts = text.split(":");
  const groups: number[] = [];
  for (const [index, part] of parts.entries()) {
    if (/^[\da-f]{1,4}$/iu.test(part)) {
      groups.push(Number.parseInt(part, 16));
      continue;
    }
    const octets = mayEndInIpv4 && index === parts.length - 1 ? parseIpv4(part) : null;
    if (octets === null) return null;
    groups.push(octets[0] * 256 + octets[1], octets[2] * 256 + octets[3]);
  }
  return groups;
};

/** RFC 5952 §4: lower case, no leading zeros, the first of the longest runs of two or more zero groups as "::". */
const formatIpv6 = (groups: readonly number[]): string => {
  let runStart = -1;
  let runLength = 1;
  for (let start = 0; start < groups.length; start += 1) {
    let end = start;
    while (groups[end] === 0) end += 1;
    if (end - start > runLength) [runStart, runLength] = [start, end - start];
  }
  const hex = groups.map((group) => group.toString(16));
  if (runStart === -1) return hex.join(":");
  return `${hex.slice(0, runStart).join(":")}::${hex.slice(runStart + runLength).join(":")}`;
};
