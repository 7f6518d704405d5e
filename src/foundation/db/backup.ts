import { Database as Sqlite, SQLiteError } from "bun:sqlite";
import { accessSync, constants, type StatsFs, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { err, ok, type Result, errorCode } from "../base/errors.ts";
import { createExclusively } from "../base/private-file.ts";
import {
  checkChecksum,
  CHECKSUM_SUFFIX,
  nameIsTaken,
  partialNameOf,
  publishChecked,
  removeAbandonedPartialsOf,
  removePartial,
  syncFile,
} from "./partial-file.ts";
import { APPLICATION_ID, schemaVersion } from "./migrate.ts";

/** Why a file is not a database that this version can use. */
export type DatabaseFileProblem =
  | { readonly kind: "not_a_file" }
  | { readonly kind: "not_a_database"; readonly detail: string }
  | { readonly kind: "foreign_database" }
  | { readonly kind: "damaged"; readonly detail: string }
  /** The file does not match its checksum, or the file of the checksum holds none. */
  | { readonly kind: "checksum"; readonly isReadable: boolean }
  | { readonly kind: "newer_database"; readonly has: number; readonly knows: number };

/** Why no copy of a database was made. */
export type CopyProblem =
  | { readonly kind: "exists"; readonly path: string }
  | { readonly kind: "no_room"; readonly needsBytes: number; readonly freeBytes: number }
  /** The database to copy is the problem. */
  | { readonly kind: "source"; readonly problem: DatabaseFileProblem }
  /** The copy was not what had been written. */
  | { readonly kind: "copy_damaged"; readonly detail: string };

/** A verified copy of the database. */
export interface VerifiedCopy {
  readonly bytes: number;
  /** How many migrations it has. */
  readonly schema: number;
}

const BUSY_TIMEOUT_MS = 30_000;
/** A copy never takes the last of the disk, which the service may need. */
const RESERVE_BYTES = 64 * 1024 * 1024;
/** What belongs to a database and would be read with it. */
export const COMPANION_SUFFIXES = ["-wal", "-shm", "-journal"] as const;

export const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

/** A sentence for each problem of the database in `file`. */
export const describeDatabaseFileProblem = (file: string, problem: DatabaseFileProblem): string => {
  switch (problem.kind) {
    case "not_a_file":
      return `${file} is not a regular file.`;
    case "not_a_database":
      return `${file} is not a SQLite database (${problem.detail}).`;
    case "foreign_database":
      return `${file} is a SQLite database, but not one of Postwarden's.`;
    case "damaged":
      return `${file} is damaged: ${problem.detail}. Use another backup.`;
    case "checksum":
      return problem.isReadable
        ? `${file} was changed after it was written: it does not match ${file}${CHECKSUM_SUFFIX}. Use another backup.`
        : `${file}${CHECKSUM_SUFFIX} holds no SHA-256 checksum. Write it again with sha256sum, or remove it to restore without this check.`;
    case "newer_database":
      return `${file} was made by a newer version: it has ${problem.has} migrations, this one knows ${problem.knows}. Install that version first.`;
    default:
      return problem satisfies never;
  }
};

/** A sentence for each reason why the database at `source` was not copied to `file`. */
export const describeCopyProblem = (source: string, file: string, problem: CopyProblem): string => {
  switch (problem.kind) {
    case "exists":
      return problem.path === file
        ? `${file} exists already. Backups never overwrite a file: choose another name.`
        : `${problem.path} exists, and SQLite would read it together with ${file}. Remove it or choose another name.`;
    case "no_room":
      return `Not enough disk space in ${dirname(file)}: ${megabytes(problem.needsBytes)} needed, ${megabytes(problem.freeBytes)} free. Free some space.`;
    case "source":
      return describeDatabaseFileProblem(source, problem.problem);
    case "copy_damaged":
      return `The copy in ${dirname(file)} was damaged when it was read back (${problem.detail}) and was removed. Check that disk.`;
    default:
      return problem satisfies never;
  }
};

const firstRow = (sqlite: Sqlite, pragma: string): unknown =>
  Object.values((sqlite.query(`PRAGMA ${pragma}`).get() as object | null) ?? {})[0];

/** The problem of a file that SQLite's error names; null for errors that are not about what is in the file. */
export const damageOf = (error: unknown): DatabaseFileProblem | null => {
  if (!(error instanceof SQLiteError)) return null;
  const code = errorCode(error);
  if (code.startsWith("SQLITE_CORRUPT")) return { kind: "damaged", detail: error.message };
  return code === "SQLITE_NOTADB" || code === "SQLITE_CANTOPEN"
    ? { kind: "not_a_database", detail: error.message }
    : null;
};

/** Runs `read` on a database file that is opened for reading only. */
const readDatabase = <T, E>(
  file: string,
  read: (sqlite: Sqlite) => Result<T, E>,
): Result<T, E | DatabaseFileProblem> => {
  // A FIFO would block for ever.
  if (!statSync(file).isFile()) return err({ kind: "not_a_file" });
  accessSync(file, constants.R_OK);
  let sqlite: Sqlite | null = null;
  try {
    sqlite = new Sqlite(file, { readonly: true });
    sqlite.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    if (firstRow(sqlite, "application_id") !== APPLICATION_ID) return err({ kind: "foreign_database" });
    return read(sqlite);
  } catch (error) {
    const problem = damageOf(error);
    if (problem === null) throw error;
    return err(problem);
  } finally {
    sqlite?.close();
  }
};

/**
 * Reads all of a database file: is it one of Postwarden's, is it undamaged (`PRAGMA integrity_check`), and can this
 * version read it (at most `schemaMax` migrations)?
 */
export const verifyCopy = (file: string, schemaMax: number): Result<VerifiedCopy, DatabaseFileProblem> =>
  readDatabase(file, (sqlite): Result<VerifiedCopy, DatabaseFileProblem> => {
    const detail = firstRow(sqlite, "integrity_check(1)");
    if (detail !== "ok") return err({ kind: "damaged", detail: String(detail) });
    const has = schemaVersion(sqlite);
    if (has > schemaMax) return err({ kind: "newer_database", has, knows: schemaMax });
    return ok({ bytes: statSync(file).size, schema: has });
  });

/** Whether a backup is what was written: null, or its problem. Without a checksum beside it, there is nothing to compare. */
export const checksumProblem = (file: string): DatabaseFileProblem | null => {
  const state = checkChecksum(file);
  return state === "matches" || state === "missing" ? null : { kind: "checksum", isReadable: state === "differs" };
};

/** How many bytes a copy of a database needs: its pages in use. */
const copyBytesOf = (sqlite: Sqlite): number =>
  (Number(firstRow(sqlite, "page_count")) - Number(firstRow(sqlite, "freelist_count"))) *
  Number(firstRow(sqlite, "page_size"));

/** Free space on a file system, less a reserve, in bytes; infinite where the file system does not say. */
export const roomOf = ({ bavail, blocks, bsize }: Pick<StatsFs, "bavail" | "blocks" | "bsize">): number =>
  blocks === 0 ? Number.POSITIVE_INFINITY : Math.max(0, bavail * bsize - RESERVE_BYTES);

/** The same for a file in `directory`. */
export const roomIn = (directory: string): number => roomOf(statfsSync(directory));

const vacuumInto = (sqlite: Sqlite, partial: string): Result<null, CopyProblem> => {
  const needsBytes = copyBytesOf(sqlite);
  const freeBytes = roomIn(dirname(partial));
  if (needsBytes > freeBytes) return err({ kind: "no_room", needsBytes, freeBytes });
  createExclusively(partial);
  try {
    sqlite.query("VACUUM INTO ?").run(partial);
  } catch (error) {
    if (errorCode(error) !== "SQLITE_FULL") throw error;
    return err({ kind: "no_room", needsBytes, freeBytes: roomIn(dirname(partial)) });
  }
  return ok(null);
};

/**
 * Writes the state of a database at one moment, with its write-ahead log, into the partial file of `file`, readable by its
 * owner only, verifies it and hands it to `complete`. The source can be in use, and is not changed. Nothing partial is left.
 */
export const copyDatabase = (
  source: string,
  file: string,
  complete: (partial: string) => Result<null, CopyProblem>,
): Result<VerifiedCopy, CopyProblem> => {
  const partial = partialNameOf(file);
  removeAbandonedPartialsOf(file);
  try {
    const copied = readDatabase(source, (sqlite) => vacuumInto(sqlite, partial));
    if (!copied.ok) return isCopyProblem(copied.error) ? err(copied.error) : sourceProblem(copied.error);
    syncFile(partial);
    const verified = verifyCopy(partial, Number.POSITIVE_INFINITY);
    if (!verified.ok)
      return err({ kind: "copy_damaged", detail: describeDatabaseFileProblem(partial, verified.error) });
    const completed = complete(partial);
    return completed.ok ? verified : completed;
  } finally {
    removePartial(file);
  }
};

const isCopyProblem = (problem: CopyProblem | DatabaseFileProblem): problem is CopyProblem =>
  problem.kind === "no_room" ||
  problem.kind === "exists" ||
  problem.kind === "copy_damaged" ||
  problem.kind === "source";

const sourceProblem = (problem: DatabaseFileProblem): Result<never, CopyProblem> => err({ kind: "source", problem });

/**
 * Copies the database at `source` to `file` while others read and write it (`VACUUM INTO`: the state at one moment),
 * verifies the copy, writes its checksum beside it, and only then gives it its name. Never overwrites a file and never leaves half of one under that
 * name. Blocks the calling thread. Throws what SQLite and the file system throw.
 */
export const writeBackup = (source: string, file: string): Result<VerifiedCopy, CopyProblem> => {
  const taken = ["", ...COMPANION_SUFFIXES].map((suffix) => file + suffix).find(nameIsTaken);
  if (taken !== undefined) return err({ kind: "exists", path: taken });
  return copyDatabase(source, file, (partial) =>
    publishChecked(partial, file) ? ok(null) : err({ kind: "exists", path: file }),
  );
};
