import { accessSync, constants, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { ownUserId, userNameOf, makePrivate, OTHERS_PERMISSIONS } from "../foundation/base/private-file.ts";
import { type Config, DATA_DIR_SETTING, readConfig } from "../service/config.ts";
import { SettingsError, errorText } from "../foundation/base/errors.ts";
import { takeServerLock } from "../foundation/db/database-files.ts";
import { CommandFailed, type Io } from "./io.ts";

/** The settings in force, or a failure that lists what is wrong with them. */
export const loadConfig = (io: Io): Config => {
  const config = readConfig(io.environment);
  if (config.ok) return config.value;
  throw new SettingsError(config.error);
};

/** The message of an error that the file system or SQLite threw. */
const FILE_NAME = "postwarden.db";
/** Names that Postwarden creates in the data directory. */
const OWN_NAMES = /^(postwarden\.db|server\.lock|uploads|report-tls|first-keys\.json|lost\+found$)/;

/** Whether Postwarden or SQLite uses a name in the data directory. */
export const isOwnName = (name: string): boolean => OWN_NAMES.test(name);

/** Path of the database file. */
export const databasePath = ({ dataDir }: Config): string => join(dataDir, FILE_NAME);

const noDatabase = ({ dataDir }: Config): CommandFailed =>
  new CommandFailed(`No database in ${dataDir}. Set ${DATA_DIR_SETTING} or pass --data-dir.`, "no_database");

/** Who a path belongs to, and who wants to write it. */
interface Ownership {
  readonly ownerId: number;
  readonly userId: number;
  readonly user: string;
  readonly isDirectory: boolean;
}

/** Why a path cannot be written, and what to do. */
export const describeUnwritable = (path: string, { ownerId, userId, user, isDirectory }: Ownership): string => {
  if (ownerId === userId)
    return `${path} is not writable by ${user}, its owner. Run: chmod ${isDirectory ? "u+rwx" : "u+rw"} ${path}`;
  const owner = ownerId === 0 ? "root" : `user ID ${ownerId}`;
  return `${path} is not writable by ${user}: it belongs to ${owner}. Run: chown ${user} ${path}`;
};

const refuseUnwritable = (path: string, mode: number): void => {
  try {
    accessSync(path, mode);
  } catch {
    const stat = statSync(path);
    const userId = ownUserId();
    const ownership = { ownerId: stat.uid, userId, user: userNameOf(userId), isDirectory: stat.isDirectory() };
    throw new CommandFailed(describeUnwritable(path, ownership), "data_dir");
  }
};

const makeDirectory = (path: string): void => {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new CommandFailed(`Cannot create the data directory ${path}: ${errorText(error)}`, "data_dir");
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

/** Takes the lock of a database, so that only one server uses it. */
export const lockDatabase = (database: string): { release(): void } => {
  const folder = dirname(database);
  const path = join(folder, "server.lock");
  try {
    const lock = takeServerLock(path);
    if (lock !== null) return lock;
  } catch (error) {
    throw new CommandFailed(`Cannot lock ${path}: ${errorText(error)}`, "data_dir");
  }
  throw new CommandFailed(
    `Another server is using ${folder}. Stop it, or set ${DATA_DIR_SETTING} to another directory.`,
    "already_running",
  );
};
