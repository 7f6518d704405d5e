import { join } from "node:path";
import { isoTime } from "../base/clock.ts";
import { fileErrorCode } from "../base/private-file.ts";

/** A complete file that a scheduled backup wrote. */
export interface StoredBackup {
  readonly file: string;
  readonly atMs: number;
}

const NAME = /^postwarden-(?<day>\d{4}-\d\d-\d\d)T(?<hour>\d\d)-(?<minute>\d\d)-(?<second>\d\d)Z\.db$/;

/** `postwarden-2026-01-02T03-04-05Z.db` */
export const backupNameAt = (atMs: number): string =>
  `postwarden-${isoTime(atMs).slice(0, "2026-01-02T03:04:05".length).replaceAll(":", "-")}Z.db`;

/** When a scheduled backup with this name began; null for every other name. */
const timeOfName = (name: string): number | null => {
  const { day, hour, minute, second } = NAME.exec(name)?.groups ?? {};
  const atMs = Date.parse(`${day}T${hour}:${minute}:${second}Z`);
  return Number.isNaN(atMs) ? null : atMs;
};

/** Whether a scheduled backup wrote a file of this name. */
export const isBackupName = (name: string): boolean => timeOfName(name) !== null;

/**
 * The scheduled backups among the names in a directory, the newest first. A time in the future comes from a wrong clock and
 * says nothing about the age: those come last.
 */
export const backupsAmong = (names: readonly string[], directory: string, nowMs: number): readonly StoredBackup[] => {
  const stored = names.flatMap((name) => {
    const atMs = timeOfName(name);
    return atMs === null ? [] : [{ file: join(directory, name), atMs }];
  });
  const isPast = ({ atMs }: StoredBackup): boolean => atMs <= nowMs;
  return stored.toSorted((a, b) => Number(isPast(b)) - Number(isPast(a)) || b.atMs - a.atMs);
};

/** When the newest was made; null if there is none whose time has come. */
export const newestTimeOf = ([newest]: readonly StoredBackup[], nowMs: number): number | null =>
  newest === undefined || newest.atMs > nowMs ? null : newest.atMs;

/** Why backups cannot be written to a directory, and what to do. */
export const describeDirectoryProblem = (directory: string, error: unknown): string => {
  switch (fileErrorCode(error)) {
    case "ENOENT":
      return `${directory}: no such directory. Mount or create it: install -d -m 700 ${directory}`;
    case "ENOTDIR":
      return `${directory} is not a directory. Set POSTWARDEN_BACKUP_DIR to one.`;
    case "EACCES":
      return `${directory}: permission denied. Give it to the user of the service: chown USER ${directory}`;
    case "EROFS":
      return `${directory} is read-only for the service. Under systemd, run \`systemctl edit postwarden\` and add: ReadWritePaths=${directory}`;
    default:
      return `${directory}: ${error instanceof Error ? error.message : String(error)}.`;
  }
};
