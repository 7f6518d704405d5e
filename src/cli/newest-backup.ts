import { errorCode } from "../foundation/base/errors.ts";
import { existsSync, readdirSync, statSync } from "node:fs";
import { isoTime } from "../foundation/base/clock.ts";
import type { Config } from "../service/config.ts";
import { backupsAmong, type StoredBackup, keptCopies } from "../foundation/db/backup-directory.ts";
import { CommandFailed } from "./io.ts";

const scheduledBackups = (directory: string, nowMs: number): readonly StoredBackup[] => {
  try {
    return backupsAmong(readdirSync(directory), directory, nowMs);
  } catch (error) {
    // A directory that is not mounted has no backups to name.
    if (errorCode(error) !== "") return [];
    throw error;
  }
};

/** The newest scheduled backup of the database at `path`, else the newest copy from before a migration. */
const newestBackup = (path: string, backupDir: string | null, nowMs: number): StoredBackup | null => {
  const [scheduled] = backupDir === null ? [] : scheduledBackups(backupDir, nowMs);
  const [copy] = keptCopies(path, "migration");
  if (scheduled !== undefined) return scheduled;
  return copy ?? null;
};

/** The failure to use a damaged database: which backup is the newest, and how to restore it. */
export const damagedDatabase = (
  path: string,
  detail: string,
  { backupDir, nowMs }: { readonly backupDir: string | null; readonly nowMs: number },
): CommandFailed => {
  const newest = newestBackup(path, backupDir, nowMs);
  const advice =
    newest === null
      ? "Found no backup in POSTWARDEN_BACKUP_DIR or beside it. If you have one elsewhere, stop the server and run: postwarden restore FILE"
      : `The newest backup is ${newest.file}, of ${isoTime(newest.atMs)}. Stop the server and run: postwarden restore ${newest.file}`;
  return new CommandFailed(`${path} is damaged: ${detail}. ${advice}`, "database");
};

/**
 * Refuses to begin with an empty database where backups exist: the data directory was probably lost or not mounted, and
 * backups of the empty database would replace the good ones.
 */
export const refuseLostDatabase = ({ dataDir, backupDir }: Config, path: string, nowMs: number): void => {
  if (backupDir === null || (existsSync(path) && statSync(path).size > 0)) return;
  const [newest] = scheduledBackups(backupDir, nowMs);
  if (newest === undefined) return;
  throw new CommandFailed(
    `${dataDir} has no database, but POSTWARDEN_BACKUP_DIR has backups. Check that ${dataDir} is mounted, or restore the newest backup: ` +
      `postwarden restore ${newest.file}. To begin with an empty database, run: postwarden migrate`,
    "no_database",
  );
};
