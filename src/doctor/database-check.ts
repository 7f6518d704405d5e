import { Database as Sqlite } from "bun:sqlite";
import { existsSync, statSync } from "node:fs";
import { type Result, errorText } from "../foundation/base/errors.ts";
import { inspectDatabase } from "../foundation/db/database-state.ts";
import { describeMigrateProblem } from "../foundation/db/migrate.ts";
import { type DoctorCheck, doctorFindings } from "./doctor-check.ts";

const databaseCheck = doctorFindings("database", "Database", "running-it#data-directory");

/** Whether this user may look into the data directory; one that does not exist hides nothing. */
const mayEnter = (dataDir: string): boolean => {
  if (!existsSync(dataDir)) return true;
  try {
    // The final dot makes this need the right to enter the directory.
    statSync(`${dataDir}/.`);
    return true;
  } catch {
    return false;
  }
};

/** Where the database is, or why it cannot be used. */
export type DatabasePlace = Result<string, { readonly isMissing: boolean; readonly problem: string }>;

export interface DatabaseCheckOptions {
  readonly dataDir: string;
  readonly database: string;
  readonly place: () => DatabasePlace;
  /** A larger file is not checked for damage. Default: what a command may wait for. */
  readonly checkedBytesMax?: number | undefined;
}

/** Whether the database can be used. Creates and migrates nothing. */
export const checkDatabase = ({ dataDir, database, place, checkedBytesMax }: DatabaseCheckOptions): DoctorCheck => {
  if (!mayEnter(dataDir))
    return databaseCheck.fail(
      `This user may not enter ${dataDir}, so doctor cannot find its database. Run doctor as the user of the service, or as root.`,
    );
  try {
    const found = place();
    if (found.ok) return inspect(found.value, checkedBytesMax);
    const { isMissing, problem } = found.error;
    return isMissing
      ? databaseCheck.warn(`${problem} \`postwarden serve\` creates a new one.`)
      : databaseCheck.fail(problem);
  } catch (error) {
    const reason = errorText(error);
    return databaseCheck.fail(
      `${database}: ${reason}. If the file is damaged, run: postwarden restore FILE, with a backup.`,
    );
  }
};

const DOMAINS_MAX = 10_000;

/** The live domains of DMARC monitoring; null when the database cannot be read, or holds too many. */
export const readEnrolledDomains = (database: string): readonly string[] | null => {
  try {
    const sqlite = new Sqlite(database, { readonly: true });
    try {
      const rows = sqlite
        .query<{ domain: string }, [number]>(
          "SELECT DISTINCT domain FROM dmarc_domains WHERE mode = 'live' AND deleted_at_ms IS NULL LIMIT ?",
        )
        .all(DOMAINS_MAX);
      return rows.length === DOMAINS_MAX ? null : rows.map(({ domain }) => domain);
    } finally {
      sqlite.close();
    }
  } catch {
    return null;
  }
};

const inspect = (path: string, checkedBytesMax: number | undefined): DoctorCheck => {
  const inspected = inspectDatabase(path, checkedBytesMax);
  if (!inspected.ok) return databaseCheck.fail(describeMigrateProblem(inspected.error));
  const { damage, isChecked, isWritable, pendingMigrations } = inspected.value;
  if (damage !== null)
    return databaseCheck.fail(`${path} is damaged: ${damage}. Run: postwarden restore FILE, with a backup.`);
  if (!isWritable)
    return databaseCheck.fail(`${path} is not writable. Check the free disk space and which processes use the file.`);
  if (pendingMigrations > 0)
    return databaseCheck.warn(
      `${path} is of an earlier version (migrations to apply: ${pendingMigrations}). Restart the service, or run: postwarden migrate.`,
    );
  return databaseCheck.ok(
    isChecked
      ? `${path} is writable and undamaged.`
      : `${path} is writable. It is too large to be checked for damage here; \`postwarden backup\` does that.`,
  );
};
