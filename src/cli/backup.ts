import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import { isoTime, systemClock } from "../base/clock.ts";
import { type BackupProblem, describeBackupProblem, restoreBackup, writeBackup } from "../db/backup.ts";
import { MIGRATIONS } from "../db/migrations.ts";
import { addCommand } from "./command.ts";
import { databasePath, loadConfig, lockDatabase, prepareDatabase } from "./data-directory.ts";
import { CommandFailed, describeFileError, type Io, print } from "./io.ts";

const failed = (file: string, problem: BackupProblem): CommandFailed =>
  new CommandFailed(describeBackupProblem(file, problem), problem.kind);

/** Runs `work`; what the file system or SQLite throws becomes a failure about `file`. */
const withFile = <T>(file: string, work: () => T): T => {
  try {
    return work();
  } catch (error) {
    if (error instanceof Error && "code" in error) throw new CommandFailed(describeFileError(file, error), "file");
    throw error;
  }
};

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

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
    const written = withFile(file, () => writeBackup(source, resolve(file), MIGRATIONS.length));
    if (!written.ok) throw failed(file, written.error);
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
    if (resolve(file) === resolve(path))
      throw new CommandFailed(`${file} is the database in use, not a backup of it.`, "file");
    const keptAs = `${path}.before-restore-${fileTime()}`;
    prepareDatabase(io, config, "create");
    const lock = lockDatabase(path);
    try {
      const restored = withFile(file, () =>
        restoreBackup(resolve(file), { path, keptAs, schemaMax: MIGRATIONS.length }),
      );
      if (!restored.ok) throw failed(file, restored.error);
      const { kept, ...copy } = restored.value;
      print(io, json, { database: path, kept, ...copy }, () =>
        kept === null ? `${path}: restored.` : `${path}: restored. The former database is ${kept}.`,
      );
    } finally {
      lock.release();
    }
  });
};
