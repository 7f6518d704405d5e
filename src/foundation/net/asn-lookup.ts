import { isIP } from "node:net";
import { isInNetworks, networkOf, parseCidr, parseIp } from "../base/cidr.ts";
import { err, ok, type Result } from "../base/errors.ts";
import { type DnsOutcome, type DnsResolver, isDefinite, type ResolveOptions } from "./dns.ts";
import { reverseLabels } from "./dns-name.ts";

/** The network that announces an address, according to Team Cymru's IP to ASN service. */
interface AddressOrigin {
  readonly asn: number;
  /** ISO 3166 alpha-2; null when the registry names none. It is where the network is registered, not where the host is located. */
  readonly country: string | null;
  /** The announced prefix that holds the address, such as `192.0.2.0/24`. */
  readonly prefix: string;
}

const ASN_MAX = 4_294_967_295;
/** Lines read of one response, and characters read of a line. */
const LINES_MAX = 64;
const LINE_CHARACTERS_MAX = 2_000;
const AS_NAME_CHARACTERS_MAX = 120;
/** Codes that registries and databases use without meaning a country. */
const NO_COUNTRIES: ReadonlySet<string> = new Set(["AP", "EU", "UN", "XX", "ZZ"]);
/** Namibia's code, which also stands for "not available": only this registry has Namibian networks. */
const NAMIBIA = "NA";
const NAMIBIAS_REGISTRY = "afrinic";

/** The name whose TXT records say which network announces an address. Takes valid addresses only. */
export const originQueryName = (ip: string): string =>
  `${reverseLabels(ip)}.${isIP(ip) === 4 ? "origin" : "origin6"}.asn.cymru.com`;

/** The name whose TXT record has the owner of an AS number. */
export const asQueryName = (asn: number): string => `AS${asn}.asn.cymru.com`;

/** An upper-case ISO 3166 alpha-2 code; null for anything that does not mean a country. */
export const readCountry = (text: string): string | null => {
  const code = text.trim().toUpperCase();
  return /^[A-Z]{2}$/.test(code) && !NO_COUNTRIES.has(code) ? code : null;
};

/** The name of an AS as one line of at most 120 characters; null when nothing is left. */
export const readAsName = (text: string): string | null => {
  // Control, format and surrogate characters could disguise a name.
  const name = text.replace(/[\p{C}\s]+/gu, " ").trim();
  return [...name].slice(0, AS_NAME_CHARACTERS_MAX).join("").trim() || null;
};

/** An AS number as `15169` or `AS15169`; null for anything else, 0 included (RFC 7607). */
export const readAsn = (text: string): number | null => {
  const digits = /^(?:AS)?(?<digits>\d{1,10})$/i.exec(text)?.groups?.digits;
  const asn = Number(digits ?? 0);
  return asn >= 1 && asn <= ASN_MAX ? asn : null;
};

/** The fields of a line; some resolvers pass the quotes of the zone file on. */
const fieldsOf = (line: string): string[] =>
  line
    .slice(0, LINE_CHARACTERS_MAX)
    // input ≤ 2,000 characters
    .replace(/^[\s"]+|[\s"]+$/g, "")
    .split("|")
    .map((field) => field.trim());

const countryOf = (code: string, registry: string) =>
  code.toUpperCase() === NAMIBIA && registry.toLowerCase() !== NAMIBIAS_REGISTRY ? null : readCountry(code);

interface OriginLine {
  readonly asn: number;
  readonly bits: number;
  readonly country: string | null;
}

/** One line, `AS AS … | prefix | country | registry | date`; null when it does not say who announces this address. */
const readOriginLine = (ip: string, line: string): OriginLine | null => {
  const [numbers = "", prefix = "", country = "", registry = ""] = fieldsOf(line);
  const asns = numbers
    .split(/[\s,{}]+/)
    .filter((text) => text !== "")
    .map(readAsn);
  const [first = null] = asns;
  if (first === null || !asns.every((asn) => asn !== null) || !prefix.includes("/")) return null;
  const network = parseCidr(prefix);
  if (!network.ok || network.value.prefixBits === 0) return null;
  if (!isInNetworks([network.value], parseIp(ip))) return null;
  return { asn: Math.min(...asns), bits: network.value.prefixBits, country: countryOf(country, registry) };
};

/**
 * Reads the TXT records of an origin name. There are several when several prefixes hold the address, and several numbers in
 * one when several networks announce it. The most specific prefix counts, because routers prefer it; of several networks that
 * announce it, the one with the lowest number, because records come in any order and the result must not depend on it.
 *
 * Null when no record can be read or none is about this address: that is a failure, not "announced by nobody".
 */
export const parseOrigin = (ip: string, records: readonly string[]): AddressOrigin | null => {
  const lines = records
    .slice(0, LINES_MAX)
    .map((record) => readOriginLine(ip, record))
    .filter((line) => line !== null)
    .toSorted((a, b) => b.bits - a.bits || a.asn - b.asn || (a.country ?? "~").localeCompare(b.country ?? "~"));
  const [best] = lines;
  return best === undefined ? null : { asn: best.asn, country: best.country, prefix: networkOf(ip, best.bits) };
};

/**
 * Reads the TXT record of an AS: `AS | country | registry | date | NAME, CC`. The name comes without the country at its end,
 * and is null where the record has none. Null in place of all when no record is about this AS.
 */
export const parseAsName = (asn: number, records: readonly string[]): { readonly name: string | null } | null => {
  for (const record of records.slice(0, LINES_MAX)) {
    const [number = "", , , , ...rest] = fieldsOf(record);
    if (readAsn(number) === asn) return { name: readAsName(rest.join(" | ").replace(/,\s*[A-Z]{2}$/, "")) };
  }
  return null;
};

/**
 * Looks up in Team Cymru's IP to ASN service (DNS) which network announces an address. Null: the address is in no announced prefix.
 * A DNS failure is an error, and so is a response that is not about the address (`malformed`).
 */
export const lookUpOrigin = async (
  resolver: DnsResolver,
  ip: string,
  options: ResolveOptions,
): Promise<Result<AddressOrigin | null, DnsOutcome>> => {
  const { outcome, records } = await resolver.resolve(originQueryName(ip), "TXT", options);
  if (!isDefinite(outcome)) return err(outcome);
  if (outcome !== "response") return ok(null);
  const origin = parseOrigin(ip, records);
  return origin === null ? err("malformed") : ok(origin);
};

/** Looks up the name of an AS in the same service. Null: it has none. Errors are those of `lookUpOrigin`. */
export const lookUpAsName = async (
  resolver: DnsResolver,
  asn: number,
  options: ResolveOptions,
): Promise<Result<string | null, DnsOutcome>> => {
  const { outcome, records } = await resolver.resolve(asQueryName(asn), "TXT", options);
  if (!isDefinite(outcome)) return err(outcome);
  if (outcome !== "response") return ok(null);
  const found = parseAsName(asn, records);
  return found === null ? err("malformed") : ok(found.name);
};
