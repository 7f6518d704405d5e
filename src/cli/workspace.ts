import { SQLiteError } from "bun:sqlite";
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { systemClock } from "../base/clock.ts";
import { composeAccounts } from "../compose.ts";
import { type Config, readConfig, SettingsProblem } from "../config.ts";
import { takeServerLock } from "../db/lock.ts";
import { describeMigrateProblem } from "../db/migrate.ts";
import { type Db, openDb } from "../db/open.ts";
import { CommandFailed, type Io } from "./io.ts";

/** The settings in force, or a failure that lists what is wrong with them. */
export const loadConfig = (io: Io): Config => {
  const config = readConfig(io.environment);
  if (config.ok) return config.value;
  throw new SettingsProblem(config.error);
};

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Path of the database file, in a data directory that exists from then on (readable by its owner only). */
export const databasePath = (config: Config): string => {
  try {
    mkdirSync(config.dataDir, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new CommandFailed(`The data directory ${config.dataDir} cannot be made: ${reasonOf(error)}`, "data_dir");
  }
  return join(config.dataDir, "postwarden.db");
};

/** The failure of SQLite to open a file (no database at all, broken, not readable). */
export const cannotOpen = (path: string, error: unknown): CommandFailed =>
  new CommandFailed(`${path} cannot be opened: ${reasonOf(error)}`, "database");

/** Opens the database of the data directory, migrated to this binary's schema. */
export const openDatabase = (config: Config, busyTimeoutMs?: number): Db =>
  openDatabaseAt(databasePath(config), busyTimeoutMs);

/** Opens the database in a file, made if it is not there. */
export const openDatabaseAt = (path: string, busyTimeoutMs?: number): Db => {
  try {
    const opened = openDb(path, busyTimeoutMs);
    if (opened.ok) return opened.value;
    throw new CommandFailed(`${path}: ${describeMigrateProblem(opened.error)}`, opened.error.kind);
  } catch (error) {
    throw error instanceof CommandFailed ? error : cannotOpen(path, error);
  }
};

/** Takes the lock of the data directory, so that one server works on it at a time. */
export const lockDataDir = (config: Config): { release(): void } => {
  const path = join(dirname(databasePath(config)), "server.lock");
  try {
    const lock = takeServerLock(path);
    if (lock !== null) return lock;
  } catch (error) {
    throw new CommandFailed(`${path} cannot be locked: ${reasonOf(error)}`, "data_dir");
  }
  throw new CommandFailed(`Another server is running on ${config.dataDir}.`, "already_running");
};

/** Runs `work` with the database of the data directory; it is closed however that ends. */
export const withDatabase = <T>(io: Io, work: (db: Db) => T): T => {
  const config = loadConfig(io);
  const db = openDatabase(config);
  try {
    return work(db);
  } catch (error) {
    if (!(error instanceof SQLiteError)) throw error;
    throw new CommandFailed(`${databasePath(config)} cannot be used: ${error.message}`, "database");
  } finally {
    db.close();
  }
};

export type Administration = ReturnType<typeof composeAccounts>;

/** Runs `work` with the accounts of the data directory. */
export const administer = <T>(io: Io, work: (administration: Administration) => T): T =>
  withDatabase(io, (db) => work(composeAccounts(db, systemClock)));
