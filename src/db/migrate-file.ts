import type { Database as Sqlite } from "bun:sqlite";
import { readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { err, ok, type Result } from "../base/errors.ts";
import { giveToOwnerOf } from "../base/private-file.ts";
import { copyDatabase, describeCopyProblem } from "./backup.ts";
import { migrate, type MigrateProblem, readVersion } from "./migrate.ts";
import type { Migration } from "./migrations.ts";
import { removeAbandonedPartials, syncNames } from "./partial-file.ts";

/** What was migrated. */
export interface Migrated {
  /** The number of migrations before and after. */
  readonly before: number;
  readonly after: number;
  readonly applied: readonly string[];
  /** The file with a copy of the former database; null if none was needed. */
  readonly copy: string | null;
}

/** Copies of former databases that stay, each of another schema. */
const COPIES_MAX = 3;

const COPY_MARK = ".before-";

/** The copies that migrations left beside a database, the newest first. */
export const copiesBeforeMigrations = (path: string): readonly string[] => {
  const start = basename(path) + COPY_MARK;
  const folder = dirname(path);
  return readdirSync(folder)
    .filter((name) => name.startsWith(start) && /^\d{4}_[\w-]+$/.test(name.slice(start.length)))
    .map((name) => join(folder, name))
    .toSorted((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
};

const hasRows = (sqlite: Sqlite): boolean => {
  const tables = sqlite
    .query<{ name: string }, []>("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .all();
  return tables.some(({ name }) => sqlite.query(`SELECT 1 FROM "${name}" LIMIT 1`).get() !== null);
};

/**
 * Copies the database to `<path>.before-<next migration>`, verified, over an older copy of the same schema: a migration
 * that fails at every start must not replace the copies of other schemas.
 */
const copyBefore = (path: string, next: Migration): Result<string, MigrateProblem> => {
  const copy = path + COPY_MARK + next.name;
  const failed = (detail: string) => err({ kind: "no_copy" as const, next: next.name, detail });
  try {
    const copied = copyDatabase(path, copy, (partial) => {
      giveToOwnerOf(path, partial);
      renameSync(partial, copy);
      syncNames(copy);
      return ok(null);
    });
    if (!copied.ok) return failed(describeCopyProblem(path, copy, copied.error));
  } catch (error) {
    return failed(`${copy}: ${error instanceof Error ? error.message : String(error)}.`);
  }
  for (const old of copiesBeforeMigrations(path).slice(COPIES_MAX)) rmSync(old, { force: true });
  return ok(copy);
};

/**
 * Migrates the database in the file `path`, which `sqlite` has open, to the newest schema. If it has rows, a verified copy
 * is made first, unless `copyFirst` is false; without a copy nothing is migrated.
 */
export const migrateFile = (
  sqlite: Sqlite,
  path: string,
  { migrations, copyFirst = true }: { readonly migrations: readonly Migration[]; readonly copyFirst?: boolean },
): Result<Migrated, MigrateProblem> => {
  const checked = readVersion(sqlite, migrations.length);
  if (!checked.ok) return checked;
  const before = checked.value;
  const next = migrations[before];
  let copy: string | null = null;
  if (copyFirst && before > 0 && next !== undefined && path !== ":memory:" && hasRows(sqlite)) {
    const copied = copyBefore(path, next);
    if (!copied.ok) return copied;
    copy = copied.value;
  }
  const migrated = migrate(sqlite, migrations);
  return migrated.ok ? ok({ before, after: migrations.length, applied: migrated.value, copy }) : migrated;
};

/** Removes what interrupted restores and migrations left beside a database. The caller holds the server lock. */
export const removeAbandonedCopies = (path: string): void =>
  removeAbandonedPartials(dirname(path), (name) => name.startsWith(basename(path)));
