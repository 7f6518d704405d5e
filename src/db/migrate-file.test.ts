import { Database as Sqlite } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeMigrateProblem, migrate } from "./migrate.ts";
import { copiesBeforeMigrations, migrateFile, removeAbandonedCopies } from "./migrate-file.ts";
import type { Migration } from "./migrations.ts";

const ALL: readonly Migration[] = [
  { name: "0000_first", sql: "CREATE TABLE a (x)" },
  { name: "0001_second", sql: "CREATE TABLE b (x)" },
  { name: "0002_third", sql: "INSERT INTO b SELECT x FROM a" },
];
let folder = "";
const at = (name: string) => join(folder, name);
const path = () => at("postwarden.db");

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postwarden-migrate-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A database with the first migrations and, if asked, a row. */
const open = (count: number, row?: string): Sqlite => {
  const sqlite = new Sqlite(path());
  migrate(sqlite, ALL.slice(0, count));
  if (row !== undefined) sqlite.run("INSERT INTO a VALUES (?)", [row]);
  return sqlite;
};
const rowsOf = (file: string, name: string): unknown => {
  const sqlite = new Sqlite(file, { readonly: true });
  const rows = sqlite.query(`SELECT x FROM ${name}`).values().flat();
  sqlite.close();
  return rows;
};

describe("before a migration", () => {
  test("a database with rows is copied as it was, beside itself, for its owner only", () => {
    const sqlite = open(1, "kept");
    const copy = `${path()}.before-0001_second`;
    expect(migrateFile(sqlite, path(), { migrations: ALL })).toEqual({
      ok: true,
      value: { before: 1, after: 3, applied: ["0001_second", "0002_third"], copy },
    });
    sqlite.close();
    expect(rowsOf(copy, "a")).toEqual(["kept"]);
    expect(rowsOf(path(), "b")).toEqual(["kept"]);
    expect(() => rowsOf(copy, "b")).toThrow();
    expect(statSync(copy).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder).toSorted()).toEqual(["postwarden.db", "postwarden.db.before-0001_second"]);
  });

  test.each<[string, () => Sqlite]>([
    ["a new database", () => open(0)],
    ["a database without rows", () => open(1)],
    ["an up-to-date database", () => open(3, "kept")],
  ])("%s is not copied", (_, prepare) => {
    expect(migrateFile(prepare(), path(), { migrations: ALL })).toMatchObject({ ok: true, value: { copy: null } });
    expect(copiesBeforeMigrations(path())).toEqual([]);
  });

  test("without a copy nothing is migrated; the message says how to go on", () => {
    const sqlite = open(1, "kept");
    // A directory of the name of the copy: the copy cannot get its name.
    const blocker = `${path()}.before-0001_second/file`;
    mkdirSync(join(blocker, ".."));
    writeFileSync(blocker, "");
    const migrated = migrateFile(sqlite, path(), { migrations: ALL });
    expect(migrated).toMatchObject({ ok: false, error: { kind: "no_copy", next: "0001_second" } });
    if (!migrated.ok) expect(describeMigrateProblem(migrated.error)).toContain("postwarden migrate --no-copy");
    expect(sqlite.query("PRAGMA user_version").get()).toEqual({ user_version: 1 });
    expect(readdirSync(folder).filter((name) => name.includes("partial"))).toEqual([]);
    expect(migrateFile(sqlite, path(), { migrations: ALL, copyFirst: false })).toMatchObject({ ok: true });
  });

  test("a damaged database is not migrated", () => {
    const whole = open(1, "kept");
    for (let row = 0; row < 200; row++) whole.run("INSERT INTO a VALUES (?)", ["x".repeat(1_000)]);
    whole.close();
    const bytes = readFileSync(path());
    writeFileSync(path(), bytes.fill("damaged", bytes.length / 2, bytes.length / 2 + 8_192));
    const sqlite = new Sqlite(path());
    expect(migrateFile(sqlite, path(), { migrations: ALL })).toMatchObject({
      ok: false,
      error: { kind: "no_copy", detail: expect.stringContaining("is damaged") },
    });
    expect(sqlite.query("PRAGMA user_version").get()).toEqual({ user_version: 1 });
    expect(copiesBeforeMigrations(path())).toEqual([]);
  });

  test("a copy of the same schema is replaced, so that a failing migration leaves the copies of others", () => {
    const failing = [...ALL.slice(0, 2), { name: "0002_third", sql: "INSERT INTO missing VALUES (1)" }];
    const sqlite = open(1, "first");
    for (let start = 0; start < 5; start++)
      expect(() => migrateFile(sqlite, path(), { migrations: failing })).toThrow();
    expect(copiesBeforeMigrations(path()).toSorted()).toEqual([
      `${path()}.before-0001_second`,
      `${path()}.before-0002_third`,
    ]);
    expect(rowsOf(`${path()}.before-0001_second`, "a")).toEqual(["first"]);
  });

  test("the three newest copies stay, and files of other names", () => {
    const old = ["0010_a", "0011_b", "0012_c", "0013_d"].map((name) => `${path()}.before-${name}`);
    for (const [index, file] of old.entries()) {
      writeFileSync(file, "");
      utimesSync(file, index, index);
    }
    const others = ["postwarden.db.before-restore-2026-01-01T00-00-00-000Z", "postwarden.db.before-mine"].map(at);
    for (const file of others) writeFileSync(file, "");
    migrateFile(open(1, "kept"), path(), { migrations: ALL });
    expect(copiesBeforeMigrations(path())).toEqual([
      `${path()}.before-0001_second`,
      `${path()}.before-0013_d`,
      `${path()}.before-0012_c`,
    ]);
    expect(others.every((file) => existsSync(file))).toBe(true);
  });
});

test("what an interrupted copy left is removed, and nothing of a process that lives", () => {
  const left = ["postwarden.db.before-0001_second.4194305.partial", "postwarden.db.4194305.partial-journal"];
  const kept = ["postwarden.db", "postwarden.db.1.partial", "other.db.4194305.partial"];
  for (const name of [...left, ...kept]) writeFileSync(at(name), "");
  removeAbandonedCopies(path());
  expect(readdirSync(folder).toSorted()).toEqual(kept.toSorted());
});
