import { Database as Sqlite } from "bun:sqlite";
import { beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createCommandLine } from "../testing/command-line.ts";

const { dataDir, run } = createCommandLine();
const database = join(dataDir, "postwarden.db");
const backups = join(dataDir, "../backups");
const settings = { BACKUP_DIR: backups };

beforeEach(async () => {
  rmSync(dataDir, { recursive: true, force: true });
  rmSync(backups, { recursive: true, force: true });
  mkdirSync(backups);
});

/** The header of a database, and then nothing that could be read. */
const damage = () => {
  mkdirSync(dataDir, { recursive: true });
  const sqlite = new Sqlite(database);
  sqlite.run("CREATE TABLE t (a)");
  sqlite.close();
  writeFileSync(database, Buffer.concat([readFileSync(database).subarray(0, 100), Buffer.alloc(200_000, 0xff)]));
};

describe("a damaged database", () => {
  const NEWEST = "postwarden-2026-01-02T02-30-00Z.db";

  test.each([
    ["serve", ["serve"]],
    ["any command", ["accounts", "list"]],
    ["migrate", ["migrate"]],
  ])("%s names the newest backup and how to restore it", async (_, words) => {
    damage();
    for (const name of ["postwarden-2026-01-01T02-30-00Z.db", NEWEST]) writeFileSync(join(backups, name), "");
    const { status, err } = await run(words, { settings });
    expect(status).toBe(1);
    expect(err).toContain(`postwarden: ${database} is damaged: `);
    expect(err).toContain(
      `The newest backup is ${join(backups, NEWEST)}, of 2026-01-02T02:30:00.000Z. Stop the server and run: postwarden restore ${join(backups, NEWEST)}`,
    );
    expect(err).not.toContain("    at ");
  });

  test("without scheduled backups, the copy from before the last migration is named", async () => {
    damage();
    const copy = `${database}.before-0020_name`;
    writeFileSync(copy, "");
    utimesSync(copy, 0, 0);
    const { err } = await run(["serve"], { settings: { BACKUP_DIR: join(backups, "missing") } });
    expect(err).toContain(`The newest backup is ${copy}, of 1970-01-01T00:00:00.000Z.`);
  });

  test("without any backup, that is said", async () => {
    damage();
    expect((await run(["serve"])).err).toContain("Found no backup in POSTWARDEN_BACKUP_DIR or beside it.");
  });
});

describe("a data directory without a database", () => {
  test.each<[string, () => void]>([
    ["that does not exist", () => undefined],
    ["with an empty file", () => [mkdirSync(dataDir), writeFileSync(database, "")]],
  ])("%s is not begun anew while there are backups", async (_, prepare) => {
    prepare();
    writeFileSync(join(backups, "postwarden-2026-01-01T02-30-00Z.db"), "");
    const { status, err } = await run(["serve"], { settings });
    expect(status).toBe(1);
    expect(err).toContain(`postwarden restore ${join(backups, "postwarden-2026-01-01T02-30-00Z.db")}`);
    expect(err).toContain("To begin with an empty database, run: postwarden migrate");
  });
});
