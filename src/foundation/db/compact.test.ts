import { afterEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, statSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compactDatabase } from "./free-pages.ts";
import { type Db, openDb } from "./open.ts";

const folders: string[] = [];
const open: Db[] = [];
afterEach(() => {
  for (const { sqlite } of open) sqlite.run("PRAGMA temp_store_directory = ''");
  for (const db of open.splice(0)) db.close();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

const newDatabase = () => {
  const root = mkdtempSync(join(tmpdir(), "postwarden-compact-"));
  folders.push(root);
  const folder = join(root, "o'neil");
  mkdirSync(folder);
  const path = join(folder, "a.db");
  const opened = openDb(path);
  if (!opened.ok) throw new Error(opened.error.kind);
  open.push(opened.value);
  return { folder, path, db: opened.value };
};

test("the copy is made in a file beside the database, whatever characters its folder has, not in memory or in /tmp", () => {
  const { db, folder, path } = newDatabase();
  expect(compactDatabase(db, path).ok).toBe(true);
  expect(db.sqlite.query("PRAGMA temp_store").values()).toEqual([[1]]);
  expect(db.sqlite.query("PRAGMA temp_store_directory").values()).toEqual([[folder]]);
});

test("reports the size with the log moved into the file, before and after", () => {
  const { db, path } = newDatabase();
  db.sqlite.run("INSERT INTO dmarc_raw VALUES ('a', zeroblob(1000000))");
  db.sqlite.run("DELETE FROM dmarc_raw");
  const compacted = compactDatabase(db, path);
  if (!compacted.ok) throw new Error("too little space");
  expect(compacted.value.after).toBeLessThan(compacted.value.before - 990_000);
  expect(statSync(`${path}-wal`).size).toBe(0);
});

test("a database that has no room for its copies is left as it is", () => {
  const { db, path } = newDatabase();
  db.sqlite.query("PRAGMA wal_checkpoint(TRUNCATE)").all();
  const terabytes = 4 * 1024 ** 4;
  // A hole: it takes no space of the disk, but counts.
  truncateSync(path, terabytes);
  const compacted = compactDatabase(db, path);
  if (compacted.ok) throw new Error("compacted");
  expect(compacted.error.required).toBeGreaterThan(compacted.error.available);
  expect(statSync(path).size).toBe(terabytes);
});
