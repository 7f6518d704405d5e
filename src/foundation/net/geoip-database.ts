import { isIP } from "node:net";
import { Reader } from "mmdb-lib";
import { err, ok, type Result } from "../base/errors.ts";
import { networkOf } from "../base/cidr.ts";
import { z } from "zod";
import { readAsName, readAsn, readCountry } from "./asn-lookup.ts";

/** What a database says about an address, and the network that it says it of. */
export interface GeoipEntry extends GeoipRecord {
  /** Null when the file says the same of all addresses. */
  readonly network: string | null;
}

/** A database in memory. */
export interface GeoipDatabase {
  /** As the file calls itself, such as `GeoLite2-ASN`. */
  readonly type: string;
  readonly builtAtMs: number;
  /** Null: the file says nothing about the address. Throws when the file is damaged there. */
  find(ip: string): GeoipEntry | null;
}

const METADATA_MARKER = Buffer.from("abcdef4d61784d696e642e636f6d", "hex");
/** MaxMind DB format 2.0: the metadata section is found in the last 128 KiB. */
const METADATA_BYTES_MAX = 128 * 1024;
const SEPARATOR_BYTES = 16;
const FORMAT_VERSION = 2;
const TYPE_CHARACTERS_MAX = 100;
/** Looked up when a file is opened, so that damage shows before the file is used. */
const SAMPLES = [
  "1.1.1.1",
  "8.8.8.8",
  "80.80.80.80",
  "151.101.1.1",
  "200.1.1.1",
  "2001:4860:4860::8888",
  "2a00:1450::1",
];

/** The tree and its separator must end before the metadata; in a truncated file with an old end they do not. */
const problemOf = ({ metadata }: Reader<object>, bytes: Buffer, markerAt: number): string | null => {
  const { binaryFormatMajorVersion: version, ipVersion, searchTreeSize, buildEpoch } = metadata;
  if (version !== FORMAT_VERSION)
    return `it has version ${String(version)} of the MaxMind DB format, not ${FORMAT_VERSION}`;
  if (ipVersion !== 4 && ipVersion !== 6) return "it says nothing of the IP version of its addresses";
  if (Number.isNaN(buildEpoch.getTime())) return "it does not say when it was made";
  const separator = bytes.subarray(searchTreeSize, searchTreeSize + SEPARATOR_BYTES);
  const isWhole = searchTreeSize + SEPARATOR_BYTES <= markerAt && separator.every((byte) => byte === 0);
  return isWhole ? null : "it is damaged: its parts are not where its metadata says";
};

/**
 * Opens a database in the MaxMind DB format (2.0), kept in memory as the bytes that are given. The error says in a clause what
 * is wrong with them.
 */
export const openGeoipDatabase = (bytes: Buffer): Result<GeoipDatabase, string> => {
  const tail = Math.max(0, bytes.length - METADATA_BYTES_MAX);
  const markerAt = bytes.subarray(tail).lastIndexOf(METADATA_MARKER);
  if (markerAt === -1) return err("it is not a database in the MaxMind DB format, or its end is missing");
  try {
    const reader = new Reader<object>(bytes);
    const problem = problemOf(reader, bytes, tail + markerAt);
    if (problem !== null) return err(problem);
    const { databaseType, buildEpoch, ipVersion } = reader.metadata;
    const find = (ip: string): GeoipEntry | null => {
      // The reader would look for the bits of an IPv6 address among those of IPv4 addresses.
      if (ipVersion === 4 && isIP(ip) === 6) return null;
      const [record, bits] = reader.getWithPrefixLength(ip);
      if (record === null) return null;
      return { ...readGeoipRecord(record), network: bits === 0 ? null : networkOf(ip, bits) };
    };
    for (const ip of SAMPLES) find(ip);
    return ok({ type: String(databaseType).slice(0, TYPE_CHARACTERS_MAX), builtAtMs: buildEpoch.getTime(), find });
  } catch (error) {
    // The reader meets bytes that are no database as all kinds of errors.
    return err(`it is damaged: ${error instanceof Error ? error.message : String(error)}`);
  }
};

/** What a record of a GeoIP database says about its network. */
interface GeoipRecord {
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

/** Reads a record of any of the usual schemas. Fields that are missing or have another form are null. */
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
