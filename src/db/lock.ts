import { Database as Sqlite } from "bun:sqlite";
import { keepDatabasePrivate } from "./private-database.ts";

/**
 * Takes the one lock of a data directory, so that two servers never work on the same database. Answers what gives it
 * back, or null when another process has it. The operating system frees it when the process dies, however it dies.
 */
export const takeServerLock = (path: string): { release(): void } | null => {
  keepDatabasePrivate(path);
  const sqlite = new Sqlite(path, { create: true, readwrite: true });
  try {
    sqlite.run("PRAGMA locking_mode = EXCLUSIVE");
    sqlite.run("BEGIN EXCLUSIVE");
  } catch (error) {
    sqlite.close();
    if (error instanceof Error && "code" in error && String(error.code).startsWith("SQLITE_BUSY")) return null;
    throw error;
  }
  return { release: () => sqlite.close() };
};
