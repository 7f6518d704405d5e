import { Database as Sqlite } from "bun:sqlite";
import { copyFileSync, existsSync, linkSync, realpathSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { err, ok, type Result } from "../base/errors.ts";
import { giveToOwnerOf } from "../base/private-file.ts";
import {
  checksumProblem,
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
import { hasChecksum } from "./backup-checksum.ts";
import { isBusy } from "./group-commit.ts";
import { removeOldCopies } from "./kept-copies.ts";
import { syncNames } from "./partial-file.ts";
import { type RestoredAccess, type RestoredBy, withdrawAccess } from "./restored-access.ts";

/** Why nothing was restored; then nothing was changed. */
export type RestoreProblem =
  | { readonly kind: "backup"; readonly problem: DatabaseFileProblem }
  | { readonly kind: "copy"; readonly problem: CopyProblem }
  | { readonly kind: "in_use" };

/** Where `restoreBackup` put the former database, and what it restored. */
export interface Restored extends VerifiedCopy {
  /** Null if there was none. */
  readonly kept: string | null;
  /** Whether a checksum beside the backup proved that it is what was written. */
  readonly hasChecksum: boolean;
  readonly access: RestoredAccess;
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

interface RestoreOptions {
  readonly path: string;
  readonly keptSuffix: string;
  readonly schemaMax: number;
  /** Whether sessions and set-up links of the backup work again. */
  readonly keepSessions: boolean;
  readonly by: RestoredBy;
}

/**
 * Replaces the database at `path` by a copy of `file`, in which `withdrawAccess` has ended what must not come back. The caller holds the server lock. The former database stays
 * beside it, with `keptSuffix` appended to its name, and with its write-ahead log where that is not part of the file. A
 * crash at any point leaves either the old or the new database at `path`, never one with the log of the other. If `path`
 * is a symbolic link, what it points to is replaced.
 */
export const restoreBackup = (
  file: string,
  { path, keptSuffix, schemaMax, keepSessions, by }: RestoreOptions,
): Result<Restored, RestoreProblem> => {
  const verified = verifyCopy(file, schemaMax);
  if (!verified.ok) return err({ kind: "backup", problem: verified.error });
  const changed = checksumProblem(file);
  if (changed !== null) return err({ kind: "backup", problem: changed });
  const isReplaced = existsSync(path);
  const target = isReplaced ? realpathSync(path) : path;
  const kept = isReplaced ? target + keptSuffix : null;
  let access: RestoredAccess | null = null;
  const copied = copyDatabase(file, target, (partial) => {
    giveToOwnerOf(isReplaced ? target : dirname(target), partial);
    const state = kept === null ? null : keepFormer(target, kept);
    if (state === "in_use") return ok(null);
    // SQLite would delete the logs of a damaged database if it were opened.
    access = withdrawAccess(partial, { former: state === "emptied" ? kept : null, keepSessions, by });
    for (const suffix of COMPANION_SUFFIXES) rmSync(target + suffix, { force: true });
    syncNames(target);
    renameSync(partial, target);
    syncNames(target);
    return ok(null);
  });
  if (!copied.ok) return err({ kind: "copy", problem: copied.error });
  if (access === null) return err({ kind: "in_use" });
  removeOldCopies(target, "restore");
  return ok({ ...copied.value, kept, hasChecksum: hasChecksum(file), access });
};

/** Gives the former database a second name, unless it is in use, and its logs a copy if they are not part of it. */
const keepFormer = (path: string, kept: string): LogState => {
  const logs = ["-wal", "-journal"].filter((suffix) => existsSync(path + suffix));
  // First, as copies: SQLite deletes a log that it cannot read.
  for (const suffix of logs) copyFileSync(path + suffix, kept + suffix);
  const state = emptyLog(path);
  if (state !== "damaged") for (const suffix of logs) rmSync(kept + suffix);
  if (state !== "in_use") linkSync(path, kept);
  return state;
};

/** `emptied`: the file alone is the whole database. `in_use`: another process has it open, which would go on writing to it. */
type LogState = "emptied" | "in_use" | "damaged";

/** Moves the logs of a database into its file. */
const emptyLog = (path: string): LogState => {
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
