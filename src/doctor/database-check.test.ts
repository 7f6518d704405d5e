import { Database as Sqlite } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readConfig } from "../service/config.ts";
import { migrate } from "../foundation/db/migrate.ts";
import { MIGRATIONS } from "../foundation/db/migrations.ts";
import { checkDatabase } from "./database-check.ts";
import { databasePath } from "../cli/prepare-directory.ts";
import { databasePlaceOf } from "../cli/doctor.ts";
import { systemIo } from "../cli/io.ts";

const folder = mkdtempSync(join(tmpdir(), "doctor-database-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** A data directory with a database of a number of migrations. */
const dataDirOf = (name: string, migrations: number): string => {
  const dataDir = join(folder, name);
  mkdirSync(dataDir, { mode: 0o700 });
  const sqlite = new Sqlite(join(dataDir, "postwarden.db"), { create: true, readwrite: true });
  migrate(sqlite, MIGRATIONS.slice(0, migrations));
  sqlite.close();
  chmodSync(join(dataDir, "postwarden.db"), 0o600);
  return dataDir;
};

const look = (dataDir: string) => {
  const config = readConfig({ POSTWARDEN_DATA_DIR: dataDir });
  if (!config.ok) throw new Error(config.error.join(" "));
  const { value } = config;
  return checkDatabase({ dataDir, database: databasePath(value), place: () => databasePlaceOf(systemIo, value) });
};

test("a current database is ok, one of an earlier version a warning that names the command", () => {
  expect(look(dataDirOf("current", MIGRATIONS.length))).toMatchObject({ check: "database", state: "ok" });
  expect(look(dataDirOf("old", MIGRATIONS.length - 1))).toMatchObject({
    state: "warn",
    message: expect.stringContaining("(migrations to apply: 1). Restart the service, or run: postwarden migrate."),
  });
});

test("a database that another process is writing to is writable", () => {
  const dataDir = dataDirOf("busy", MIGRATIONS.length);
  const other = new Sqlite(join(dataDir, "postwarden.db"));
  other.run("PRAGMA journal_mode = WAL");
  other.run("BEGIN IMMEDIATE");
  expect(look(dataDir)).toMatchObject({ state: "ok" });
  other.run("ROLLBACK");
  other.close();
});

test("a missing database is a warning", () => {
  expect(look(join(folder, "none"))).toMatchObject({
    state: "warn",
    message: expect.stringContaining("No database in"),
  });
});
