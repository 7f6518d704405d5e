import ipaddr from "ipaddr.js";
import { isIP } from "node:net";
import { err, ok, type Result } from "../foundation/base/errors.ts";
import type { KeyMode } from "../foundation/base/secrets.ts";
import type { Target } from "./lists/query-name.ts";
import { describeNoDomain } from "../foundation/mail/address-problem.ts";
import { parseDomain } from "../foundation/mail/domain.ts";
import { isPublicSuffix } from "../foundation/mail/organisational-domain.ts";
import { createAddressPolicy } from "../foundation/net/public-address.ts";
import { ipv4Number } from "./lists/blocklist.ts";

/** A target as a user wrote it, parsed. `addresses`: those of a range. */
export interface ParsedTarget extends Target {
  readonly addresses: readonly string[] | null;
}

/** Names that are not on the public internet: RFC 6761, RFC 6762, RFC 7686, RFC 8375, RFC 9476, and common private ones. */
const SPECIAL_ENDINGS = ["localhost", "local", "invalid", "test", "onion", "alt", "internal", "lan", "home.arpa"];
/** IPv6 addresses that carry an IPv4 address (6to4, NAT64, Teredo, RFC 6145); lists do not contain them. */
const TRANSITION_RANGES: ReadonlySet<string> = new Set(["6to4", "rfc6052", "rfc6145", "teredo"]);
/** For documentation (RFC 6761 §6.5); test keys use it. */
const EXAMPLE_ENDING = "example";

const { isAllowed: isPublic } = createAddressPolicy([]);

/**
 * Parses and normalizes a target: an IPv4 address, an IPv6 address (RFC 5952; an IPv4-mapped one becomes IPv4), or a
 * domain below a public suffix in lower-case A-labels without a final dot. The error is a sentence. Names under `.example`
 * are accepted in test mode only.
 */
export const parseTarget = (text: string, mode: KeyMode): Result<Target, string> => {
  const trimmed = text.trim();
  const bare = trimmed.replace(/^\[(?:IPv6:)?(.*)\]$/i, "$1");
  if (isIP(bare) !== 0 && !bare.includes("%")) return readAddress(bare);
  if (/^[\d.]+(\/\d+)?$/.test(trimmed) || /[:/[\]]/.test(trimmed)) return err(notATarget(trimmed));
  return readDomain(trimmed.replace(/(?<=[^.])\.$/, ""), mode);
};

/** Parses a target, or a range of public IPv4 addresses (`parseRange`); a range of one address is that address. */
export const parseTargetOrRange = (text: string, mode: KeyMode): Result<ParsedTarget, string> => {
  if (!isRangeForm(text)) {
    const parsed = parseTarget(text, mode);
    return parsed.ok ? ok({ ...parsed.value, addresses: null }) : parsed;
  }
  const range = parseRange(text);
  if (!range.ok) return range;
  const addresses = addressesOf(range.value);
  const nonPublic = addresses.find((address) => !isPublic(address));
  if (nonPublic !== undefined)
    return err(`The range contains ${nonPublic}, which is not a public address; no list has entries for it.`);
  const [only = ""] = addresses;
  if (addresses.length === 1) return ok({ kind: "ipv4", value: only, addresses: null });
  return ok({ kind: "ipv4", value: rangeText(range.value), addresses });
};

const notATarget = (text: string) => {
  if (text.includes("://")) return "Give only the domain, without http:// and path.";
  if (/^(?:[\d.]+|[\da-f.[\]]*:[\da-f:.[\]]*)\//i.test(text))
    return "Only IPv4 ranges up to a /22 are accepted. Add single addresses instead.";
  if (text.includes("/")) return "Give only the domain, without the path.";
  return "Not a domain or IP address. Examples: example.com, 192.0.2.1, 2001:db8::1.";
};

const readAddress = (text: string): Result<Target, string> => {
  const address = ipaddr.process(text);
  const value = address.toString();
  if (TRANSITION_RANGES.has(address.range())) {
    return err(`${value} is not a public address: it carries an IPv4 address. Add the IPv4 address instead.`);
  }
  if (!isPublic(text)) return err(`${value} is not a public address; no list has entries for it.`);
  return ok({ kind: address.kind(), value });
};

const readDomain = (text: string, mode: KeyMode): Result<Target, string> => {
  if (text.includes("@")) return err("Not a domain. Give only the part after the @.");
  const parsed = parseDomain(text);
  if (!parsed.ok) return err(describeNoDomain(parsed.error));
  const { ascii, unicode } = parsed.value;
  if (/(?![\d#*©®™])\p{Emoji}/u.test(unicode))
    return err("Not a domain: emoji are not allowed in domain names (RFC 5892).");
  if (!ascii.includes(".")) return err(`"${unicode}" is a single label, not a domain on the public internet.`);
  const isBelow = (ending: string) => ascii === ending || ascii.endsWith(`.${ending}`);
  const special = SPECIAL_ENDINGS.find(isBelow);
  if (special !== undefined) return err(`Names under .${special} are not on the public internet.`);
  if (isBelow(EXAMPLE_ENDING)) {
    return mode === "test"
      ? ok({ kind: "domain", value: ascii })
      : err("Names under .example are accepted with test keys only.");
  }
  if (isPublicSuffix(ascii)) return err(`"${unicode}" is a public suffix, under which anyone can register domains.`);
  return ok({ kind: "domain", value: ascii });
};

/** The largest range: a /22. */
export const RANGE_ADDRESSES_MAX = 1024;

/** Consecutive IPv4 addresses as numbers, inclusive. */
interface AddressRange {
  readonly first: number;
  readonly last: number;
}

const ADDRESS_BITS = 32;
const RANGE = /^([\d.]+)\s*(?:\/\s*(\d{1,3})|[-–]\s*([\d.]+))$/;

const dotted = (number: number) =>
  [2 ** 24, 2 ** 16, 2 ** 8, 1].map((unit) => Math.floor(number / unit) % 256).join(".");

/** Whether a text looks like a range of IPv4 addresses, valid or not. */
export const isRangeForm = (text: string): boolean => RANGE.test(text.trim());

/**
 * Parses `198.51.100.0/24` or `198.51.100.1-198.51.100.9`. The error is a sentence: not a range, ends in the wrong order,
 * host bits set, or more than `RANGE_ADDRESSES_MAX` addresses.
 */
export const parseRange = (text: string): Result<AddressRange, string> => {
  const [, start = "", bitsText, end] = RANGE.exec(text.trim()) ?? [];
  const first = ipv4Number(start);
  const tooLarge = `A range can have at most ${RANGE_ADDRESSES_MAX.toLocaleString("en")} addresses (a /22).`;
  if (first === null) return err("Not a range of IPv4 addresses. Example: 198.51.100.0/24.");
  if (bitsText !== undefined) {
    const bits = Number(bitsText);
    if (bits > ADDRESS_BITS) return err(`/${bitsText} is not a valid prefix length.`);
    const size = 2 ** (ADDRESS_BITS - bits);
    if (size > RANGE_ADDRESSES_MAX) return err(tooLarge);
    const network = first - (first % size);
    if (network !== first) return err(`${start}/${bits} has host bits set. Use ${dotted(network)}/${bits}.`);
    return ok({ first, last: first + size - 1 });
  }
  const last = ipv4Number(end ?? "");
  if (last === null) return err("Not a range of IPv4 addresses. Example: 198.51.100.1-198.51.100.9.");
  if (last < first) return err("The first address of the range must not be greater than the last.");
  if (last - first >= RANGE_ADDRESSES_MAX) return err(tooLarge);
  return ok({ first, last });
};

/** A range as text: in CIDR notation if possible, otherwise with both ends. */
export const rangeText = ({ first, last }: AddressRange): string => {
  const size = last - first + 1;
  const bits = ADDRESS_BITS - Math.log2(size);
  return Number.isInteger(bits) && first % size === 0 ? `${dotted(first)}/${bits}` : `${dotted(first)}-${dotted(last)}`;
};

/** Every address of a range, in order. */
export const addressesOf = ({ first, last }: AddressRange): string[] =>
  Array.from({ length: last - first + 1 }, (_, at) => dotted(first + at));
