import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { err, ok, type Result } from "../base/errors.ts";
import type { KeyMode } from "../base/secrets.ts";
import type { Target } from "../dnsbl/query-name.ts";
import { describeProblem } from "../mail/address-problem.ts";
import { parseDomain } from "../mail/domain.ts";
import { isPublicSuffix } from "../mail/organisational-domain.ts";
import { createAddressPolicy } from "../net/public-address.ts";
import { addressesOf, isRangeForm, parseRange, rangeText } from "./address-range.ts";

/** What a user wants to watch; `addresses` are those of a range. */
export interface ParsedTarget extends Target {
  readonly addresses: readonly string[] | null;
}

/** Names that never lead to a public host: RFC 6761, RFC 6762, RFC 7686, RFC 8375, RFC 9476, and what networks use inside. */
const SPECIAL_ENDINGS = ["localhost", "local", "invalid", "test", "onion", "alt", "internal", "lan", "home.arpa"];
/** Forms in which IPv6 carries an IPv4 address (6to4, NAT64, Teredo, RFC 6145): on the way only, no list has them. */
const TRANSITION_RANGES: ReadonlySet<string> = new Set(["6to4", "rfc6052", "rfc6145", "teredo"]);
/** For documentation (RFC 6761 §6.5); what test keys are asked about. */
const EXAMPLE_ENDING = "example";

const { isAllowed: isPublic } = createAddressPolicy([]);

/**
 * Reads what a user wants to watch, in the form the lists are asked with: an IPv4 address, an IPv6 address (RFC 5952; an
 * IPv4-mapped one is IPv4), or a domain below a public suffix in lower-case A-labels without a final dot. The error is a
 * sentence. Names under `.example` are for test keys only.
 */
export const parseTarget = (text: string, mode: KeyMode): Result<Target, string> => {
  const trimmed = text.trim();
  const bare = trimmed.replace(/^\[(?:IPv6:)?(.*)\]$/i, "$1");
  if (isIP(bare) !== 0 && !bare.includes("%")) return readAddress(bare);
  if (/^[\d.]+(\/\d+)?$/.test(trimmed) || /[:/[\]]/.test(trimmed)) return err(notATarget(trimmed));
  return readDomain(trimmed.replace(/(?<=[^.])\.$/, ""), mode);
};

/** Reads a target as `parseTarget` does, or a range of public IPv4 addresses (`parseRange`); a range of one is that address. */
export const parseTargetOrRange = (text: string, mode: KeyMode): Result<ParsedTarget, string> => {
  if (!isRangeForm(text)) {
    const parsed = parseTarget(text, mode);
    return parsed.ok ? ok({ ...parsed.value, addresses: null }) : parsed;
  }
  const range = parseRange(text);
  if (!range.ok) return range;
  const addresses = addressesOf(range.value);
  const stranger = addresses.find((address) => !isPublic(address));
  if (stranger !== undefined) return err(`${stranger} in it is not a public address; no list has entries for it.`);
  const [only = ""] = addresses;
  if (addresses.length === 1) return ok({ kind: "ipv4", value: only, addresses: null });
  return ok({ kind: "ipv4", value: rangeText(range.value), addresses });
};

const notATarget = (text: string): string => {
  if (text.includes("://")) return "Give the domain alone, without http:// and path.";
  if (/^(?:[\d.]+|[\da-f.[\]]*:[\da-f:.[\]]*)\//i.test(text))
    return "Only ranges of IPv4 addresses are accepted, up to a /22: give single addresses.";
  if (text.includes("/")) return "Give the domain alone, without the path behind it.";
  return "Neither a domain nor an IP address: write it as example.com, 192.0.2.1 or 2001:db8::1.";
};

const readAddress = (text: string): Result<Target, string> => {
  const address = ipaddr.process(text);
  const value = address.toString();
  if (TRANSITION_RANGES.has(address.range())) {
    return err(`${value} is not a public address of its own: it carries an IPv4 address. Watch that one.`);
  }
  if (!isPublic(text)) return err(`${value} is not a public address; no list has entries for it.`);
  return ok({ kind: address.kind(), value });
};

const readDomain = (text: string, mode: KeyMode): Result<Target, string> => {
  if (text.includes("@")) return err("Not a domain: give the part behind the @.");
  const parsed = parseDomain(text);
  if (!parsed.ok) return err(`Not a domain: ${describeProblem(parsed.error)}`);
  const { ascii, unicode } = parsed.value;
  if (/(?![\d#*©®™])\p{Emoji}/u.test(unicode)) return err("Not a domain: emoji are not allowed in names (RFC 5892).");
  if (!ascii.includes(".")) return err(`"${unicode}" is a single label, no domain on the public internet.`);
  const isBelow = (ending: string) => ascii === ending || ascii.endsWith(`.${ending}`);
  const special = SPECIAL_ENDINGS.find(isBelow);
  if (special !== undefined) return err(`Names under .${special} are not on the public internet.`);
  if (isBelow(EXAMPLE_ENDING)) {
    return mode === "test"
      ? ok({ kind: "domain", value: ascii })
      : err("Names under .example are accepted with test keys only.");
  }
  if (isPublicSuffix(ascii)) return err(`"${unicode}" is a public suffix, under which strangers register.`);
  return ok({ kind: "domain", value: ascii });
};
