import { z } from "zod";
import { readAsName, readAsn, readCountry } from "./asn-lookup.ts";

/** What a record of a GeoIP database says about its network. */
export interface GeoipRecord {
  readonly asn: number | null;
  readonly asName: string | null;
  /** ISO 3166 alpha-2. */
  readonly country: string | null;
}

const text = z.string().max(1_000).optional().catch(undefined);
const place = z.object({ iso_code: text }).optional().catch(undefined);
const asNumber = z
  .union([z.number(), z.string().max(20)])
  .optional()
  .catch(undefined);
const system = { autonomous_system_number: asNumber, autonomous_system_organization: text };

/**
 * The fields of the usual databases; all others are ignored.
 *
 * - GeoLite2 and GeoIP2 ASN and ISP, DB-IP ASN: `autonomous_system_number`, `autonomous_system_organization`; Enterprise has
 *   them under `traits`.
 * - GeoLite2 and GeoIP2 Country and City, DB-IP Country and City: `country.iso_code`, `registered_country.iso_code`.
 * - IPinfo Lite: `asn` ("AS64500"), `as_name`, `country_code`, while `country` is the country's name.
 * - IPinfo Country + ASN: `asn`, `as_name`, `country` (the code). IPinfo ASN: `asn`, `name`.
 */
const recordSchema = z.object({
  ...system,
  traits: z.object(system).optional().catch(undefined),
  country: z
    .union([z.object({ iso_code: text }), z.string().max(200)])
    .optional()
    .catch(undefined),
  registered_country: place,
  country_code: text,
  asn: asNumber,
  as_name: text,
  name: text,
});

const NOTHING: GeoipRecord = { asn: null, asName: null, country: null };

/** Reads a record of any of the usual schemas. What it does not say, or says in another form, is null. */
export const readGeoipRecord = (value: unknown): GeoipRecord => {
  const read = recordSchema.safeParse(value);
  if (!read.success) return NOTHING;
  const { traits, country, registered_country: registered, ...record } = read.data;
  const number = record.autonomous_system_number ?? traits?.autonomous_system_number ?? record.asn;
  const asn = number === undefined ? null : readAsn(String(number));
  const name =
    record.autonomous_system_organization ??
    traits?.autonomous_system_organization ??
    record.as_name ??
    // `name` is the holder of the AS only where the record is about one.
    (record.asn === undefined ? undefined : record.name);
  const code =
    record.country_code ?? (typeof country === "string" ? country : country?.iso_code) ?? registered?.iso_code;
  return {
    asn,
    asName: asn === null || name === undefined ? null : readAsName(name),
    country: code === undefined ? null : readCountry(code),
  };
};
