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
import { checkChecksum } from "./partial-file.ts";
import { describeMigrateProblem, migrate } from "./migrate.ts";
import { keptCopies, removeAbandonedCopies } from "./backup-directory.ts";
import { migrateFile } from "./migrate-file.ts";
import type { Migration } from "./migrations.ts";

const ALL: readonly Migration[] = [
  { name: "0000_first", sql: "CREATE TABLE a (x)" },
  { name: "0001_second", sql: "CREATE TABLE b (x)" },
  { name: "0002_third", sql: "INSERT INTO b SELECT x FROM a" },
];
let folder = "";
const at = (name: string) => join(folder, name);
const path = () => at("postwarden.db");
const copies = () => keptCopies(path(), "migration").map(({ file }) => file);

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
    expect(readdirSync(folder).toSorted()).toEqual([
      "postwarden.db",
      "postwarden.db.before-0001_second",
      "postwarden.db.before-0001_second.sha256",
    ]);
    expect(checkChecksum(copy)).toBe("matches");
  });

  test.each<[string, () => Sqlite]>([
    ["a new database", () => open(0)],
    ["a database without rows", () => open(1)],
    ["an up-to-date database", () => open(3, "kept")],
  ])("%s is not copied", (_, prepare) => {
    expect(migrateFile(prepare(), path(), { migrations: ALL })).toMatchObject({ ok: true, value: { copy: null } });
    expect(copies()).toEqual([]);
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
    expect(copies()).toEqual([]);
  });

  test("an upgrade that is interrupted again and again keeps the copy from before it, and makes no other", () => {
    const former = ["0010_a", "0011_b", "0012_c"].map((name) => `${path()}.before-${name}`);
    for (const [index, file] of former.entries()) {
      writeFileSync(file, "");
      utimesSync(file, index, index);
    }
    const steps = Array.from({ length: 6 }, (_, step) => ({
      name: `000${step + 1}_step`,
      sql: `CREATE TABLE step${step} (x)`,
    }));
    const broken: Migration = { name: "0009_broken", sql: "INSERT INTO missing VALUES (1)" };
    const sqlite = open(1, "first");
    // Each start applies one migration more and fails at the next.
    for (let done = 1; done <= steps.length; done++)
      expect(() =>
        migrateFile(sqlite, path(), { migrations: [...ALL.slice(0, 1), ...steps.slice(0, done), broken] }),
      ).toThrow();
    const copy = `${path()}.before-0001_step`;
    expect(copies()).toEqual([copy, ...former.toReversed()]);
    expect(rowsOf(copy, "a")).toEqual(["first"]);
    expect(() => rowsOf(copy, "step0")).toThrow();

    // The release that ends it removes the oldest copy, and the next upgrade makes a new one.
    expect(migrateFile(sqlite, path(), { migrations: [...ALL.slice(0, 1), ...steps] })).toMatchObject({
      value: { copy: null, applied: [] },
    });
    expect(copies()).toEqual([copy, ...former.toReversed().slice(0, 2)]);
    const after: Migration = { name: "0007_after", sql: "CREATE TABLE after (x)" };
    const next = migrateFile(sqlite, path(), { migrations: [...ALL.slice(0, 1), ...steps, after] });
    expect(next).toMatchObject({ value: { copy: `${path()}.before-0007_after` } });
    expect(copies()).toEqual([`${path()}.before-0007_after`, copy, former[2] ?? ""]);
    expect(() => sqlite.run("SELECT * FROM unfinished_upgrade")).toThrow();
  });

  test("an interrupted upgrade without a copy makes none of a state between two versions", () => {
    const failing = [...ALL.slice(0, 2), { name: "0002_third", sql: "INSERT INTO missing VALUES (1)" }];
    const sqlite = open(1, "first");
    expect(() => migrateFile(sqlite, path(), { migrations: failing, copyFirst: false })).toThrow();
    expect(migrateFile(sqlite, path(), { migrations: ALL })).toMatchObject({ value: { copy: null } });
    expect(copies()).toEqual([]);
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
    expect(copies()).toEqual([`${path()}.before-0001_second`, `${path()}.before-0013_d`, `${path()}.before-0012_c`]);
    expect(others.every((file) => existsSync(file))).toBe(true);
  });
});

test("what an interrupted copy left is removed, and nothing of a process that lives", () => {
  const restored = "postwarden.db.before-restore-2026-01-01T00-00-00-000Z";
  const left = [
    "postwarden.db.before-0001_second.4194305.partial",
    "postwarden.db.4194305.partial-journal",
    "postwarden.db.before-restore-2026-01-02T00-00-00-000Z-wal",
    "postwarden.db.before-0001_second.sha256",
  ];
  const kept = [
    ...["postwarden.db", "postwarden.db-wal", "postwarden.db.1.partial", "other.db.4194305.partial"],
    ...[restored, `${restored}-wal`, "postwarden.db.before-mine-wal"],
  ];
  for (const name of [...left, ...kept]) writeFileSync(at(name), "");
  removeAbandonedCopies(path());
  expect(readdirSync(folder).toSorted()).toEqual(kept.toSorted());
});
