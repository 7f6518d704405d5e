import { Database as Sqlite, SQLiteError } from "bun:sqlite";
import { statSync } from "node:fs";
import { ok, type Result } from "../base/errors.ts";
import { isBusy } from "./group-commit.ts";
import { findDamage, hasFreeSpace } from "./open.ts";
import { type MigrateProblem, readVersion } from "./migrate.ts";
import { MIGRATIONS } from "./migrations.ts";

/** The state of a database file. */
interface DatabaseState {
  /** Migrations that this binary would still apply. */
  readonly pendingMigrations: number;
  /** The first problem that SQLite finds; null when there is none, or when the file was too large to read. */
  readonly damage: string | null;
  /** False when the file was too large to be read as a whole. */
  readonly isChecked: boolean;
  readonly isWritable: boolean;
}

/** A larger file would keep the caller waiting: reading it blocks the process. */
const CHECKED_BYTES_MAX = 256 * 1024 ** 2;
/** The same inside the service, whose requests would wait: a few milliseconds. */
export const SERVICE_CHECKED_BYTES_MAX = 8 * 1024 ** 2;
const BUSY_TIMEOUT_MS = 2_000;

/**
 * Inspects an existing database without migrating or changing it, also while a server uses it. Throws the errors of
 * SQLite and the file system for a file that cannot be opened.
 */
export const inspectDatabase = (
  path: string,
  checkedBytesMax = CHECKED_BYTES_MAX,
): Result<DatabaseState, MigrateProblem> => {
  const sqlite = new Sqlite(path, { readwrite: true, create: false, strict: true });
  try {
    sqlite.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    const version = readVersion(sqlite, MIGRATIONS.length);
    if (!version.ok) return version;
    const isChecked = statSync(path).size <= checkedBytesMax;
    return ok({
      pendingMigrations: MIGRATIONS.length - version.value,
      damage: isChecked ? findDamage(sqlite) : null,
      isChecked,
      isWritable: hasFreeSpace(path) && canWrite(sqlite, version.value),
    });
  } finally {
    sqlite.close();
  }
};

/** Writes what is there already. A database that another process is writing to is writable. */
const canWrite = (sqlite: Sqlite, version: number) => {
  try {
    sqlite.transaction(() => sqlite.run(`PRAGMA user_version = ${version}`)).immediate();
    return true;
  } catch (error) {
    if (error instanceof SQLiteError) return isBusy(error);
    throw error;
  }
};
