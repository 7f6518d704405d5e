import { constants, Database as Sqlite } from "bun:sqlite";
import { closeSync, fstatSync, openSync, statfsSync, statSync, utimesSync } from "node:fs";
import { dirname } from "node:path";
import { systemClock } from "../base/clock.ts";
import { createPrivateFile, giveToOwnerOf, makePrivate } from "../base/private-file.ts";
import { isBusy } from "./group-commit.ts";

/** The files of a database. SQLite creates the others with the permissions of the first; existing ones keep theirs. */
const SUFFIXES = ["", "-wal", "-shm", "-journal"];

/**
 * Creates the file of a database for the owner of its directory only, and restricts the permissions of existing files: they contain keys,
 * webhook secrets and addresses. Call it before opening the database. Throws the errors of the file system.
 */
export const keepDatabasePrivate = (path: string): void => {
  if (path === ":memory:") return;
  if (statSync(path, { throwIfNoEntry: false }) === undefined) {
    createPrivateFile(path);
    giveToOwnerOf(dirname(path), path);
  }
  for (const suffix of SUFFIXES) makePrivate(path + suffix);
};

/**
 * Takes the lock of a data directory, so that two servers never use the same database. Null when another process has it.
 * The operating system releases it when the process ends. The file's time of change says since when the lock is held.
 */
export const takeServerLock = (path: string): { release(): void } | null => {
  keepDatabasePrivate(path);
  const sqlite = new Sqlite(path, { readwrite: true });
  try {
    sqlite.run("PRAGMA locking_mode = EXCLUSIVE");
    sqlite.run("BEGIN EXCLUSIVE");
    const nowS = systemClock.nowMs() / 1_000;
    utimesSync(path, nowS, nowS);
  } catch (error) {
    sqlite.close();
    if (isBusy(error)) return null;
    throw error;
  }
  return { release: () => sqlite.close() };
};

/** Whether a process holds the lock of `takeServerLock`. */
export const isServerLocked = (path: string): boolean => {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return false;
  const sqlite = new Sqlite(path, { readonly: true });
  try {
    sqlite.query("SELECT count(*) FROM sqlite_schema").get();
    return false;
  } catch (error) {
    if (isBusy(error)) return true;
    throw error;
  } finally {
    sqlite.close();
  }
};

/**
 * A descriptor of a database file beside those of SQLite. Closing it ends the locks of SQLite in this process (POSIX), so it
 * stays open until the database is closed.
 */
export class SecondDescriptor {
  #descriptor: number | null = null;

  constructor(
    private readonly path: string,
    private readonly sqlite: Sqlite,
  ) {}

  /** For reading and writing. Throws the errors of the file system, and for a path that has another file than SQLite. */
  open(): number {
    this.#descriptor ??= openSync(this.path, "r+");
    const [own, now] = [fstatSync(this.#descriptor), statSync(this.path)];
    if (own.ino !== now.ino || own.dev !== now.dev || hasMoved(this.sqlite))
      throw new Error(`${this.path} was replaced while it was open`);
    return this.#descriptor;
  }

  /** Call it after the database is closed. */
  close(): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor);
    this.#descriptor = null;
  }
}

/** Whether the path of a database has another file, or none, since SQLite opened it. */
const hasMoved = (sqlite: Sqlite) => {
  const answer = new Int32Array(2);
  sqlite.fileControl(constants.SQLITE_FCNTL_HAS_MOVED, answer);
  return answer[0] !== 0;
};

/** Disk space for the database, in bytes. */
export interface DiskSpace {
  /** Free on the disk, and free pages of the file. */
  readonly freeBytes: number;
  /** The size of the disk. */
  readonly totalBytes: number;
}

/** Null for a database in memory. */
export const diskSpaceOf = (path: string, sqlite: Sqlite): DiskSpace | null => {
  if (path === ":memory:") return null;
  const { bavail, blocks, bsize } = statfsSync(dirname(path));
  const pragma = (name: string) => {
    const row = sqlite.query<Record<string, number>, []>(`PRAGMA ${name}`).get();
    return row?.[name] ?? 0;
  };
  const freePagesBytes = pragma("freelist_count") * pragma("page_size");
  return { freeBytes: bavail * bsize + freePagesBytes, totalBytes: blocks * bsize };
};

/** Sizes in bytes: of the database file, of its write-ahead log, and of the disk. */
export interface DatabaseUsage {
  readonly fileBytes: number;
  readonly walBytes: number;
  readonly diskFreeBytes: number;
  readonly diskBytes: number;
}

/** Null for a database in memory. Throws the errors of the file system. */
export const databaseUsageOf = (path: string): DatabaseUsage | null => {
  if (path === ":memory:") return null;
  const { bavail, blocks, bsize } = statfsSync(dirname(path));
  const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  return {
    fileBytes: sizeOf(path),
    walBytes: sizeOf(`${path}-wal`),
    diskFreeBytes: bavail * bsize,
    diskBytes: blocks * bsize,
  };
};
