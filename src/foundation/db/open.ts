import { Database as Sqlite, SQLiteError } from "bun:sqlite";
import { fsync, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { type BunSQLiteDatabase, drizzle } from "drizzle-orm/bun-sqlite";
import { systemClock } from "../base/clock.ts";
import { err, ok, type Result } from "../base/errors.ts";
import { once } from "../base/load-once.ts";
import { Checkpoints, LOG_BYTES_MIN } from "./checkpoints.ts";
import { type DiskSpace, diskSpaceOf, keepDatabasePrivate, SecondDescriptor } from "./database-files.ts";
import { CommittedFacts, type Fact } from "./facts.ts";
import { GroupCommit } from "./group-commit.ts";
import type { MigrateProblem } from "./migrate.ts";
import { type Migrated, migrateFile } from "./migrate-file.ts";
import { MIGRATIONS } from "./migrations.ts";
import { createDatabaseFile, NEWLY_MIGRATED, newDatabase } from "./new-database.ts";
import { type RecordedAct, RecordedActs } from "./recorded-acts.ts";
import * as schema from "./schema.ts";

/** Proof of a transaction: functions that change the database take one as their first argument. */
declare const inTransaction: unique symbol;
export interface Tx {
  readonly [inTransaction]: true;
}

export interface Db {
  /** For the stores, to prepare statements. */
  readonly orm: BunSQLiteDatabase<typeof schema>;
  /** The file; `:memory:` for a database in memory. */
  readonly path: string;
  /** What opening it migrated. */
  readonly migrated: Migrated;
  /** Runs synchronous work in one immediate transaction; rolls back when it throws. */
  transact<T>(work: (tx: Tx) => T): T;
  /**
   * Like `transact`, without syncing: a power failure may undo it until the next `commit` or `transact`, which makes it
   * durable, too (SQLite syncs the WAL as a whole). For rows that are not visible before that.
   */
  transactUnsynced<T>(work: (tx: Tx) => T): T;
  /**
   * Runs synchronous reads on one snapshot of the database, so that several statements are consistent.
   */
  snapshot<T>(work: () => T): T;
  /**
   * Like `transact`, in one transaction and one sync together with the other pending writes. Resolves when the work is
   * durable; rejects, with only this work undone, when it throws. The work may run again while another process holds the
   * database, so it must only read and write the database. Return refusals (`orRefusal`) instead of throwing them.
   */
  commit<T>(work: (tx: Tx) => T): Promise<T>;
  /**
   * Returns a `commit` for writes of one kind: those that follow each other in a transaction are made by one call of `work`,
   * which returns what each item came to, in their order. When it throws, each item is written alone, so that only those that
   * throw then are rejected.
   */
  commitsOf<I, T>(work: (tx: Tx, items: readonly I[]) => readonly T[]): (item: I) => Promise<T>;
  /**
   * Performs an act of the audit log: its entry is written by the first transaction of `work` that changes a row, so that
   * neither exists without the other. `transactUnsynced` is none of these. A transaction fails with its entry.
   */
  perform<T>(act: RecordedAct<T>): Promise<T>;
  /** Runs work whose transactions do not have the entry of the act: preparations that nobody sees, and what all acts share. */
  apart<T>(work: () => T): T;
  /** Notes what the transaction does, for metrics: the listener gets it after the commit. */
  note(tx: Tx, fact: Fact): void;
  /** Sets the listener of `note`, which must not throw. */
  onCommitted(listener: (fact: Fact) => void): void;
  /** The first problem that SQLite finds in the file, or null. Reads the whole file. */
  damage(): string | null;
  /** Whether the file can be written now (disk full, read-only, locked) and is still the one at its path. */
  isWritable(): boolean;
  /** Null for a database in memory. */
  diskSpace(): DiskSpace | null;
  readonly sqlite: Sqlite;
  readonly checkpoints: Checkpoints;
  /** The file, opened beside SQLite for reading and writing until `close`. Nobody else may close it. */
  descriptor(): number;
  close(): void;
}

/** How long a command blocks while another process holds the database. */
const BUSY_TIMEOUT_MS = 5_000;
/** A server must not block: `commit` tries again by itself. */
export const SERVER_BUSY_TIMEOUT_MS = 10;
const CACHE_KIB = 16 * 1024;
/** With less free space a database counts as not writable, because the next checkpoint may need it. */
const FREE_BYTES_MIN = 1024 * 1024;

const PRAGMAS = [
  // Before the first table: later only `compact` changes it. Lets free pages be returned in steps.
  "PRAGMA auto_vacuum = INCREMENTAL",
  "PRAGMA journal_mode = WAL",
  // Deleted content is overwritten: otherwise erased addresses would remain in unused parts of pages.
  "PRAGMA secure_delete = ON",
  // Until it is migrated: a migration that a power failure undoes is applied again.
  "PRAGMA synchronous = NORMAL",
  "PRAGMA foreign_keys = ON",
  "PRAGMA temp_store = MEMORY",
  `PRAGMA cache_size = -${CACHE_KIB}`,
  `PRAGMA journal_size_limit = ${LOG_BYTES_MIN}`,
];

const tx = {} as Tx;
const syncAsync = promisify(fsync);

const prepareConnection = (sqlite: Sqlite): Sqlite => {
  sqlite.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  for (const pragma of PRAGMAS) sqlite.run(pragma);
  return sqlite;
};

const openFile = (path: string) => {
  const isNew = createDatabaseFile(path);
  keepDatabasePrivate(path);
  const sqlite = prepareConnection(new Sqlite(path, { readwrite: true, strict: true }));
  return { sqlite, migrated: isNew ? ok(NEWLY_MIGRATED) : migrateFile(sqlite, path, { migrations: MIGRATIONS }) };
};

/** The content of a migrated database. */
export interface DatabaseImage {
  /** What `serialize` returns. */
  readonly bytes: Uint8Array;
  readonly migrated: Migrated;
}

const newImage = once((): DatabaseImage => ({ bytes: newDatabase(), migrated: NEWLY_MIGRATED }));

const openMemory = () => ({
  sqlite: copyOf(newImage()),
  migrated: ok(NEWLY_MIGRATED),
});

const copyOf = ({ bytes }: DatabaseImage): Sqlite =>
  prepareConnection(Sqlite.deserialize(bytes, { readonly: false, strict: true }));

/** Writes of a group, with the entries of the acts that they belong to. */
const createCommits = (group: GroupCommit, acts: RecordedActs): Pick<Db, "commit" | "commitsOf"> => {
  /** Commits work with the entry of the act that it belongs to; null when there is none to write. */
  const commitOfAct = <T>(work: () => T): Promise<T> | null => {
    const part = acts.join(work);
    if (part === null) return null;
    return group.enqueue(part.run).catch((error: unknown) => {
      part.undo();
      throw error;
    });
  };
  return {
    commit(work) {
      const run = () => work(tx);
      return commitOfAct(run) ?? group.enqueue(run);
    },
    commitsOf<I, T>(work: (tx: Tx, items: readonly I[]) => readonly T[]) {
      const write = (items: readonly I[]) => work(tx, items);
      return (item: I) =>
        commitOfAct(() => write([item]))?.then(([value]) => value as T) ?? group.enqueueItem(write, item);
    },
  };
};

/** The transactions of a connection. */
const createTransactions = (sqlite: Sqlite, checkpoints: Checkpoints) => {
  const immediate = sqlite.transaction((work: (tx: Tx) => unknown) => work(tx));
  const facts = new CommittedFacts(() => checkpoints.afterCommit());
  const totalChanges = sqlite.prepare<{ n: number }, []>("SELECT total_changes() AS n");
  const acts = new RecordedActs(() => totalChanges.get()?.n ?? 0);
  const runImmediate = <T>(work: (tx: Tx) => T): T => {
    const noted = facts.size;
    try {
      const value = immediate.immediate(work) as T;
      if (!sqlite.inTransaction) facts.publish();
      return value;
    } catch (error) {
      facts.undoTo(noted);
      throw error;
    }
  };
  const transact = <T>(work: (tx: Tx) => T): T => {
    // Inside another transaction, that one has the entry.
    const part = sqlite.inTransaction ? null : acts.join(() => work(tx));
    if (part === null) return runImmediate(work);
    try {
      return runImmediate(part.run);
    } catch (error) {
      part.undo();
      throw error;
    }
  };
  const group = new GroupCommit(sqlite, systemClock, facts);
  return {
    group,
    transact,
    transactUnsynced<T>(work: (tx: Tx) => T) {
      sqlite.run("PRAGMA synchronous = NORMAL");
      try {
        return runImmediate(work);
      } finally {
        sqlite.run("PRAGMA synchronous = FULL");
      }
    },
    ...createCommits(group, acts),
    perform: <T>(act: RecordedAct<T>) => acts.perform(act, (write) => group.enqueue(write)),
    apart: <T>(work: () => T) => acts.apart(work),
    note: (_tx: Tx, fact: Fact) => facts.add(fact),
    onCommitted: (listener: (fact: Fact) => void) => facts.listen(listener),
  };
};

/**
 * Opens or creates the database at `path`, or in memory for `:memory:`, and migrates it after a copy was made. Only the owner can read the file,
 * whatever the umask. Throws the errors of SQLite and the file system.
 */
export const openDb = (path: string, busyTimeoutMs = BUSY_TIMEOUT_MS): Result<Db, MigrateProblem> => {
  const { sqlite, migrated } = path === ":memory:" ? openMemory() : openFile(path);
  if (migrated.ok) return ok(databaseOf(path, { sqlite, migrated: migrated.value }, busyTimeoutMs));
  sqlite.close();
  return err(migrated.error);
};

/** A database in memory that begins as an image of another. */
export const openImage = (image: DatabaseImage): Db =>
  databaseOf(":memory:", { sqlite: copyOf(image), migrated: image.migrated }, BUSY_TIMEOUT_MS);

const databaseOf = (
  path: string,
  { sqlite, migrated }: { readonly sqlite: Sqlite; readonly migrated: Migrated },
  busyTimeoutMs: number,
): Db => {
  // Syncs every commit, so that a 202 survives a power failure.
  sqlite.run("PRAGMA synchronous = FULL");
  sqlite.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
  const deferred = sqlite.transaction((work: () => unknown) => work());
  const beside = new SecondDescriptor(path, sqlite);
  const syncFile = async () => syncAsync(beside.open());
  const checkpoints = new Checkpoints(sqlite, { clock: systemClock, syncFile });
  const { group, ...transactions } = createTransactions(sqlite, checkpoints);
  const identity = identityOf(path);
  return {
    orm: drizzle({ client: sqlite, schema }),
    path,
    migrated,
    ...transactions,
    snapshot: <T>(work: () => T) => deferred.deferred(work) as T,
    damage: () => findDamage(sqlite),
    diskSpace: () => diskSpaceOf(path, sqlite),
    isWritable: () => isFile(path, identity) && hasFreeSpace(path) && takesWrite(sqlite),
    sqlite,
    checkpoints,
    descriptor: () => beside.open(),
    close() {
      group.close();
      checkpoints.stop();
      sqlite.close();
      beside.close();
    },
  };
};

/** The first problem that SQLite finds in a database, or null. Reads the whole file. */
export const findDamage = (sqlite: Sqlite): string | null => {
  try {
    const row = sqlite.query("PRAGMA quick_check(1)").get() as { quick_check?: string } | null;
    return row?.quick_check === "ok" ? null : (row?.quick_check ?? "no result");
  } catch (error) {
    if (error instanceof SQLiteError) return error.message;
    throw error;
  }
};

/** Device and inode of a file; null for a database in memory and for a missing file. */
const identityOf = (path: string) => {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? null : `${stat.dev}:${stat.ino}`;
};

/** Writes to a file that was moved or replaced would be lost. */
const isFile = (path: string, identity: string | null) => identityOf(path) === identity;

/** Whether the disk of a database has room for the next checkpoint. */
export const hasFreeSpace = (path: string): boolean => {
  if (path === ":memory:") return true;
  const { bavail, bsize } = statfsSync(dirname(path));
  return bavail * bsize >= FREE_BYTES_MIN;
};

const takesWrite = (sqlite: Sqlite) => {
  try {
    sqlite.transaction(() => sqlite.run(`PRAGMA user_version = ${MIGRATIONS.length}`)).immediate();
    return true;
  } catch (error) {
    if (error instanceof SQLiteError) return false;
    throw error;
  }
};
