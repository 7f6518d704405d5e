import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Config, readEnvironment } from "../config.ts";
import { describeMigrateProblem } from "../db/migrate.ts";
import { type Db, openDb } from "../db/open.ts";
import { CommandFailed } from "./io.ts";

/** The settings in force, or a failure that lists what is wrong with them. */
export const loadConfig = (): Config => {
  const config = readEnvironment();
  if (config.ok) return config.value;
  throw new CommandFailed(
    ["The settings do not fit:", ...config.error.map((problem) => `  ${problem}`)].join("\n"),
    "settings",
  );
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

/** Opens the database of the data directory, migrated to this binary's schema. */
export const openDatabase = (config: Config): Db => {
  const path = databasePath(config);
  try {
    const opened = openDb(path);
    if (opened.ok) return opened.value;
    throw new CommandFailed(`${path}: ${describeMigrateProblem(opened.error)}`, opened.error.kind);
  } catch (error) {
    if (error instanceof CommandFailed) throw error;
    throw new CommandFailed(`${path} cannot be opened: ${reasonOf(error)}`, "database");
  }
};

/** Runs `work` with the database open, and closes it however that ends. */
export const withDatabase = <T>(work: (db: Db, config: Config) => T): T => {
  const config = loadConfig();
  const db = openDatabase(config);
  try {
    return work(db, config);
  } finally {
    db.close();
  }
};
