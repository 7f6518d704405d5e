import { existsSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import type { Command } from "commander";
import { isoTime, systemClock } from "../base/clock.ts";
import { describeCopyProblem, megabytes, writeBackup } from "../db/backup.ts";
import { MIGRATIONS } from "../db/migrations.ts";
import { describeRestoreProblem, restoreBackup } from "../db/restore.ts";
import { addCommand } from "./command.ts";
import { databasePath, isOwnName, loadConfig, lockDatabase, prepareDatabase } from "./prepare-directory.ts";
import { CommandFailed, describeFileError, type Io, print } from "./io.ts";

/** Runs `work`; what the file system or SQLite throws becomes a failure about `file`. */
const withFile = <T>(file: string, work: () => T): T => {
  try {
    return work();
  } catch (error) {
    if (error instanceof Error && "code" in error) throw new CommandFailed(describeFileError(file, error), "file");
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

/** `backup`, `restore` */
export const addBackupCommands = (program: Command, io: Io): void => {
  addCommand(program, "backup <file>", {
    description: "Write a verified copy of the database to a new file, also while the server runs.",
    example: "backup /var/backups/postwarden-monday.db",
  }).action((file: string, { json }) => {
    const config = loadConfig(io);
    const source = prepareDatabase(io, config, "fail");
    refuseTarget(file, config.dataDir);
    const written = withFile(file, () => writeBackup(source, resolve(file)));
    if (!written.ok)
      throw new CommandFailed(describeCopyProblem(source, resolve(file), written.error), written.error.kind);
    print(
      io,
      json,
      { file: resolve(file), ...written.value },
      () => `${file}: ${megabytes(written.value.bytes)}, verified. To restore it: postwarden restore ${file}`,
    );
  });

  addCommand(program, "restore <file>", {
    description: "Replace the database by a backup. The server must be stopped; the former database is kept.",
    example: "restore /var/backups/postwarden-monday.db",
  }).action((file: string, { json }) => {
    const config = loadConfig(io);
    if (!existsSync(file)) throw new CommandFailed(`${file}: no such file`, "file");
    const path = databasePath(config);
    if (isSameFile(file, path)) throw new CommandFailed(`${file} is the database in use, not a backup of it.`, "file");
    const keptSuffix = `.before-restore-${fileTime()}`;
    prepareDatabase(io, config, "create");
    const lock = lockDatabase(path);
    try {
      const restored = withFile(file, () =>
        restoreBackup(resolve(file), { path, keptSuffix, schemaMax: MIGRATIONS.length }),
      );
      if (!restored.ok)
        throw new CommandFailed(describeRestoreProblem(file, path, restored.error), restored.error.kind);
      const { kept, ...copy } = restored.value;
      print(io, json, { database: path, kept, ...copy }, () =>
        kept === null ? `${path}: restored.` : `${path}: restored. The former database is ${kept}.`,
      );
    } finally {
      lock.release();
    }
  });
};
