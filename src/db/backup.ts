import { Database as Sqlite } from "bun:sqlite";
import {
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { dirname } from "node:path";
import { err, ok, type Result } from "../base/errors.ts";
import { createPrivateFile } from "../base/private-file.ts";
import { APPLICATION_ID, schemaVersion } from "./migrate.ts";

/** Why a file cannot be used as a backup, or why none was made. */
export type BackupProblem =
  | { readonly kind: "exists" }
  | { readonly kind: "not_a_database"; readonly detail: string }
  | { readonly kind: "foreign_database" }
  | { readonly kind: "damaged"; readonly detail: string }
  | { readonly kind: "newer_database"; readonly has: number; readonly knows: number };

/** A verified copy of the database. */
export interface VerifiedCopy {
  readonly bytes: number;
  /** How many migrations it has. */
  readonly schema: number;
}

const BUSY_TIMEOUT_MS = 30_000;
const PARTIAL = ".partial";

/** A sentence for each problem; `file` is the backup. */
export const describeBackupProblem = (file: string, problem: BackupProblem): string => {
  switch (problem.kind) {
    case "exists":
      return `${file} exists already. Backups never overwrite a file: choose another name.`;
    case "not_a_database":
      return `${file} is not a SQLite database (${problem.detail}).`;
    case "foreign_database":
      return `${file} is a SQLite database, but not one of Postwarden's.`;
    case "damaged":
      return `${file} is damaged: ${problem.detail}. Use another backup.`;
    case "newer_database":
      return `${file} was made by a newer version: it has ${problem.has} migrations, this one knows ${problem.knows}. Install that version first.`;
    default:
      return problem satisfies never;
  }
};

/** Makes a file, or the names in a directory, survive a power failure. */
const sync = (path: string): void => {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
};

const firstRow = (sqlite: Sqlite, pragma: string): unknown =>
  Object.values((sqlite.query(`PRAGMA ${pragma}`).get() as object | null) ?? {})[0];

/**
 * Reads all of a database file: is it one of Postwarden's, is it undamaged (`PRAGMA integrity_check`), and can this
 * version read it (at most `schemaMax` migrations)?
 */
export const verifyCopy = (file: string, schemaMax: number): Result<VerifiedCopy, BackupProblem> => {
  let sqlite: Sqlite | null = null;
  try {
    sqlite = new Sqlite(file, { readonly: true });
    if (firstRow(sqlite, "application_id") !== APPLICATION_ID) return err({ kind: "foreign_database" });
    const detail = firstRow(sqlite, "integrity_check(1)");
    if (detail !== "ok") return err({ kind: "damaged", detail: String(detail) });
    const has = schemaVersion(sqlite);
    if (has > schemaMax) return err({ kind: "newer_database", has, knows: schemaMax });
    return ok({ bytes: statSync(file).size, schema: has });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.name === "SQLiteError")
      return err(
        error.code === "SQLITE_CORRUPT"
          ? { kind: "damaged", detail: error.message }
          : { kind: "not_a_database", detail: error.message },
      );
    throw error;
  } finally {
    sqlite?.close();
  }
};

/**
 * Writes the state of a database at one moment, with its write-ahead log, into `partial`, readable by its owner only, and
 * verifies it. The source can be in use, and is not changed.
 */
const copyDatabase = (source: string, partial: string, schemaMax: number): Result<VerifiedCopy, BackupProblem> => {
  rmSync(partial, { force: true });
  createPrivateFile(partial);
  const sqlite = new Sqlite(source, { readonly: true });
  try {
    sqlite.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    sqlite.query("VACUUM INTO ?").run(partial);
  } finally {
    sqlite.close();
  }
  sync(partial);
  return verifyCopy(partial, schemaMax);
};

/**
 * Copies the database at `source` to `file` while others read and write it (`VACUUM INTO`: the state at one moment),
 * verifies the copy, and only then gives it its name. Never overwrites a file and never
 * leaves half of one under that name. Blocks the calling thread. Throws what SQLite and the file system throw.
 */
export const writeBackup = (source: string, file: string, schemaMax: number): Result<VerifiedCopy, BackupProblem> => {
  if (existsSync(file)) return err({ kind: "exists" });
  const partial = file + PARTIAL;
  try {
    const verified = copyDatabase(source, partial, schemaMax);
    if (!verified.ok) return verified;
    // A link, unlike a rename, fails if somebody has created the file meanwhile.
    linkSync(partial, file);
    sync(dirname(file));
    return verified;
  } finally {
    rmSync(partial, { force: true });
  }
};

/** Where `restoreBackup` put the former database, and what it restored. */
export interface Restored extends VerifiedCopy {
  /** Null if there was none. */
  readonly kept: string | null;
}

/**
 * Replaces the database at `path` by a copy of `file`. The caller holds the server lock. The former database stays
 * beside it, under `keptAs`, with its write-ahead log. A crash at any point leaves either the old or the new database at
 * `path`, never one with the log of the other.
 */
export const restoreBackup = (
  file: string,
  { path, keptAs, schemaMax }: { readonly path: string; readonly keptAs: string; readonly schemaMax: number },
): Result<Restored, BackupProblem> => {
  const verified = verifyCopy(file, schemaMax);
  if (!verified.ok) return verified;
  const partial = path + PARTIAL;
  const copied = copyDatabase(file, partial, schemaMax);
  if (!copied.ok) return copied;
  const isReplaced = existsSync(path);
  if (isReplaced) {
    // First, as a copy: SQLite deletes a log that it cannot read.
    if (existsSync(`${path}-wal`)) copyFileSync(`${path}-wal`, `${keptAs}-wal`);
    if (emptyLog(path)) rmSync(`${keptAs}-wal`, { force: true });
    linkSync(path, keptAs);
  }
  for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix, { force: true });
  sync(dirname(path));
  renameSync(partial, path);
  sync(dirname(path));
  return ok({ ...copied.value, kept: isReplaced ? keptAs : null });
};

/** Moves the write-ahead log into the database, if it can be read: true if the file alone is the whole database now. */
const emptyLog = (path: string): boolean => {
  try {
    const sqlite = new Sqlite(path, { readwrite: true, create: false });
    try {
      return firstRow(sqlite, "wal_checkpoint(TRUNCATE)") === 0;
    } finally {
      sqlite.close();
    }
  } catch (error) {
    // A damaged database is the reason for most restores. It is kept with its log, as it is.
    if (error instanceof Error && error.name === "SQLiteError") return false;
    throw error;
  }
};
