import { Database as Sqlite } from "bun:sqlite";
import { statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { type BunSQLiteDatabase, drizzle } from "drizzle-orm/bun-sqlite";
import { err, ok, type Result } from "../base/errors.ts";
import { type DiskSpace, diskSpaceOf } from "./disk-space.ts";
import { createGroupCommit } from "./group-commit.ts";
import { keepDatabasePrivate } from "./private-database.ts";
import { type MigrateProblem, migrate } from "./migrate.ts";
import { MIGRATIONS } from "./migrations.ts";
import * as schema from "./schema.ts";

/** Proof of being inside a transaction: what changes the database takes one as its first argument. */
declare const inTransaction: unique symbol;
export interface Tx {
  readonly [inTransaction]: true;
}

export interface Db {
  /** For the stores, which prepare their statements with it. */
  readonly orm: BunSQLiteDatabase<typeof schema>;
  /** Runs synchronous work in one immediate transaction: all of it or, when it throws, nothing. */
  transact<T>(work: (tx: Tx) => T): T;
  /**
   * Like `transact`, without waiting for the disk: a power cut may undo it until the next `commit` or `transact` has come back,
   * which makes it durable too (SQLite's WAL is synced as a whole). For what exists for nobody before that.
   */
  transactUnsynced<T>(work: (tx: Tx) => T): T;
  /**
   * Runs synchronous work that only reads, on one state of the database: what another process commits meanwhile is not
   * seen. For everything that reads several statements which must agree.
   */
  snapshot<T>(work: () => T): T;
  /**
   * Like `transact`, together with everything else that is waiting to be written: one transaction and one flush to
   * disk for all. Resolves when the work is durable; rejects, with only this work undone, when it throws. While another
   * process holds the database the work may run again, so it does nothing but read and write the database. What a client
   * is refused is returned (`orRefusal`), not thrown.
   */
  commit<T>(work: (tx: Tx) => T): Promise<T>;
  /** The first thing that SQLite finds wrong with the file, or null. Reads all of it. */
  damage(): string | null;
  /** Whether the file takes a write at this moment (disk full, read-only, locked), and is still the one at its path. */
  isWritable(): boolean;
  /** The space that there is for it; null for a database in memory. */
  diskSpace(): DiskSpace | null;
  readonly sqlite: Sqlite;
  close(): void;
}

/** How long a command waits for another process that holds the database. It stands still meanwhile. */
const BUSY_TIMEOUT_MS = 5_000;
/** A server must not stand still: `commit` comes back by itself. */
export const SERVER_BUSY_TIMEOUT_MS = 10;
const CACHE_KIB = 16 * 1024;
/** With less free space than this a database counts as not writable: the next checkpoint may need it. */
const FREE_BYTES_MIN = 1024 * 1024;

/** How far apart the database's state and the disk may be: `FULL` syncs at every commit, so a 202 outlives a power cut. */
const PRAGMAS = [
  "PRAGMA journal_mode = WAL",
  "PRAGMA synchronous = FULL",
  "PRAGMA foreign_keys = ON",
  "PRAGMA temp_store = MEMORY",
  `PRAGMA cache_size = -${CACHE_KIB}`,
  "PRAGMA journal_size_limit = 67108864",
];

const tx = {} as Tx;

/**
 * Opens (and makes, unless told otherwise) the database at `path`, or one in memory for `:memory:`, and migrates it.
 * Nobody but the owner can read the file afterwards, whatever the umask. Throws what SQLite or the file system throws when
 * it cannot be opened or is no database.
 */
export const openDb = (path: string, busyTimeoutMs = BUSY_TIMEOUT_MS): Result<Db, MigrateProblem> => {
  keepDatabasePrivate(path);
  const sqlite = new Sqlite(path, { create: true, readwrite: true, strict: true });
  sqlite.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  for (const pragma of PRAGMAS) sqlite.run(pragma);
  const migrated = migrate(sqlite, MIGRATIONS);
  if (!migrated.ok) {
    sqlite.close();
    return err(migrated.error);
  }
  sqlite.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
  const immediate = sqlite.transaction((work: (tx: Tx) => unknown) => work(tx));
  const deferred = sqlite.transaction((work: () => unknown) => work());
  const group = createGroupCommit(sqlite);
  const identity = identityOf(path);
  return ok({
    orm: drizzle({ client: sqlite, schema }),
    transact: <T>(work: (tx: Tx) => T) => immediate.immediate(work) as T,
    transactUnsynced<T>(work: (tx: Tx) => T) {
      sqlite.run("PRAGMA synchronous = NORMAL");
      try {
        return immediate.immediate(work) as T;
      } finally {
        sqlite.run("PRAGMA synchronous = FULL");
      }
    },
    snapshot: <T>(work: () => T) => deferred.deferred(work) as T,
    commit: (work) => group.enqueue(() => work(tx)),
    damage: () => findDamage(sqlite),
    diskSpace: () => diskSpaceOf(path, sqlite),
    isWritable: () => isFile(path, identity) && hasSpace(path) && takesWrite(sqlite),
    sqlite,
    close() {
      group.close();
      sqlite.close();
    },
  });
};

const findDamage = (sqlite: Sqlite): string | null => {
  try {
    const row = sqlite.query("PRAGMA quick_check(1)").get() as { quick_check?: string } | null;
    return row?.quick_check === "ok" ? null : (row?.quick_check ?? "no answer");
  } catch (error) {
    if (error instanceof Error && "code" in error) return error.message;
    throw error;
  }
};

/** Device and inode of a file; null for a database in memory and for a file that is not there. */
const identityOf = (path: string): string | null => {
  const stat = path === ":memory:" ? undefined : statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? null : `${stat.dev}:${stat.ino}`;
};

/** A file that was moved away or replaced takes writes that nobody will find again. */
const isFile = (path: string, identity: string | null): boolean => identityOf(path) === identity;

const hasSpace = (path: string): boolean => {
  if (path === ":memory:") return true;
  const { bavail, bsize } = statfsSync(dirname(path));
  return bavail * bsize >= FREE_BYTES_MIN;
};

const takesWrite = (sqlite: Sqlite): boolean => {
  try {
    sqlite.transaction(() => sqlite.run(`PRAGMA user_version = ${MIGRATIONS.length}`)).immediate();
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error) return false;
    throw error;
  }
};
