import { SQLiteError } from "bun:sqlite";
import { accessSync, constants, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { describeUnknownAccount, NO_ACCOUNT_YET } from "../accounts/accounts.ts";
import { type Actor, actorOfProcess, type AuditedAction } from "../accounts/audit-log.ts";
import { systemClock } from "../base/clock.ts";
import { ownUserId, userNameOf } from "../base/os-user.ts";
import { makePrivate, OTHERS_PERMISSIONS } from "../base/private-file.ts";
import { composeAccounts } from "../compose.ts";
import { type Config, DATA_DIR_SETTING, readConfig, SettingsError } from "../config.ts";
import { takeServerLock } from "../db/database-files.ts";
import { damageOf } from "../db/backup.ts";
import { describeMigrateProblem } from "../db/migrate.ts";
import { type Db, openDb } from "../db/open.ts";
import { CommandFailed, type Io, UsageError } from "./io.ts";
import { damagedDatabase } from "./newest-backup.ts";

/** The settings in force, or a failure that lists what is wrong with them. */
export const loadConfig = (io: Io): Config => {
  const config = readConfig(io.environment);
  if (config.ok) return config.value;
  throw new SettingsError(config.error);
};

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const FILE_NAME = "postwarden.db";
/** Names that Postwarden creates in the data directory. */
const OWN_NAMES = /^(postwarden\.db|server\.lock|uploads|report-tls|first-keys\.json|lost\+found$)/;

/** Whether Postwarden or SQLite uses a name in the data directory. */
export const isOwnName = (name: string): boolean => OWN_NAMES.test(name);

/** Path of the database file. */
export const databasePath = ({ dataDir }: Config): string => join(dataDir, FILE_NAME);

const noDatabase = ({ dataDir }: Config): CommandFailed =>
  new CommandFailed(`No database in ${dataDir}. Set ${DATA_DIR_SETTING} or pass --data-dir.`, "no_database");

/** Why a path cannot be written, and what to do. */
export const describeUnwritable = (path: string, ownerId: number, user: string): string => {
  const owner = ownerId === 0 ? "root" : `user ID ${ownerId}`;
  return `${path} is not writable by ${user}: it belongs to ${owner}. Run: chown ${user} ${path}`;
};

const refuseUnwritable = (path: string, mode: number): void => {
  try {
    accessSync(path, mode);
  } catch {
    throw new CommandFailed(describeUnwritable(path, statSync(path).uid, userNameOf(ownUserId())), "data_dir");
  }
};

const makeDirectory = (path: string): void => {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new CommandFailed(`Cannot create the data directory ${path}: ${reasonOf(error)}`, "data_dir");
  }
};

/** Closes the data directory to other users. If other files are in it, only warns; the files of Postwarden are private. */
const closeDirectory = (io: Io, path: string): void => {
  const { mode } = statSync(path);
  if ((mode & OTHERS_PERMISSIONS) === 0) return;
  const isOurs = readdirSync(path).every((name) => OWN_NAMES.test(name));
  if (isOurs && makePrivate(path)) return;
  const why = isOurs ? "it belongs to another user" : "other files are in it";
  io.err(
    `postwarden: warning: Other users can enter the data directory ${path} (mode ${(mode & 0o777).toString(8)}), and ${why}. Use a directory for Postwarden alone, with mode 700.`,
  );
};

/**
 * Prepares the data directory, which only its owner may enter, and returns the path of its database. With `fail`, a
 * missing database is a failure and nothing is created.
 */
export const prepareDatabase = (io: Io, config: Config, missing: "create" | "fail"): string => {
  const { dataDir } = config;
  const path = databasePath(config);
  const found = existsSync(dataDir) ? statSync(dataDir) : undefined;
  if (found !== undefined && !found.isDirectory())
    throw new CommandFailed(`${DATA_DIR_SETTING}: ${dataDir} is a file, not a directory.`, "data_dir");
  if (missing === "fail" && !existsSync(path)) throw noDatabase(config);
  if (found === undefined) makeDirectory(dataDir);
  refuseUnwritable(dataDir, constants.W_OK | constants.X_OK);
  if (existsSync(path)) refuseUnwritable(path, constants.R_OK | constants.W_OK);
  closeDirectory(io, dataDir);
  return path;
};

/** A server that runs as root creates files that the owner of its data directory could not use afterwards. */
export const refuseForeignRoot = ({ dataDir }: Config, userId = ownUserId()): void => {
  const owner = statSync(dataDir).uid;
  if (userId !== 0 || owner === 0) return;
  const name = userNameOf(owner);
  throw new CommandFailed(
    `The data directory ${dataDir} belongs to ${name}, and the server is being started by root. Run: sudo -u ${name} postwarden serve`,
    "root",
  );
};

/** What SQLite's failure to open or read the database at `path` is: damage, with the backup to restore, or its message. */
export const databaseFailure = (path: string, error: unknown, { backupDir }: Config): CommandFailed => {
  const damage = damageOf(error);
  return damage === null || !("detail" in damage)
    ? new CommandFailed(`Database error in ${path}: ${reasonOf(error)}`, "database")
    : damagedDatabase(path, damage.detail, { backupDir, nowMs: systemClock.nowMs() });
};

/** Opens the database of the data directory, migrated to the schema of this version. */
export const openDatabase = (io: Io, config: Config): Db =>
  openOwnDatabase(io, config, prepareDatabase(io, config, "fail"));

/** Opens the database of the data directory at its path, created if necessary, and says where a copy of it was made. */
const openOwnDatabase = (io: Io, config: Config, path: string): Db => {
  const db = openDatabaseAt(path, { failure: (error) => databaseFailure(path, error, config) });
  const { applied, copy } = db.migrated;
  if (copy !== null) io.err(`postwarden: Applied ${applied.join(", ")}. A copy of the former database: ${copy}`);
  return db;
};

interface OpenOptions {
  readonly busyTimeoutMs?: number;
  readonly failure?: (error: unknown) => CommandFailed;
}

/** Opens the database in a file, created if necessary. */
export const openDatabaseAt = (path: string, { busyTimeoutMs, failure }: OpenOptions = {}): Db => {
  try {
    const opened = openDb(path, busyTimeoutMs);
    if (opened.ok) return opened.value;
    throw new CommandFailed(`${path}: ${describeMigrateProblem(opened.error)}`, opened.error.kind);
  } catch (error) {
    if (error instanceof CommandFailed) throw error;
    throw failure?.(error) ?? new CommandFailed(`${path}: ${reasonOf(error)}`, "database");
  }
};

/** Takes the lock of a database, so that only one server uses it. */
export const lockDatabase = (database: string): { release(): void } => {
  const folder = dirname(database);
  const path = join(folder, "server.lock");
  try {
    const lock = takeServerLock(path);
    if (lock !== null) return lock;
  } catch (error) {
    throw new CommandFailed(`Cannot lock ${path}: ${reasonOf(error)}`, "data_dir");
  }
  throw new CommandFailed(
    `Another server is using ${folder}. Stop it, or set ${DATA_DIR_SETTING} to another directory.`,
    "already_running",
  );
};

/** Runs `work` with the database of the data directory, and closes it. */
export const withDatabase = <T>(io: Io, work: (db: Db) => T, missing: "create" | "fail" = "fail"): T => {
  const config = loadConfig(io);
  const path = prepareDatabase(io, config, missing);
  const db = openOwnDatabase(io, config, path);
  try {
    return work(db);
  } catch (error) {
    throw error instanceof SQLiteError ? databaseFailure(path, error, config) : error;
  } finally {
    db.close();
  }
};

/** The same for work that waits; the database is closed when it is done. */
export const withDatabaseUntilDone = async <T>(io: Io, work: (db: Db) => Promise<T>): Promise<T> => {
  const config = loadConfig(io);
  const path = prepareDatabase(io, config, "fail");
  const db = openOwnDatabase(io, config, path);
  try {
    return await work(db);
  } catch (error) {
    throw error instanceof SQLiteError ? databaseFailure(path, error, config) : error;
  } finally {
    db.close();
  }
};

export type Administration = ReturnType<typeof composeAccounts>;

/** Runs `work` with the accounts of the data directory. */
export const administer = <T>(
  io: Io,
  work: (administration: Administration) => T,
  missing: "create" | "fail" = "fail",
): T => withDatabase(io, (db) => work(composeAccounts(db, systemClock, actorOf(io))), missing);

/** The same for work that waits. */
export const administerUntilDone = <T>(
  io: Io,
  work: (administration: Administration, db: Db) => Promise<T>,
): Promise<T> => withDatabaseUntilDone(io, (db) => work(composeAccounts(db, systemClock, actorOf(io)), db));

/** Appends an entry to the audit log, in a transaction of its own: for actions that were several transactions. */
export const recordAction = (io: Io, db: Db, action: AuditedAction): void => {
  const { audit } = composeAccounts(db, systemClock, actorOf(io));
  db.transact((tx) => audit.append(tx, action));
};

/** Who runs this command. */
const actorOf = ({ environment }: Io): Actor => actorOfProcess(environment.SUDO_USER);

/** No account has this name. */
export const unknownAccount = (name: string): CommandFailed =>
  new CommandFailed(describeUnknownAccount(name), "unknown_account");

/** Id of the account of this name, or of the only account when no name is given. */
export const accountIdOf = (db: Db, name: string | undefined): string => {
  const { store } = composeAccounts(db, systemClock);
  if (name !== undefined) {
    const account = store.findAccountByName(name);
    if (account !== undefined) return account.id;
    throw unknownAccount(name);
  }
  const [only, another] = store.listAccounts();
  if (only === undefined) throw new CommandFailed(NO_ACCOUNT_YET, "unknown_account");
  if (another !== undefined) throw new UsageError("There are several accounts. Name one with --account.", "account");
  return only.id;
};
