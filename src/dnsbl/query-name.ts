import { isIP } from "node:net";
import type { Result } from "../base/errors.ts";
import { err, ok } from "../base/errors.ts";
import { normalizeName } from "../net/dns-name.ts";
import type { Blocklist, TargetKind } from "./blocklist.ts";
import { zoneOf } from "./blocklist.ts";
import { ipv4Number } from "./code-match.ts";

/** What is looked up: an address without a zone index, or a domain in A-labels. */
export interface Target {
  readonly kind: TargetKind;
  readonly value: string;
}

/** The public suffix and one label more, for a domain in A-labels; null when there is none. */
export type RegistrableDomain = (domain: string) => string | null;

/** Why a list is not asked about a target. `problem` is a sentence. */
export interface Skipped {
  readonly kind: "kind_not_listed" | "key_missing" | "no_registrable_domain" | "name_too_long" | "invalid_target";
  readonly problem: string;
}

/** What of a target is put before the zone of a list, once for each name to ask. */
export interface QueryForms {
  /** The kind that is really asked about: an IPv4-mapped IPv6 address is IPv4. */
  readonly kind: TargetKind;
  readonly prefixes: readonly string[];
}

/** 255 octets on the wire (RFC 1035 §2.3.4) are 253 characters in writing. */
const NAME_CHARACTERS_MAX = 253;

/**
 * Forms the names by which a list is asked about a target (RFC 5782 §2.1, §2.4, §3.1): octets or nibbles in reverse order,
 * a domain as the list's `domainForm` says. Fails when the list does not apply to the target.
 */
export const formQueries = (
  target: Target,
  list: Blocklist,
  registrableDomain: RegistrableDomain,
): Result<QueryForms, Skipped> => {
  const zone = zoneOf(list);
  if (zone === null) return skip("key_missing", `${list.name} can only be asked with a key.`);
  const { kind, value } = unmapped(target);
  if (!list.kinds.includes(kind)) return skip("kind_not_listed", `${list.name} has no entries of the kind ${kind}.`);
  const literal = literalName({ kind, value });
  if (literal === null) return skip("invalid_target", `"${value}" is not of the kind ${kind}.`);
  const prefixes = kind === "domain" ? domainForms(literal, list, registrableDomain) : [literal];
  if (prefixes.length === 0) return skip("no_registrable_domain", `"${value}" is not below a public suffix.`);
  const askable = prefixes.filter((prefix) => prefix.length + 1 + zone.length <= NAME_CHARACTERS_MAX);
  if (askable.length === 0)
    return skip("name_too_long", `The name to ask for would be longer than ${NAME_CHARACTERS_MAX} octets.`);
  return ok({ kind, prefixes: askable });
};

/**
 * A target in the form that stands before a zone, without any change of kind: also `::ffff:7f00:2` as nibbles, which
 * lists of IPv6 addresses keep as test point (RFC 5782 §5). Null when the text is not of its kind.
 */
export const literalName = ({ kind, value }: Target): string | null => {
  switch (kind) {
    case "ipv4":
      return ipv4Number(value) === null ? null : value.split(".").toReversed().join(".");
    case "ipv6":
      return ipv6Groups(value)?.join("").split("").toReversed().join(".") ?? null;
    case "domain":
      return domainName(value);
    default:
      return kind satisfies never;
  }
};

const skip = (kind: Skipped["kind"], problem: string) => err({ kind, problem });

/** Address lists keep IPv4 only under its own form, however a connection came (RFC 4291 §2.5.5.2). */
const unmapped = (target: Target): Target => {
  const groups = target.kind === "ipv6" ? ipv6Groups(target.value) : null;
  if (groups === null || groups.slice(0, 6).join("") !== "00000000000000000000ffff") return target;
  const octets = groups.slice(6).flatMap((group) => [group.slice(0, 2), group.slice(2)]);
  return { kind: "ipv4", value: octets.map((octet) => Number.parseInt(octet, 16)).join(".") };
};

/** Eight groups of four lower-case digits; null for what is no IPv6 address, a zone index included. */
const ipv6Groups = (value: string): readonly string[] | null => {
  if (isIP(value) !== 6 || value.includes("%")) return null;
  const [head = "", tail] = hexOnly(value).split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => "0");
  return [...left, ...zeros, ...right].map((group) => group.toLowerCase().padStart(4, "0"));
};

/** The same address with a dotted ending (RFC 4291 §2.2) written as two groups. */
const hexOnly = (value: string): string =>
  value.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...octets: string[]) => {
    const [a = 0, b = 0, c = 0, d = 0] = octets.slice(0, 4).map(Number);
    return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  });

/** A digits-only last label would be an address, of which a domain list must not be asked. */
const domainName = (value: string): string | null => {
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
