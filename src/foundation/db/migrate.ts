import type { Database as Sqlite } from "bun:sqlite";
import { err, ok, type Result } from "../base/errors.ts";
import type { Migration } from "./migrations.ts";

/** "PWDN": marks a SQLite file as a Postwarden database (PRAGMA application_id). */
export const APPLICATION_ID = 0x5057444e;

export type MigrateProblem =
  | { readonly kind: "newer_database"; readonly has: number; readonly knows: number }
  | { readonly kind: "foreign_database" }
  /** There is no copy of the database from before migration `next`, so nothing was migrated. */
  | { readonly kind: "no_copy"; readonly next: string; readonly detail: string };

export const describeMigrateProblem = (problem: MigrateProblem): string => {
  switch (problem.kind) {
    case "newer_database":
      return (
        `The database is newer than this binary: it has ${problem.has} migrations, this binary ${problem.knows}. ` +
        "Start the newer binary, or restore the backup from before the upgrade."
      );
    case "foreign_database":
      return "The file is a SQLite database of another program. Choose another data directory.";
    case "no_copy":
      return (
        `The database was not migrated, because no copy could be made before migration ${problem.next}. ${problem.detail} ` +
        "Or make a backup elsewhere (`postwarden backup FILE`), then run: postwarden migrate --no-copy"
      );
    default:
      return problem satisfies never;
  }
};

const pragma = (sqlite: Sqlite, name: string) => {
  const row = sqlite.query(`PRAGMA ${name}`).get() as Record<string, number> | null;
  return row?.[name] ?? 0;
};

const isEmpty = (sqlite: Sqlite) => sqlite.query("SELECT 1 FROM sqlite_master LIMIT 1").get() === null;

/** The number of migrations applied to a database. */
export const schemaVersion = (sqlite: Sqlite): number => pragma(sqlite, "user_version");

/** The number of migrations applied; a problem when this binary, which knows some, cannot use the database. */
export const readVersion = (sqlite: Sqlite, knows: number): Result<number, MigrateProblem> => {
  // In one transaction: otherwise the file could look foreign while another process migrates it.
  const { has, isForeign } = sqlite.transaction(() => ({
    has: schemaVersion(sqlite),
    isForeign: pragma(sqlite, "application_id") !== APPLICATION_ID && !isEmpty(sqlite),
  }))();
  if (isForeign) return err({ kind: "foreign_database" });
  return has > knows ? err({ kind: "newer_database", has, knows }) : ok(has);
};

export interface MigrateOptions {
  /** Runs in the transaction of the first migration. */
  readonly begin?: (() => void) | undefined;
}

/**
 * Migrates a database to the newest schema, each migration in its own transaction, and returns the names of those
 * applied. Refuses a database that a newer binary has migrated, and that of another program.
 */
export const migrate = (
  sqlite: Sqlite,
  migrations: readonly Migration[],
  { begin }: MigrateOptions = {},
): Result<string[], MigrateProblem> => {
  const version = readVersion(sqlite, migrations.length);
  if (!version.ok) return version;
  const has = version.value;

  const applied: string[] = [];
  for (const [at, { name, sql }] of migrations.entries()) {
    const step = sqlite.transaction(() => {
      // Another process may have been quicker.
      if (schemaVersion(sqlite) > at) return;
      if (applied.length === 0) begin?.();
      sqlite.run(`PRAGMA application_id = ${APPLICATION_ID}`);
      for (const statement of sql.split("--> statement-breakpoint")) sqlite.run(statement);
      sqlite.run(`PRAGMA user_version = ${at + 1}`);
      applied.push(name);
    });
    if (at >= has) step.immediate();
  }
  return ok(applied);
};
