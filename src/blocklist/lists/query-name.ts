import ipaddr from "ipaddr.js";
import { isIP } from "node:net";
import { type Result, err, ok } from "../../foundation/base/errors.ts";
import { normalizeName, reverseLabels } from "../../foundation/net/dns-name.ts";
import { type Blocklist, type TargetKind, zoneOf, ipv4Number } from "./blocklist.ts";

/** What is looked up: an IP address without a zone index, or a domain in A-labels. */
export interface Target {
  readonly kind: TargetKind;
  readonly value: string;
}

/** The registrable domain (public suffix plus one label) of a domain in A-labels; null when there is none. */
export type RegistrableDomain = (domain: string) => string | null;

/** Why a list does not apply to a target. `problem` is a sentence. */
export interface Skipped {
  readonly kind: "kind_not_listed" | "key_missing" | "no_registrable_domain" | "name_too_long" | "invalid_target";
  readonly problem: string;
}

/** The names to query for a target, without the zone. */
export interface QueryForms {
  /** The kind that is queried: an IPv4-mapped IPv6 address is IPv4. */
  readonly kind: TargetKind;
  readonly prefixes: readonly string[];
}

/** 255 octets on the wire (RFC 1035 §2.3.4) are 253 characters as text. */
const NAME_CHARACTERS_MAX = 253;

/**
 * Forms the query names of a target (RFC 5782 §2.1, §2.4, §3.1): octets or nibbles in reverse order, a domain according
 * to the list's `domainForm`. Fails when the list does not apply to the target.
 */
export const formQueries = (
  target: Target,
  list: Blocklist,
  registrableDomain: RegistrableDomain,
): Result<QueryForms, Skipped> => {
  const zone = zoneOf(list);
  if (zone === null) return skip("key_missing", `${list.name} requires a key.`);
  const { kind, value, literal } = namedTarget(target);
  if (!list.kinds.includes(kind)) return skip("kind_not_listed", `${list.name} has no ${kind} entries.`);
  if (literal === null) return skip("invalid_target", `"${value}" is not a valid ${kind} value.`);
  const prefixes = kind === "domain" ? domainForms(literal, list, registrableDomain) : [literal];
  if (prefixes.length === 0) return skip("no_registrable_domain", `"${value}" has no registrable domain.`);
  const valid = prefixes.filter((prefix) => prefix.length + 1 + zone.length <= NAME_CHARACTERS_MAX);
  if (valid.length === 0)
    return skip("name_too_long", `The query name would be longer than ${NAME_CHARACTERS_MAX} characters.`);
  return ok({ kind, prefixes: valid });
};

interface NamedTarget extends Target {
  readonly literal: string | null;
}

/** One target is looked up in many lists: its name is formed once. */
const named = new WeakMap<Target, NamedTarget>();

const namedTarget = (target: Target): NamedTarget => {
  const known = named.get(target);
  if (known !== undefined) return known;
  const { kind, value } = unmapped(target);
  const fresh = { kind, value, literal: literalName({ kind, value }) };
  named.set(target, fresh);
  return fresh;
};

/**
 * The query name of a target without the zone, and without a change of kind: also `::ffff:7f00:2` as nibbles, the test
 * point of IPv6 lists (RFC 5782 §5). Null when the text is not of its kind.
 */
export const literalName = ({ kind, value }: Target): string | null => {
  switch (kind) {
    case "ipv4":
      return ipv4Number(value) === null ? null : reverseLabels(value);
    case "ipv6": {
      const plain = plainIpv6(value);
      return plain === null ? null : reverseLabels(plain);
    }
    case "domain":
      return domainName(value);
    default:
      return kind satisfies never;
  }
};

const skip = (kind: Skipped["kind"], problem: string) => err({ kind, problem });

/** Lists have IPv4 addresses only as IPv4, never in the IPv4-mapped form (RFC 4291 §2.5.5.2). */
const unmapped = (target: Target): Target => {
  const plain = target.kind === "ipv6" ? plainIpv6(target.value) : null;
  const address = plain === null ? null : ipaddr.process(plain);
  return address?.kind() === "ipv4" ? { kind: "ipv4", value: address.toString() } : target;
};

/**
 * An IPv6 address without a zone index, else null. ipaddr.js reads the deprecated form `::192.0.2.1` (RFC 4291 §2.5.5.1) as
 * an IPv4-mapped address; with one group more it does not.
 */
const plainIpv6 = (value: string) =>
  isIP(value) === 6 && !value.includes("%") ? value.replace(/^::(?=\d+\.)/, "::0:") : null;

/** A name whose last label is all digits would be an address, which domain lists must not be queried for. */
const domainName = (value: string) => {
  const name = normalizeName(value);
  return name === undefined || name === "." || /(^|\.)\d+$/.test(name) ? null : name;
};

const domainForms = (
  host: string,
  { domainForm }: Blocklist,
  registrableDomain: RegistrableDomain,
): readonly string[] => {
  if (domainForm === "host") return [host];
  const registrable = registrableDomain(host);
  if (domainForm === "registrable") return registrable === null ? [] : [registrable];
  return registrable === null || registrable === host ? [host] : [host, registrable];
};
