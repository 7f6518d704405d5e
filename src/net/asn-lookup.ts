import { err, ok, type Result } from "../base/errors.ts";
import { type AddressOrigin, asQueryName, originQueryName, parseAsName, parseOrigin } from "./asn-text.ts";
import { type DnsOutcome, type DnsResolver, isDefinite, type ResolveOptions } from "./dns.ts";

/**
 * Asks Team Cymru's IP to ASN service by DNS which network announces an address. Null: the address is in no announced prefix.
 * A DNS failure is an error, and so is an answer that says nothing about the address (`malformed`).
 */
export const lookUpOrigin = async (
  resolver: DnsResolver,
  ip: string,
  options: ResolveOptions,
): Promise<Result<AddressOrigin | null, DnsOutcome>> => {
  const { outcome, records } = await resolver.resolve(originQueryName(ip), "TXT", options);
  if (!isDefinite(outcome)) return err(outcome);
  if (outcome !== "answer") return ok(null);
  const origin = parseOrigin(ip, records);
  return origin === null ? err("malformed") : ok(origin);
};

/** Asks the same service for the name of an AS. Null: it has none. Errors are those of `lookUpOrigin`. */
export const lookUpAsName = async (
  resolver: DnsResolver,
  asn: number,
  options: ResolveOptions,
): Promise<Result<string | null, DnsOutcome>> => {
  const { outcome, records } = await resolver.resolve(asQueryName(asn), "TXT", options);
  if (!isDefinite(outcome)) return err(outcome);
  if (outcome !== "answer") return ok(null);
  const found = parseAsName(asn, records);
  return found === null ? err("malformed") : ok(found.name);
};
