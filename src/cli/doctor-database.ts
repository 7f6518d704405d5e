import { existsSync, statSync } from "node:fs";
import type { Config } from "../config.ts";
import { inspectDatabase } from "../db/database-state.ts";
import { describeMigrateProblem } from "../db/migrate.ts";
import { databasePath, prepareDatabase } from "./data-directory.ts";
import { type DoctorCheck, doctorFindings } from "./doctor-check.ts";
import { CommandFailed, type Io } from "./io.ts";

const databaseCheck = doctorFindings("database");

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

/** Whether the database can be used. Creates and migrates nothing. */
export const checkDatabase = (io: Io, config: Config): DoctorCheck => {
  if (!mayEnter(config.dataDir))
    return databaseCheck.fail(
      `Whether there is a database in ${config.dataDir} is not known: this user may not enter it. Run doctor as the user of the service, or as root.`,
    );
  try {
    return inspect(prepareDatabase(io, config, "fail"));
  } catch (error) {
    if (error instanceof CommandFailed)
      return error.code === "no_database"
        ? databaseCheck.warn(`${error.message} \`postwarden serve\` creates a new one.`)
        : databaseCheck.fail(error.message);
    const reason = error instanceof Error ? error.message : String(error);
    return databaseCheck.fail(
      `${databasePath(config)}: ${reason}. If the file is damaged, run: postwarden restore FILE, with a backup.`,
    );
  }
};

const inspect = (path: string): DoctorCheck => {
  const inspected = inspectDatabase(path);
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
