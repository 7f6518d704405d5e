import { errorCode, errorText } from "../base/errors.ts";
import { join, basename, dirname } from "node:path";
import { isoTime } from "../base/clock.ts";
import { readdirSync, rmSync, statSync } from "node:fs";
import { CHECKSUM_SUFFIX, removeAbandonedPartials } from "./partial-file.ts";
import { COMPANION_SUFFIXES } from "./backup.ts";

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
const timeOfName = (name: string) => {
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
  const isPast = ({ atMs }: StoredBackup) => atMs <= nowMs;
  return stored.toSorted((a, b) => Number(isPast(b)) - Number(isPast(a)) || b.atMs - a.atMs);
};

/** When the newest was made; null if there is none whose time has come. */
export const newestTimeOf = ([newest]: readonly StoredBackup[], nowMs: number): number | null =>
  newest === undefined || newest.atMs > nowMs ? null : newest.atMs;

/** Why backups cannot be written to a directory, and what to do. */
export const describeDirectoryProblem = (directory: string, error: unknown): string => {
  switch (errorCode(error)) {
    case "ENOENT":
      return `${directory}: no such directory. Mount or create it: install -d -m 700 ${directory}`;
    case "ENOTDIR":
      return `${directory} is not a directory. Set POSTWARDEN_BACKUP_DIR to one.`;
    case "EACCES":
      return `${directory}: permission denied. Give it to the user of the service: chown USER ${directory}`;
    case "EROFS":
      return `${directory} is read-only for the service. Under systemd, run \`systemctl edit postwarden\` and add: ReadWritePaths=${directory}`;
    default:
      return `${directory}: ${errorText(error)}.`;
  }
};

/** Why a copy of a former database stands beside the present one: an upgrade or a restore followed. */
type KeptCause = "migration" | "restore";

/** A copy of a former database, with its logs. */
interface KeptCopy {
  readonly file: string;
  readonly cause: KeptCause;
  readonly bytes: number;
  readonly atMs: number;
}

/** Copies of each cause that stay, the newest. */
const COPIES_MAX = 3;
/** What follows the name of the database in that of a copy: the next migration, or the time of the restore. */
const COPY =
  /^\.before-(?:(?<migration>\d{4}_[\w-]+?)|(?<restore>restore-[\dTZ-]+))(?<companion>-wal|-shm|-journal|\.sha256)?$/;
const COMPANIONS = [...COMPANION_SUFFIXES, CHECKSUM_SUFFIX];

const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

const copyNames = (
  path: string,
): readonly { readonly name: string; readonly cause: KeptCause; readonly companion: string }[] => {
  const start = basename(path);
  return readdirSync(dirname(path)).flatMap((name) => {
    const found = name.startsWith(start) ? COPY.exec(name.slice(start.length))?.groups : undefined;
    if (found === undefined) return [];
    const { restore, companion = "" } = found;
    return [{ name, cause: restore === undefined ? "migration" : "restore", companion }];
  });
};

/** The copies of former databases beside the one at `path`, the newest first. */
export const keptCopies = (path: string, cause?: KeptCause): readonly KeptCopy[] =>
  copyNames(path)
    .filter((copy) => copy.companion === "" && (cause === undefined || copy.cause === cause))
    .flatMap((copy) => {
      const file = join(dirname(path), copy.name);
      const stat = statSync(file, { throwIfNoEntry: false });
      if (stat === undefined) return [];
      const logs = COMPANION_SUFFIXES.reduce((sum, suffix) => sum + sizeOf(file + suffix), 0);
      return [{ file, cause: copy.cause, bytes: stat.size + logs, atMs: stat.mtimeMs }];
    })
    .toSorted((a, b) => b.atMs - a.atMs);

/** Removes all copies of one cause but the newest three, with what belongs to them. */
export const removeOldCopies = (path: string, cause: KeptCause): void => {
  for (const { file } of keptCopies(path, cause).slice(COPIES_MAX))
    for (const suffix of ["", ...COMPANIONS]) rmSync(file + suffix, { force: true });
};

/**
 * Removes what interrupted restores, migrations and backups left beside a database: partial files, and logs of a copy that
 * was never made. The caller holds the server lock.
 */
export const removeAbandonedCopies = (path: string): void => {
  const folder = dirname(path);
  removeAbandonedPartials(folder, (name) => name.startsWith(basename(path)));
  const names = new Set(readdirSync(folder));
  for (const { name, companion } of copyNames(path))
    if (companion !== "" && !names.has(name.slice(0, -companion.length))) rmSync(join(folder, name), { force: true });
};
