import { Database as Sqlite } from "bun:sqlite";
import { copyFileSync, existsSync, linkSync, realpathSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { err, ok, type Result } from "../base/errors.ts";
import { giveToOwnerOf } from "../base/private-file.ts";
import {
  COMPANION_SUFFIXES,
  copyDatabase,
  type CopyProblem,
  damageOf,
  type DatabaseFileProblem,
  describeCopyProblem,
  describeDatabaseFileProblem,
  type VerifiedCopy,
  verifyCopy,
} from "./backup.ts";
import { isBusy } from "./group-commit.ts";
import { syncNames } from "./partial-file.ts";

/** Why nothing was restored; then nothing was changed. */
export type RestoreProblem =
  | { readonly kind: "backup"; readonly problem: DatabaseFileProblem }
  | { readonly kind: "copy"; readonly problem: CopyProblem }
  | { readonly kind: "in_use" };

/** Where `restoreBackup` put the former database, and what it restored. */
export interface Restored extends VerifiedCopy {
  /** Null if there was none. */
  readonly kept: string | null;
}

/** A sentence for each problem of restoring `file` as the database at `path`. */
export const describeRestoreProblem = (file: string, path: string, problem: RestoreProblem): string => {
  switch (problem.kind) {
    case "backup":
      return describeDatabaseFileProblem(file, problem.problem);
    case "copy":
      return describeCopyProblem(file, path, problem.problem);
    case "in_use":
      return `Another program has ${path} open, such as a running command or Litestream. Stop it first.`;
    default:
      return problem satisfies never;
  }
};

/**
 * Replaces the database at `path` by a copy of `file`. The caller holds the server lock. The former database stays
 * beside it, with `keptSuffix` appended to its name, and with its write-ahead log where that is not part of the file. A
 * crash at any point leaves either the old or the new database at `path`, never one with the log of the other. If `path`
 * is a symbolic link, what it points to is replaced.
 */
export const restoreBackup = (
  file: string,
  { path, keptSuffix, schemaMax }: { readonly path: string; readonly keptSuffix: string; readonly schemaMax: number },
): Result<Restored, RestoreProblem> => {
  const verified = verifyCopy(file, schemaMax);
  if (!verified.ok) return err({ kind: "backup", problem: verified.error });
  const isReplaced = existsSync(path);
  const target = isReplaced ? realpathSync(path) : path;
  const kept = isReplaced ? target + keptSuffix : null;
  let isInUse = false;
  const copied = copyDatabase(file, target, (partial) => {
    giveToOwnerOf(isReplaced ? target : dirname(target), partial);
    isInUse = kept !== null && !keepFormer(target, kept);
    if (isInUse) return ok(null);
    for (const suffix of COMPANION_SUFFIXES) rmSync(target + suffix, { force: true });
    syncNames(target);
    renameSync(partial, target);
    syncNames(target);
    return ok(null);
  });
  if (!copied.ok) return err({ kind: "copy", problem: copied.error });
  return isInUse ? err({ kind: "in_use" }) : ok({ ...copied.value, kept });
};

/** Gives the former database a second name, and its logs a copy if they are not part of it. False if somebody uses it. */
const keepFormer = (path: string, kept: string): boolean => {
  const logs = ["-wal", "-journal"].filter((suffix) => existsSync(path + suffix));
  // First, as copies: SQLite deletes a log that it cannot read.
  for (const suffix of logs) copyFileSync(path + suffix, kept + suffix);
  const state = emptyLog(path);
  if (state !== "damaged") for (const suffix of logs) rmSync(kept + suffix);
  if (state === "in_use") return false;
  linkSync(path, kept);
  return true;
};

/**
 * Moves the logs of a database into its file: `emptied` if the file alone is the whole database now. `in_use` if another
 * process has it open, which would go on writing to the former file.
 */
const emptyLog = (path: string): "emptied" | "in_use" | "damaged" => {
  try {
    const sqlite = new Sqlite(path, { readwrite: true, create: false });
    try {
      sqlite.run("PRAGMA locking_mode = EXCLUSIVE");
      sqlite.run("BEGIN EXCLUSIVE");
      sqlite.run("COMMIT");
      sqlite.run("PRAGMA wal_checkpoint(TRUNCATE)");
      return "emptied";
    } finally {
      sqlite.close();
    }
  } catch (error) {
    if (isBusy(error)) return "in_use";
    // A damaged database is the reason for most restores. It is kept with its logs, as it is.
    if (damageOf(error) !== null) return "damaged";
    throw error;
  }
};
