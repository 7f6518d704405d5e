import { Database as Sqlite } from "bun:sqlite";
import { dnsServersOf } from "../service/platform.ts";
import { type Config, settingsInForce } from "../service/config.ts";
import { INCREMENTAL } from "../foundation/db/free-pages.ts";
import { describeMigrateProblem } from "../foundation/db/migrate.ts";
import { type Migrated, migrateFile } from "../foundation/db/migrate-file.ts";
import { MIGRATIONS } from "../foundation/db/migrations.ts";
import { createDatabaseFile, NEWLY_MIGRATED } from "../foundation/db/new-database.ts";
import { keepDatabasePrivate } from "../foundation/db/database-files.ts";
import { COMMIT, VERSION } from "../service/version.ts";
import { command, unless } from "./command.ts";
import { CommandFailed } from "./io.ts";
import { databaseFailure } from "./data-directory.ts";
import { loadConfig, prepareDatabase } from "./prepare-directory.ts";

const migrateDatabase = (path: string, config: Config, copyFirst: boolean): Migrated => {
  let sqlite: Sqlite | null = null;
  try {
    if (createDatabaseFile(path)) return NEWLY_MIGRATED;
    keepDatabasePrivate(path);
    sqlite = new Sqlite(path, { create: true, readwrite: true });
    // Before the first table, as `openDb` does; has no effect on a database with tables.
    sqlite.run(`PRAGMA auto_vacuum = ${INCREMENTAL}`);
    const migrated = migrateFile(sqlite, path, { migrations: MIGRATIONS, copyFirst });
    if (migrated.ok) return migrated.value;
    throw new CommandFailed(`${path}: ${describeMigrateProblem(migrated.error)}`, migrated.error.kind);
  } catch (error) {
    throw error instanceof CommandFailed ? error : databaseFailure(path, error, config);
  } finally {
    sqlite?.close();
  }
};

const asText = (value: string | number | readonly (string | number)[] | null): string => {
  if (value === null || (Array.isArray(value) && value.length === 0)) return "(not set)";
  return Array.isArray(value) ? value.join(",") : String(value);
};

const MIGRATE = command({
  description: "Create the database, or migrate it to the schema of this version; `serve` does this at startup.",
  example: "migrate",
  options: { copy: unless("migrate without a copy of the former database, for lack of disk space") },
  run({ io, print }, { copy: copyFirst }) {
    const config = loadConfig(io);
    const path = prepareDatabase(io, config, "create");
    const migrated = migrateDatabase(path, config, copyFirst);
    const { before, applied, copy } = migrated;
    print({ database: path, ...migrated }, () =>
      applied.length === 0
        ? `${path} is up to date (${before} migrations).`
        : `Applied ${applied.join(", ")} to ${path}.${copy === null ? "" : ` A copy of the former database: ${copy}`}`,
    );
  },
});

const CONFIG = command({
  description: "Check the settings and print the effective values, without secrets.",
  example: "config --env-file /etc/postwarden.env",
  run({ io, print }) {
    const config = loadConfig(io);
    const shown = settingsInForce({ ...config, dnsServers: dnsServersOf(config) });
    print(shown, () => {
      const rows = Object.entries(shown);
      const width = Math.max(...rows.map(([name]) => name.length));
      return rows.map(([name, value]) => `${name.padEnd(width)}  ${asText(value)}`).join("\n");
    });
  },
});

const VERSIONS = command({
  description: "Print the version and commit of this binary.",
  example: "version --json",
  run({ print }) {
    const versions = { version: VERSION, commit: COMMIT, bun: Bun.version, schema: MIGRATIONS.length };
    const commit = COMMIT === null ? "" : `commit ${COMMIT}, `;
    print(versions, () => `postwarden ${VERSION} (${commit}bun ${Bun.version}, schema ${MIGRATIONS.length})`);
  },
});

export const MAINTENANCE_COMMANDS = { migrate: MIGRATE, config: CONFIG, version: VERSIONS };
