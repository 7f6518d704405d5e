import type { Database as Sqlite } from "bun:sqlite";
import { renameSync } from "node:fs";
import { err, ok, type Result, errorText } from "../base/errors.ts";
import { giveToOwnerOf } from "../base/private-file.ts";
import { copyDatabase, describeCopyProblem } from "./backup.ts";
import { migrate, type MigrateProblem, readVersion } from "./migrate.ts";
import type { Migration } from "./migrations.ts";
import { removeOldCopies } from "./backup-directory.ts";
import { sha256OfFile, syncNames, writeChecksum } from "./partial-file.ts";

/** What was migrated. */
export interface Migrated {
  /** The number of migrations before and after. */
  readonly before: number;
  readonly after: number;
  readonly applied: readonly string[];
  /** The file with a copy of the former database; null if none was needed. */
  readonly copy: string | null;
}

interface MigrateFileOptions {
  readonly migrations: readonly Migration[];
  readonly copyFirst?: boolean;
}

/** In a database whose upgrade has begun and not ended: it was copied before the first of its migrations. */
const UPGRADE_TABLE = "unfinished_upgrade";

const isUnfinished = (sqlite: Sqlite) =>
  sqlite.query("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?").get(UPGRADE_TABLE) !== null;

/** In the transaction of the first migration, so that a database without this table is one that a release knows. */
const beginUpgrade = (sqlite: Sqlite) => void sqlite.run(`CREATE TABLE IF NOT EXISTS ${UPGRADE_TABLE} (began)`);

const endUpgrade = (sqlite: Sqlite) => void sqlite.run(`DROP TABLE IF EXISTS ${UPGRADE_TABLE}`);

const hasRows = (sqlite: Sqlite) => {
  const tables = sqlite
    .query<{ name: string }, []>("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .all();
  return tables.some(({ name }) => sqlite.query(`SELECT 1 FROM "${name}" LIMIT 1`).get() !== null);
};

/** Copies the database to `<path>.before-<next migration>`, verified, over an older copy of the same schema. */
const copyBefore = (path: string, next: Migration): Result<string, MigrateProblem> => {
  const copy = `${path}.before-${next.name}`;
  const failed = (detail: string) => err({ kind: "no_copy" as const, next: next.name, detail });
  try {
    const copied = copyDatabase(path, copy, (partial) => {
      giveToOwnerOf(path, partial);
      writeChecksum(copy, sha256OfFile(partial));
      renameSync(partial, copy);
      syncNames(copy);
      return ok(null);
    });
    if (!copied.ok) return failed(describeCopyProblem(path, copy, copied.error));
  } catch (error) {
    return failed(`${copy}: ${errorText(error)}.`);
  }
  return ok(copy);
};

/**
 * Migrates the database in the file `path`, which `sqlite` has open, to the newest schema. If it has rows, a verified copy
 * is made first, unless `copyFirst` is false; without a copy nothing is migrated. An upgrade that was interrupted continues
 * without a further copy: the one from before it is the only one that a release can use. Older copies are removed once the upgrade is complete.
 */
export const migrateFile = (
  sqlite: Sqlite,
  path: string,
  { migrations, copyFirst = true }: MigrateFileOptions,
): Result<Migrated, MigrateProblem> => {
  const checked = readVersion(sqlite, migrations.length);
  if (!checked.ok) return checked;
  const before = checked.value;
  const next = migrations[before];
  const isResumed = isUnfinished(sqlite);
  const isUpgrade = next !== undefined && before > 0 && path !== ":memory:";
  let copy: string | null = null;
  if (copyFirst && isUpgrade && !isResumed && hasRows(sqlite)) {
    const copied = copyBefore(path, next);
    if (!copied.ok) return copied;
    copy = copied.value;
  }
  const begin = isUpgrade ? () => beginUpgrade(sqlite) : undefined;
  const migrated = migrate(sqlite, migrations, { begin });
  if (!migrated.ok) return migrated;
  if (isUpgrade || isResumed) {
    endUpgrade(sqlite);
    removeOldCopies(path, "migration");
  }
  return ok({ before, after: migrations.length, applied: migrated.value, copy });
};
