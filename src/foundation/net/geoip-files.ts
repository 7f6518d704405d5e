import { readFileSync, statSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { err, ok, type Result, errorCode, errorText } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { isIP } from "node:net";
import { Reader } from "mmdb-lib";
import { networkOf } from "../base/cidr.ts";
import { z } from "zod";
import { readAsName, readAsn, readCountry } from "./asn-lookup.ts";

/** What the configured databases contain about an address. */
export interface GeoipFacts {
  readonly asn: number | null;
  readonly asName: string | null;
  /** ISO 3166 alpha-2. */
  readonly country: string | null;
  /** The network of the AS, as the file that names it divides addresses; null when none does. */
  readonly prefix: string | null;
}

/** A file and its contents in memory. `version` changes with the contents. */
interface OpenFile {
  readonly path: string;
  database: GeoipDatabase;
  version: string;
  /** Why the contents of this version cannot be used; null when they are those in memory. */
  versionProblem: string | null;
  /** Why what is in memory is not what is in the file, as it was last found. */
  problem: string | null;
  /** Whether a look-up met damage. */
  hasFailed: boolean;
}

/** Bytes of a file: GeoLite2-City has 60 MB, IPinfo Lite 60 MB, DB-IP City Lite 130 MB. */
export const GEOIP_BYTES_MAX = 256 * 1024 * 1024;

interface FileState {
  readonly size: number;
  readonly mtimeMs: number;
  readonly ino: number;
}

const versionOf = ({ size, mtimeMs, ino }: FileState) => `${ino} ${size} ${mtimeMs}`;

const MEBIBYTE = 1024 * 1024;

const tooLarge = ({ size }: FileState): string | null =>
  size > GEOIP_BYTES_MAX
    ? `it has ${Math.ceil(size / MEBIBYTE)} MiB; at most ${GEOIP_BYTES_MAX / MEBIBYTE} MiB can be read`
    : null;

const reasonOf = (error: unknown) => {
  const code = errorCode(error);
  if (code === "ENOENT") return "no such file";
  if (code === "EACCES") return "permission denied";
  if (code === "EISDIR") return "it is a directory";
  return errorText(error);
};

const openFile = (path: string): Result<OpenFile, string> => {
  try {
    const state = statSync(path);
    const problem = tooLarge(state);
    if (problem !== null) return err(problem);
    const database = openGeoipDatabase(readFileSync(path));
    if (!database.ok) return database;
    const sound = { versionProblem: null, problem: null, hasFailed: false };
    return ok({ path, database: database.value, version: versionOf(state), ...sound });
  } catch (error) {
    return err(reasonOf(error));
  }
};

const none: GeoipFacts = { asn: null, asName: null, country: null, prefix: null };

/**
 * The user's GeoIP databases (`POSTWARDEN_GEOIP_DB`): read into memory at the start, and again when a file changes. The first
 * file that has the country of an address counts, and the first that has its AS.
 */
export class GeoipFiles {
  private constructor(
    private readonly files: readonly OpenFile[],
    private readonly log: Log,
  ) {}

  /** Reads all files. The error is one sentence for each that cannot be used. */
  static open(paths: readonly string[], log: Log): Result<GeoipFiles, readonly string[]> {
    const opened = paths.map((path) => ({ path, file: openFile(path) }));
    const problems = opened.flatMap(({ path, file }) => (file.ok ? [] : [`${path} cannot be used: ${file.error}.`]));
    if (problems.length > 0) return err(problems);
    return ok(
      new GeoipFiles(
        opened.flatMap(({ file }) => (file.ok ? [file.value] : [])),
        log,
      ),
    );
  }

  /** What the files say about a valid address; null for what they do not. Never throws. */
  find(ip: string): GeoipFacts {
    let facts = none;
    for (const file of this.files) {
      const entry = this.#findIn(file, ip);
      if (entry === null) continue;
      const { asn, asName, network } = entry;
      if (facts.asn === null && asn !== null) facts = { ...facts, asn, asName, prefix: network };
      if (facts.country === null) facts = { ...facts, country: entry.country };
    }
    return facts;
  }

  /** Reads the files that changed. One that cannot be used leaves what is in memory in its place, and is logged once. */
  async refresh(): Promise<void> {
    for (const file of this.files) {
      const problem = await this.#refreshFile(file);
      if (problem !== null && problem !== file.problem)
        this.log.warn("a GeoIP database cannot be read again: the previous contents stay in use", {
          path: file.path,
          error: problem,
        });
      file.problem = problem;
    }
  }

  /** Findings for the operator: a sentence for each file whose contents are not those in memory. */
  findings(): string[] {
    return this.files.flatMap(({ path, problem, hasFailed }) => {
      if (problem !== null) return [`POSTWARDEN_GEOIP_DB: ${path} cannot be read again: ${problem}.`];
      return hasFailed ? [`POSTWARDEN_GEOIP_DB: ${path} is damaged; replace it.`] : [];
    });
  }

  /** The files in their order: what they are, and when they were made. */
  contents(): ReadonlyArray<{ readonly path: string; readonly type: string; readonly builtAtMs: number }> {
    return this.files.map(({ path, database: { type, builtAtMs } }) => ({ path, type, builtAtMs }));
  }

  #findIn(file: OpenFile, ip: string): GeoipEntry | null {
    try {
      return file.database.find(ip);
    } catch (error) {
      // A partly damaged file can be opened; for this address it has no data.
      if (!file.hasFailed) this.log.error("a GeoIP database is damaged", { path: file.path, ip, error });
      file.hasFailed = true;
      return null;
    }
  }

  /** Why the file cannot be read again; null when what is in memory is what is in the file. */
  async #refreshFile(file: OpenFile): Promise<string | null> {
    try {
      const state = await stat(file.path);
      const version = versionOf(state);
      if (version === file.version) return file.versionProblem;
      const problem = tooLarge(state);
      const database = problem === null ? openGeoipDatabase(await readFile(file.path)) : err(problem);
      file.version = version;
      file.versionProblem = database.ok ? null : database.error;
      if (!database.ok) return database.error;
      file.database = database.value;
      file.hasFailed = false;
      const { type, builtAtMs } = database.value;
      this.log.info("a GeoIP database was read again", { path: file.path, type, built_at_ms: builtAtMs });
      return null;
    } catch (error) {
      return reasonOf(error);
    }
  }
}

/** What a database says about an address, and the network that it says it of. */
interface GeoipEntry extends GeoipRecord {
  /** Null when the file says the same of all addresses. */
  readonly network: string | null;
}

/** A database in memory. */
interface GeoipDatabase {
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
    return err(`it is damaged: ${errorText(error)}`);
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
