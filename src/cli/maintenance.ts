import { Database as Sqlite } from "bun:sqlite";
import type { Command } from "commander";
import { dnsServersOf } from "../compose.ts";
import { describeMigrateProblem, migrate, schemaVersion } from "../db/migrate.ts";
import { MIGRATIONS } from "../db/migrations.ts";
import { formatServer } from "../net/dns.ts";
import { VERSION } from "../version.ts";
import { CommandFailed, type Io, print } from "./io.ts";
import { databasePath, loadConfig } from "./workspace.ts";

/** `migrate`, `config`, `version` */
export const addMaintenanceCommands = (program: Command, io: Io): void => {
  program
    .command("migrate")
    .description("bring the database to this binary's schema (serve does so by itself)")
    .option("--json", "print JSON")
    .action(({ json }) => {
      const path = databasePath(loadConfig());
      const sqlite = new Sqlite(path, { create: true, readwrite: true });
      try {
        const before = schemaVersion(sqlite);
        const migrated = migrate(sqlite, MIGRATIONS);
        if (!migrated.ok)
          throw new CommandFailed(`${path}: ${describeMigrateProblem(migrated.error)}`, migrated.error.kind);
        const applied = migrated.value;
        print(io, json, { database: path, before, after: schemaVersion(sqlite), applied }, () =>
          applied.length === 0
            ? `${path} is up to date (${before} migrations).`
            : `Applied ${applied.join(", ")} to ${path}.`,
        );
      } finally {
        sqlite.close();
      }
    });

  program
    .command("config")
    .description("the settings in force, after defaults and checks")
    .option("--json", "print JSON")
    .action(({ json }) => {
      const config = loadConfig();
      const shown = { ...config, dnsServers: dnsServersOf(config).map(formatServer) };
      const lines = () =>
        Object.entries(shown).map(
          ([name, value]) => `${name.padEnd(22)} ${typeof value === "string" ? value : JSON.stringify(value)}`,
        );
      print(io, json, shown, () => lines().join("\n"));
    });

  program
    .command("version")
    .description("the version of this binary")
    .option("--json", "print JSON")
    .action(({ json }) => {
      const versions = { version: VERSION, bun: Bun.version, schema: MIGRATIONS.length };
      print(io, json, versions, () => `postwarden ${VERSION} (bun ${Bun.version}, schema ${MIGRATIONS.length})`);
    });
};
