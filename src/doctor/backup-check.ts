import { accessSync, constants, existsSync, readdirSync, statSync } from "node:fs";
import { basename, dirname } from "node:path";
import { minuteText } from "../foundation/base/clock.ts";
import { checksumProblem, describeDatabaseFileProblem, megabytes, roomIn } from "../foundation/db/backup.ts";
import {
  backupsAmong,
  describeDirectoryProblem,
  newestTimeOf,
  type StoredBackup,
  keptCopies,
} from "../foundation/db/backup-directory.ts";
import { BACKUP_AGE_MS_MAX } from "../foundation/db/scheduled-backups.ts";
import { type DoctorCheck, doctorFindings } from "./doctor-check.ts";
import type { DoctorSettings } from "./doctor-settings.ts";

const backupCheck = doctorFindings("backup", "Backups", "running-it#backups");
const copiesCheck = doctorFindings("copies", "Copies of former databases", "running-it#upgrade");
const HOUR_MS = 3_600_000;

interface BackupFacts {
  readonly config: Pick<DoctorSettings, "backupDir" | "dataDir">;
  /** Path of the database. */
  readonly database: string;
  readonly nowMs: number;
  /** The newest backup is compared with its checksum up to this size, in bytes; default: always. */
  readonly checkedBytesMax?: number;
}

/** Whether scheduled backups can be written to the directory: null, or why not. */
const unusable = (directory: string, { config, database }: BackupFacts): DoctorCheck | null => {
  try {
    readdirSync(directory);
    accessSync(directory, constants.W_OK | constants.X_OK);
  } catch (error) {
    return backupCheck.fail(`POSTWARDEN_BACKUP_DIR: ${describeDirectoryProblem(directory, error)}`);
  }
  const [ours, theirs] = [statSync(directory), statSync(config.dataDir, { throwIfNoEntry: false })];
  if (process.geteuid?.() === 0 && theirs !== undefined && theirs.uid !== 0 && ours.uid !== theirs.uid)
    return backupCheck.warn(
      `${directory} belongs to user ID ${ours.uid}, and the data directory to ${theirs.uid}. Run: chown --reference=${config.dataDir} ${directory}`,
    );
  const needsBytes = statSync(database, { throwIfNoEntry: false })?.size ?? 0;
  return roomIn(directory) < needsBytes
    ? backupCheck.warn(
        `${directory} has no room for the next backup (the database has ${(needsBytes / 1e6).toFixed(0)} MB). Free some space or lower POSTWARDEN_BACKUP_KEEP.`,
      )
    : null;
};

/** The newest backup if it is not what was written: null, or the failure. */
const changedBackup = (newest: StoredBackup | undefined, { checkedBytesMax }: BackupFacts): DoctorCheck | null => {
  if (newest === undefined || statSync(newest.file).size > (checkedBytesMax ?? Number.POSITIVE_INFINITY)) return null;
  const problem = checksumProblem(newest.file);
  return problem === null
    ? null
    : backupCheck.fail(
        `${describeDatabaseFileProblem(newest.file, problem)} Check that disk, and write a new backup: postwarden backup FILE`,
      );
};

/** The copies of former databases beside the one in use: each holds all data of its time, and takes as much space. */
export const checkCopies = (database: string): readonly DoctorCheck[] => {
  const copies = existsSync(dirname(database)) ? keptCopies(database) : [];
  if (copies.length === 0) return [];
  const bytes = copies.reduce((sum, copy) => sum + copy.bytes, 0);
  const named = copies.map(({ file, bytes: size }) => `${basename(file)} (${megabytes(size)})`).join(", ");
  return [
    copiesCheck.ok(
      `${copies.length} of former databases beside this one take ${megabytes(bytes)}: ${named}. The newest three of upgrades and of restores stay; they hold data that was deleted since, so remove those that you no longer need.`,
    ),
  ];
};

/** Where the scheduled backups go, how old the last one is, and whether the next one can be written. */
export const checkBackups = (facts: BackupFacts): DoctorCheck => {
  const { config, nowMs } = facts;
  const directory = config.backupDir;
  if (directory === null)
    return backupCheck.warn("No scheduled backups. Set POSTWARDEN_BACKUP_DIR to a directory on another disk.");
  const problem = unusable(directory, facts);
  if (problem !== null) return problem;
  const stored = backupsAmong(readdirSync(directory), directory, nowMs);
  const lastMs = newestTimeOf(stored, nowMs);
  if (lastMs === null)
    return backupCheck.warn(`${directory} has no backup yet. The service writes one within a minute of its start.`);
  const ageMs = nowMs - lastMs;
  const hours = Math.floor(ageMs / HOUR_MS);
  const found = `${stored.length} in ${directory}, the last from ${minuteText(lastMs)}, ${hours === 1 ? "1 hour" : `${hours} hours`} ago`;
  if (ageMs > BACKUP_AGE_MS_MAX)
    return backupCheck.warn(
      `${found}. One is due every day: is the service running? Its log and /readyz say why one failed.`,
    );
  const changed = changedBackup(stored[0], facts);
  if (changed !== null) return changed;
  return statSync(directory).dev === statSync(config.dataDir, { throwIfNoEntry: false })?.dev
    ? backupCheck.warn(`${found}. They are on the file system of the database: copy them to another machine.`)
    : backupCheck.ok(`${found}.`);
};
