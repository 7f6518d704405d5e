import { isIP } from "node:net";
import { quoteText } from "./section-report.ts";

export type SpfQualifier = "+" | "-" | "~" | "?";
const MECHANISMS = ["all", "include", "a", "mx", "ptr", "ip4", "ip6", "exists"] as const;
type SpfMechanism = (typeof MECHANISMS)[number];

/** One term of an SPF record (RFC 7208 §4.6.1), in the order of the text. */
export type SpfTerm =
  | {
      readonly kind: "mechanism";
      /** As written. */
      readonly text: string;
      readonly qualifier: SpfQualifier;
      readonly mechanism: SpfMechanism;
      /** The domain-spec as written, macros included; null when the current domain is meant. */
      readonly domainSpec: string | null;
    }
  | { readonly kind: "modifier"; readonly text: string; readonly name: string; readonly value: string }
  /** What makes the whole record a permanent error (RFC 7208 §4.6). `problem` completes "The term … ". */
  | {
      readonly kind: "fault";
      readonly text: string;
      readonly code: "spf_syntax" | "spf_unknown_mechanism";
      readonly problem: string;
    };

type SpfFault = Extract<SpfTerm, { kind: "fault" }>;

/** More terms than this are not read: a TXT record of the largest size holds some 30,000 of them. */
const TERMS_MAX = 500;
const DOMAIN_CHARACTERS_MAX = 255;
const MACRO = "%\\{[slodiphvSLODIPHV][0-9]{0,3}[rR]?[.+,/_=-]*\\}|%%|%_|%-";
// input ≤ 65,535 characters
const MACRO_STRING = new RegExp(`^(?:${MACRO}|[!-$&-~])*$`);
const ENDS_IN_MACRO = new RegExp(`(?:${MACRO})$`); // input ≤ 65,535 characters

/** Whether a TXT record is an SPF record (RFC 7208 §4.5): the version, then a space or the end. */
export const isSpfText = (text: string): boolean => /^v=spf1(?: |$)/i.test(text);

/** Whether a text was probably meant as an SPF record but is not one. */
export const isAlmostSpfText = (text: string): boolean =>
  !isSpfText(text) && /^[\s"'“]*(?:v\s*=\s*spf\s*1?|spf1\b|spf2\.0)/i.test(text);

/** Whether a domain-spec contains a macro, so that its name depends on the message (RFC 7208 §7). */
export const hasMacro = (domainSpec: string): boolean => domainSpec.includes("%");

/** Reads the terms of an SPF record by the grammar of RFC 7208 §12. Never throws; what does not fit is a `fault`. */
export const parseSpfTerms = (text: string): readonly SpfTerm[] => {
  const terms = text.split(/ +/).slice(1, TERMS_MAX + 1);
  return repeatedOnce(terms.filter((term) => term !== "").map(readTerm));
};

/** RFC 7208 §6: `redirect` and `exp` may stand once each. */
const repeatedOnce = (terms: readonly SpfTerm[]): readonly SpfTerm[] => {
  const seen = new Set<string>();
  return terms.map((term) => {
    if (term.kind !== "modifier" || (term.name !== "redirect" && term.name !== "exp")) return term;
    if (seen.has(term.name)) return faultOf(term.text, `is a second ${term.name} modifier`);
    seen.add(term.name);
    return term;
  });
};

const faultOf = (text: string, problem: string, code: SpfFault["code"] = "spf_syntax"): SpfFault => ({
  kind: "fault",
  text,
  code,
  problem,
});

const readTerm = (text: string): SpfTerm => {
  const modifier = /^([a-z][a-z0-9_.-]{0,62})=(.*)$/i.exec(text);
  if (modifier !== null) return readModifier(text, (modifier[1] ?? "").toLowerCase(), modifier[2] ?? "");
  const mechanism = /^([+?~-]?)([a-z][a-z0-9_.-]*)([:/].*)?$/i.exec(text);
  if (mechanism === null) return faultOf(text, "is not a mechanism or modifier");
  const [, sign = "", written = "", rest = ""] = mechanism;
  const name = MECHANISMS.find((known) => known === written.toLowerCase());
  if (name === undefined) return faultOf(text, unknownProblem(text, written), "spf_unknown_mechanism");
  const problem = rest.length > DOMAIN_CHARACTERS_MAX ? "is too long" : ARGUMENTS[name](rest);
  if (typeof problem === "string") return faultOf(text, problem);
  const qualifier = sign === "" ? "+" : (sign as SpfQualifier);
  return { kind: "mechanism", text, qualifier, mechanism: name, domainSpec: problem.domainSpec };
};

const unknownProblem = (text: string, name: string): string => {
  if (isIP(text.replace(/\/\d+$/, "")) !== 0) return "is an address without ip4: or ip6: in front of it";
  if (/^ip$/i.test(name)) return "is not a mechanism: write ip4: or ip6:";
  return `has the unknown mechanism ${quoteText(name)}`;
};

const readModifier = (text: string, name: string, value: string): SpfTerm => {
  if (!MACRO_STRING.test(value)) return faultOf(text, "has an invalid value");
  if ((name === "redirect" || name === "exp") && !isDomainSpec(value))
    return faultOf(text, value === "" ? "names no domain" : `names ${quoteText(value)}, which is not a domain name`);
  return { kind: "modifier", text, name, value };
};

/** What follows a mechanism's name: the domain, or why it does not fit. */
type Argument = { readonly domainSpec: string | null } | string;

const NONE: Argument = { domainSpec: null };

const readDomain = (spec: string): Argument => {
  if (spec === "") return "names no domain";
  if (isIP(spec) !== 0) return "names an address where a domain belongs: use ip4: or ip6:";
  return isDomainSpec(spec) ? { domainSpec: spec } : `names ${quoteText(spec)}, which is not a domain name`;
};

const onlyDomain = (rest: string): Argument => (rest.startsWith(":") ? readDomain(rest.slice(1)) : "names no domain");

/** `[":" domain-spec] [dual-cidr-length]` */
const domainAndLength = (rest: string): Argument => {
  const match = /^(:.*?)?(?:\/(\d{1,3}))?(?:\/\/(\d{1,3}))?$/.exec(rest);
  if (match === null) return "has an invalid prefix length";
  const [, domain, ip4, ip6] = match;
  if (!isLength(ip4, 32) || !isLength(ip6, 128)) return "has an invalid prefix length";
  return domain === undefined ? NONE : readDomain(domain.slice(1));
};

const address =
  (family: 4 | 6, bitsMax: number) =>
  (rest: string): Argument => {
    const match = /^:([0-9a-f.:]+)(?:\/(\d{1,3}))?$/i.exec(rest);
    const text = match?.[1] ?? "";
    if (isIP(text) !== family) {
      return isIP(text) === 0
        ? `holds no IPv${family} address`
        : `holds an IPv${isIP(text)} address: use ip${isIP(text)}:`;
    }
    return isLength(match?.[2], bitsMax) ? NONE : "has an invalid prefix length";
  };

const ARGUMENTS: Readonly<Record<SpfMechanism, (rest: string) => Argument>> = {
  all: (rest) => (rest === "" ? NONE : "takes no argument"),
  include: onlyDomain,
  exists: onlyDomain,
  a: domainAndLength,
  mx: domainAndLength,
  ptr: (rest) => (rest === "" ? NONE : onlyDomain(rest)),
  ip4: address(4, 32),
  ip6: address(6, 128),
};

/** RFC 7208 §12: no leading zeros. */
const isLength = (digits: string | undefined, max: number): boolean =>
  digits === undefined || (/^(?:0|[1-9]\d*)$/.test(digits) && Number(digits) <= max);

/** A domain-spec (RFC 7208 §7.1): ends in a macro, or in a dot and a label that is not all digits. */
const isDomainSpec = (spec: string): boolean => {
  if (spec.length > DOMAIN_CHARACTERS_MAX || !MACRO_STRING.test(spec)) return false;
  if (ENDS_IN_MACRO.test(spec)) return true;
  const labels = spec.replace(/\.$/, "").split(".");
  const top = labels.at(-1) ?? "";
  return labels.length > 1 && !/^\d+$/.test(top) && /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/i.test(top);
};
