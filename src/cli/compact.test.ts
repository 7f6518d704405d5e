import { INCREMENTAL } from "../foundation/db/free-pages.ts";
import { expect, test } from "bun:test";
import { Database as Sqlite } from "bun:sqlite";
import { mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { createCommandLine } from "../testing/command-line.ts";
import { lockDatabase } from "./prepare-directory.ts";

const { dataDir, run } = createCommandLine();
const path = join(dataDir, "postwarden.db");

/** A database of an older version, whose free pages stay in the file. */
const createOld = () => {
  mkdirSync(dataDir, { recursive: true });
  const sqlite = new Sqlite(path, { create: true });
  for (const statement of ["PRAGMA journal_mode = WAL", "CREATE TABLE t (a)", "DROP TABLE t"]) sqlite.run(statement);
  sqlite.close();
};

test("compact shrinks the file, keeps the data, and lets free pages be returned from then on", async () => {
  expect(await run(["compact"])).toMatchObject({ status: 1, err: expect.stringContaining("No database in") });
  createOld();
  await run(["accounts", "create", "acme"]);
  const sqlite = new Sqlite(path);
  for (let n = 0; n < 50; n++) sqlite.run("INSERT INTO dmarc_raw VALUES (?, zeroblob(100000))", [String(n)]);
  sqlite.run("DELETE FROM dmarc_raw");
  sqlite.query("PRAGMA wal_checkpoint(TRUNCATE)").all();
  sqlite.close();
  const before = statSync(path).size;
  expect(before).toBeGreaterThan(5_000_000);

  const { status, json } = await run(["compact", "--json"]);
  expect([status, json]).toEqual([0, { database: path, bytes_before: before, bytes_after: statSync(path).size }]);
  expect(statSync(path).size).toBeLessThan(before - 4_900_000);
  expect((await run(["accounts", "list"])).out).toContain("acme");
  const compacted = new Sqlite(path);
  expect(compacted.query("PRAGMA auto_vacuum").get()).toEqual({ auto_vacuum: 2 });
  compacted.close();
  expect(readdirSync(dataDir).filter((name) => !/^(postwarden\.db(-wal|-shm)?|server\.lock)$/.test(name))).toEqual([]);
});

test("compact refuses while a server uses the data directory", async () => {
  const lock = lockDatabase(path);
  expect(await run(["compact"])).toMatchObject({ status: 1, err: expect.stringContaining("Another server is using") });
  lock.release();
});

test("a database that `migrate` creates returns free pages in steps, as one that the server creates", async () => {
  const made = join(dataDir, "made");
  expect((await run(["migrate", "--data-dir", made])).status).toBe(0);
  const sqlite = new Sqlite(join(made, "postwarden.db"), { readonly: true });
  expect(sqlite.query("PRAGMA auto_vacuum").get()).toEqual({ auto_vacuum: INCREMENTAL });
  sqlite.close();
});
