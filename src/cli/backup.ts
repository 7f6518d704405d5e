import { errorCode } from "../foundation/base/errors.ts";
import { existsSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { actorOfProcess } from "../accounts/audit-store.ts";
import { isoTime, systemClock } from "../foundation/base/clock.ts";
import { describeCopyProblem, megabytes, writeBackup } from "../foundation/db/backup.ts";
import { MIGRATIONS } from "../foundation/db/migrations.ts";
import { describeRestoreProblem, type Restored, restoreBackup, type NamedAccess } from "../foundation/db/restore.ts";
import { argument, command, toggle } from "./command.ts";
import { databasePath, isOwnName, loadConfig, lockDatabase, prepareDatabase } from "./prepare-directory.ts";
import { CommandFailed, describeFileError } from "./io.ts";

/** Runs `work`; what the file system or SQLite throws becomes a failure about `file`. */
const withFile = <T>(file: string, work: () => T): T => {
  try {
    return work();
  } catch (error) {
    if (errorCode(error) !== "") throw new CommandFailed(describeFileError(file, error), "file");
    throw error;
  }
};

/** Refuses a target without a directory, and a name in the data directory that SQLite or the service reads. */
const refuseTarget = (file: string, dataDir: string): void => {
  const folder = dirname(resolve(file));
  if (!existsSync(folder)) throw new CommandFailed(`${folder}: no such directory`, "file");
  if (realpathSync(folder) === realpathSync(dataDir) && isOwnName(basename(file)))
    throw new CommandFailed(
      `${file}: Postwarden uses this name in the data directory. Choose another one, best on another disk.`,
      "file",
    );
};

const isSameFile = (one: string, other: string): boolean => {
  const [a, b] = [one, other].map((path) => statSync(path, { throwIfNoEntry: false }));
  return a !== undefined && b !== undefined && a.dev === b.dev && a.ino === b.ino;
};

/** `2026-01-02T03-04-05-678Z`: a time in a file name. */
const fileTime = (): string => isoTime(systemClock.nowMs()).replace(/[:.]/g, "-");

const restoredJson = (path: string, { kept, bytes, schema, hasChecksum, access }: Restored) => ({
  ...{ database: path, kept, bytes, schema, checksum: hasChecksum ? "matches" : "missing" },
  ...{ sessions_ended: access.sessionsEnded, links_ended: access.linksEnded, compared: access.isCompared },
  ...{ keys_revoked: access.keysRevoked, keys_rotated: access.keysRotated, keys_gone: access.keysGone },
  ...{ users_back: access.usersBack, users_reset: access.usersReset },
});

const listed = (heading: string, found: readonly NamedAccess[]): readonly string[] =>
  found.length === 0 ? [] : [heading, ...found.map(({ id, account, name }) => `  ${id}  ${account}  ${name}`)];

const restoredText = (file: string, path: string, { kept, hasChecksum, access }: Restored): string =>
  [
    kept === null ? `${path}: restored.` : `${path}: restored. The former database is ${kept}.`,
    ...(hasChecksum ? [] : [`There is no ${file}.sha256, so only the structure of the backup was checked.`]),
    `Ended: ${access.sessionsEnded} sessions, ${access.linksEnded} set-up links.`,
    ...(kept === null || access.isCompared
      ? []
      : ["The former database cannot be read. Revoke again the keys that were revoked since the backup."]),
    ...listed("Keys that were revoked since the backup; they stay revoked:", access.keysRevoked),
    ...listed("Keys that were rotated since the backup; only their present secrets work:", access.keysRotated),
    ...listed("Keys that were created since the backup; they are gone:", access.keysGone),
    ...listed("Users who were removed since the backup and are back; remove them again:", access.usersBack),
    ...listed("Users whose former password or second factor works again; tell them to change it:", access.usersReset),
  ].join("\n");

const FILE = { file: argument("<file>") };

const BACKUP = command({
  description: "Write a verified copy of the database to a new file, also while the server runs.",
  example: "backup /var/backups/postwarden-monday.db",
  args: FILE,
  run({ io, print }, { file }) {
    const config = loadConfig(io);
    const source = prepareDatabase(io, config, "fail");
    refuseTarget(file, config.dataDir);
    const target = resolve(file);
    const written = withFile(file, () => writeBackup(source, target));
    if (!written.ok) throw new CommandFailed(describeCopyProblem(source, target, written.error), written.error.kind);
    print(
      { file: target, ...written.value },
      () =>
        `${file}: ${megabytes(written.value.bytes)}, verified; SHA-256 in ${file}.sha256. To restore it: postwarden restore ${file}`,
    );
  },
});

const RESTORE = command({
  description:
    "Replace the database by a backup. The server must be stopped; the former database is kept. Sessions and set-up links end; keys that were revoked since the backup stay revoked.",
  example: "restore /var/backups/postwarden-monday.db",
  args: FILE,
  options: { keepSessions: toggle("let sessions and set-up links of the backup work again") },
  run({ io, print }, { file, keepSessions }) {
    const config = loadConfig(io);
    if (!existsSync(file)) throw new CommandFailed(`${file}: no such file`, "file");
    const path = databasePath(config);
    if (isSameFile(file, path)) throw new CommandFailed(`${file} is the database in use, not a backup of it.`, "file");
    const keptSuffix = `.before-restore-${fileTime()}`;
    prepareDatabase(io, config, "create");
    const by = { ...actorOfProcess(io.environment.SUDO_USER), atMs: systemClock.nowMs() };
    const lock = lockDatabase(path);
    try {
      const restored = withFile(file, () =>
        restoreBackup(resolve(file), { path, keptSuffix, schemaMax: MIGRATIONS.length, keepSessions, by }),
      );
      if (!restored.ok)
        throw new CommandFailed(describeRestoreProblem(file, path, restored.error), restored.error.kind);
      print(restoredJson(path, restored.value), () => restoredText(file, path, restored.value));
    } finally {
      lock.release();
    }
  },
});

export const BACKUP_COMMANDS = { backup: BACKUP, restore: RESTORE };
