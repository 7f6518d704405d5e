import { afterEach, expect, test } from "bun:test";
import { Database as Sqlite } from "bun:sqlite";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { canReturnPages, freeBytesOf, returnFreePages } from "./free-pages.ts";
import { type Db, openDb } from "./open.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

const newPath = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "postwarden-free-"));
  folders.push(folder);
  return join(folder, "a.db");
};

const openOrThrow = (path: string): Db => {
  const opened = openDb(path);
  if (!opened.ok) throw new Error(opened.error.kind);
  return opened.value;
};

const MEGABYTE = 1024 * 1024;

/** Writes 20 MB and deletes them. */
const fillAndEmpty = ({ sqlite }: Db): void => {
  for (let n = 0; n < 20; n++)
    sqlite.run("INSERT INTO dmarc_raw VALUES (?, ?)", [String(n), Buffer.alloc(MEGABYTE, 7)]);
  sqlite.run("DELETE FROM dmarc_raw");
};

const sizeOf = ({ sqlite }: Db, path: string): number => {
  sqlite.query("PRAGMA wal_checkpoint(TRUNCATE)").all();
  return statSync(path).size;
};

test("the free pages of a new database are returned to the file system", async () => {
  const path = newPath();
  const db = openOrThrow(path);
  const before = sizeOf(db, path);
  fillAndEmpty(db);
  expect(freeBytesOf(db)).toBeGreaterThan(19 * MEGABYTE);
  let commits = 0;
  const commit: Db["commit"] = (work) => {
    commits++;
    return db.commit(work);
  };
  const returned = await returnFreePages({ sqlite: db.sqlite, commit }, () => false);
  expect(returned).toBeGreaterThan(19 * MEGABYTE);
  expect(commits).toBeGreaterThan(10);
  expect(freeBytesOf(db)).toBe(0);
  expect(sizeOf(db, path)).toBeLessThan(before + MEGABYTE);
  expect(db.damage()).toBeNull();
  db.close();
});

test("a stop leaves the rest for the next time", async () => {
  const db = openOrThrow(newPath());
  fillAndEmpty(db);
  let steps = 0;
  await returnFreePages(db, () => ++steps > 2);
  expect(freeBytesOf(db)).toBeGreaterThan(10 * MEGABYTE);
  db.close();
});

test("a database of an older version is left as it is", async () => {
  const path = newPath();
  const old = new Sqlite(path, { create: true });
  for (const statement of ["PRAGMA journal_mode = WAL", "CREATE TABLE t (a)", "DROP TABLE t"]) old.run(statement);
  old.close();
  const db = openOrThrow(path);
  expect(canReturnPages(db)).toBe(false);
  fillAndEmpty(db);
  expect(await returnFreePages(db, () => false)).toBe(0);
  expect(freeBytesOf(db)).toBeGreaterThan(19 * MEGABYTE);
  db.close();
});

test("what is deleted is overwritten in the file", () => {
  const path = newPath();
  const db = openOrThrow(path);
  db.sqlite.run("INSERT INTO suppressions VALUES ('secret-trace@example.com', NULL, 1)");
  sizeOf(db, path);
  expect(readFileSync(path).includes("secret-trace")).toBe(true);
  db.sqlite.run("DELETE FROM suppressions");
  sizeOf(db, path);
  expect(readFileSync(path).includes("secret-trace")).toBe(false);
  db.close();
});
