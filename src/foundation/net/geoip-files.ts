import { readFileSync, statSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { err, ok, type Result } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { type GeoipDatabase, type GeoipEntry, openGeoipDatabase } from "./geoip-database.ts";

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

const versionOf = ({ size, mtimeMs, ino }: FileState): string => `${ino} ${size} ${mtimeMs}`;

const MEBIBYTE = 1024 * 1024;

const tooLarge = ({ size }: FileState): string | null =>
  size > GEOIP_BYTES_MAX
    ? `it has ${Math.ceil(size / MEBIBYTE)} MiB; at most ${GEOIP_BYTES_MAX / MEBIBYTE} MiB can be read`
    : null;

const reasonOf = (error: unknown): string => {
  const code = error instanceof Error && "code" in error ? error.code : null;
  if (code === "ENOENT") return "no such file";
  if (code === "EACCES") return "permission denied";
  if (code === "EISDIR") return "it is a directory";
  return error instanceof Error ? error.message : String(error);
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
  readonly #files: readonly OpenFile[];
  readonly #log: Log;

  private constructor(files: readonly OpenFile[], log: Log) {
    this.#files = files;
    this.#log = log;
  }

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
    for (const file of this.#files) {
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
    for (const file of this.#files) {
      const problem = await this.#refreshFile(file);
      if (problem !== null && problem !== file.problem)
        this.#log.warn("a GeoIP database cannot be read again: the previous contents stay in use", {
          path: file.path,
          error: problem,
        });
      file.problem = problem;
    }
  }

  /** Findings for the operator: a sentence for each file whose contents are not those in memory. */
  findings(): string[] {
    return this.#files.flatMap(({ path, problem, hasFailed }) => {
      if (problem !== null) return [`POSTWARDEN_GEOIP_DB: ${path} cannot be read again: ${problem}.`];
      return hasFailed ? [`POSTWARDEN_GEOIP_DB: ${path} is damaged; replace it.`] : [];
    });
  }

  /** The files in their order: what they are, and when they were made. */
  contents(): ReadonlyArray<{ readonly path: string; readonly type: string; readonly builtAtMs: number }> {
    return this.#files.map(({ path, database: { type, builtAtMs } }) => ({ path, type, builtAtMs }));
  }

  #findIn(file: OpenFile, ip: string): GeoipEntry | null {
    try {
      return file.database.find(ip);
    } catch (error) {
      // A partly damaged file can be opened; for this address it has no data.
      if (!file.hasFailed) this.#log.error("a GeoIP database is damaged", { path: file.path, ip, error });
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
      this.#log.info("a GeoIP database was read again", { path: file.path, type, built_at_ms: builtAtMs });
      return null;
    } catch (error) {
      return reasonOf(error);
    }
  }
}
