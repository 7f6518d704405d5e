import { Database as Sqlite } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspectDatabase } from "./database-state.ts";
import { migrate } from "./migrate.ts";
import { MIGRATIONS } from "./migrations.ts";
import { openDb } from "./open.ts";

const folder = mkdtempSync(join(tmpdir(), "database-state-"));
afterAll(() => rmSync(folder, { recursive: true }));

const fileOf = (name: string, work: (sqlite: Sqlite) => void): string => {
  const path = join(folder, name);
  const sqlite = new Sqlite(path, { create: true, readwrite: true });
  work(sqlite);
  sqlite.close();
  return path;
};
const GOOD = { pendingMigrations: 0, damage: null, isChecked: true, isWritable: true };

test("a database in use is inspected without being changed", () => {
  const path = join(folder, "good.db");
  const opened = openDb(path);
  expect(inspectDatabase(path)).toEqual({ ok: true, value: GOOD });
  if (opened.ok) opened.value.close();
});

test("a database of an earlier version is not migrated", () => {
  const path = fileOf("old.db", (sqlite) => void migrate(sqlite, MIGRATIONS.slice(0, 2)));
  const expected = { ok: true, value: { ...GOOD, pendingMigrations: MIGRATIONS.length - 2 } } as const;
  expect([inspectDatabase(path), inspectDatabase(path)]).toEqual([expected, expected]);
});

test("a database of another program, or of a newer version, is a problem", () => {
  const foreign = fileOf("foreign.db", (sqlite) => void sqlite.run("CREATE TABLE t (a)"));
  expect(inspectDatabase(foreign)).toEqual({ ok: false, error: { kind: "foreign_database" } });
  const newer = fileOf("newer.db", (sqlite) => {
    migrate(sqlite, MIGRATIONS);
    sqlite.run(`PRAGMA user_version = ${MIGRATIONS.length + 1}`);
  });
  expect(inspectDatabase(newer)).toMatchObject({ ok: false, error: { kind: "newer_database" } });
});

test("a file with overwritten pages is damaged, one that is too large is not read", () => {
  const path = fileOf("damaged.db", (sqlite) => {
    migrate(sqlite, MIGRATIONS);
    sqlite.run("CREATE TABLE filler (number INTEGER PRIMARY KEY, text TEXT)");
    const insert = sqlite.prepare("INSERT INTO filler (text) VALUES (?)");
    sqlite.transaction(() => Array.from({ length: 500 }, () => insert.run("x".repeat(500))))();
  });
  expect(inspectDatabase(path)).toMatchObject({ value: { damage: null } });
  const bytes = readFileSync(path);
  writeFileSync(path, bytes.fill(0xff, bytes.length - 40 * 4096, bytes.length - 20 * 4096));
  const damaged = inspectDatabase(path);
  expect(damaged.ok && damaged.value.damage).toBeTruthy();
  truncateSync(path, 300 * 1024 ** 2);
  expect(inspectDatabase(path)).toMatchObject({ value: { isChecked: false, damage: null } });
});

test("a file that is no database throws", () => {
  const path = join(folder, "text.db");
  writeFileSync(path, "hello ".repeat(1000));
  expect(() => inspectDatabase(path)).toThrow("not a database");
});

test("a database whose file may be read but not written is not writable", () => {
  const path = fileOf("unwritable.db", (sqlite) => void migrate(sqlite, MIGRATIONS));
  const bytes = readFileSync(path);
  // The version that a program must know to write the file (SQLite's file format, §1.3.3).
  bytes[18] = 3;
  writeFileSync(path, bytes);
  expect(inspectDatabase(path)).toEqual({ ok: true, value: { ...GOOD, isWritable: false } });
});
