import { Database as Sqlite } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, systemClock } from "../base/clock.ts";
import { type Db, openDb } from "./open.ts";
import { clearPageGaps } from "./page-gaps.ts";

let folder = "";
const opened: Db[] = [];
const path = () => join(folder, "a.db");
/** Waits are over in the next turn. */
const clock: Clock = {
  ...systemClock,
  after: (_ms: number, task: () => void) => {
    setImmediate(task);
    return () => undefined;
  },
};

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postwarden-gaps-"));
});
afterEach(() => {
  for (const db of opened.splice(0)) db.close();
  rmSync(folder, { recursive: true });
});

const open = (file = path()): Db => {
  const result = openDb(file);
  if (!result.ok) throw new Error(result.error.kind);
  opened.push(result.value);
  return result.value;
};

/** Keys in no order, as IDs of lists and hashes are, so that pages are split and joined everywhere. */
const keyOf = (n: number): string => createHash("sha256").update(String(n)).digest("hex");

const ROWS = 12_000;
const emailOf = (n: number): string => `user${n}@${n % 2 === 0 ? "deleted" : "kept"}-${n % 50}.example`;

/** Rows of all sizes, some on overflow pages; the even ones are then deleted in steps. */
const fillAndDelete = (db: Db): void => {
  db.sqlite.run("CREATE TABLE v (key TEXT PRIMARY KEY, email TEXT, n INTEGER, body TEXT) WITHOUT ROWID");
  db.sqlite.run("CREATE TABLE w (key TEXT PRIMARY KEY, email TEXT, n INTEGER)");
  for (const index of ["v_email ON v (email)", "v_n ON v (n)", "w_email ON w (email, key)"])
    db.sqlite.run(`CREATE INDEX ${index}`);
  const toV = db.sqlite.prepare("INSERT INTO v VALUES (?, ?, ?, ?)");
  const toW = db.sqlite.prepare("INSERT INTO w VALUES (?, ?, ?)");
  const inSteps = (count: number, visit: (n: number) => void): void => {
    for (let from = 0; from < count; from += 200)
      db.transact(() => {
        for (let n = from; n < Math.min(count, from + 200); n++) visit(n);
      });
  };
  inSteps(ROWS, (n) => {
    toV.run(keyOf(n), emailOf(n), n, emailOf(n).repeat(n % 500 === 0 ? 400 : n % 4));
    toW.run(keyOf(n + ROWS), emailOf(n), n);
  });
  inSteps(ROWS / 2, (n) => {
    for (const table of ["v", "w"]) db.sqlite.query(`DELETE FROM ${table} WHERE n = ?`).run(n * 2);
  });
};

/** Addresses of deleted rows in the file and its write-ahead log. */
const traces = ({ sqlite }: Db): number => {
  sqlite.query("PRAGMA wal_checkpoint(TRUNCATE)").all();
  const text = readFileSync(path(), "latin1") + readFileSync(`${path()}-wal`, "latin1");
  return new Set(text.match(/user\d+@deleted/g)).size;
};
const rowsOf = ({ sqlite }: Db): unknown =>
  ["v", "w"].map((table) => sqlite.query(`SELECT * FROM ${table} ORDER BY key`).values());

test("deleted rows leave traces where SQLite moved them; these are cleared, and nothing else changes", async () => {
  const db = open();
  fillAndDelete(db);
  const rows = rowsOf(db);
  expect(traces(db)).toBeGreaterThan(0);
  const cleared = await clearPageGaps(db);
  expect(cleared).toMatchObject({ outcome: "cleared" });
  expect(cleared.pages).toBeGreaterThan(100);
  expect(traces(db)).toBe(0);
  expect(db.sqlite.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
  expect(rowsOf(db)).toEqual(rows);
  // Several pages of the pointer map, which look like pages of a tree.
  expect(Number(Object.values(db.sqlite.query("PRAGMA page_count").get() ?? {})[0])).toBeGreaterThan(1_700);
  expect(await clearPageGaps(db)).toEqual({ outcome: "cleared", pages: 0 });
});

test.each(["own", "other"])("the %s connection writes back no trace from a page that it had cached", async (which) => {
  const db = open();
  fillAndDelete(db);
  const other = open();
  for (const each of [db, other]) rowsOf(each);
  await clearPageGaps(db);
  const { sqlite } = which === "own" ? db : other;
  sqlite.run("UPDATE v SET n = n + 1");
  expect(traces(db)).toBe(0);
  expect(db.sqlite.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
});

test("a page of the pointer map is not changed, though its bytes can be read as a page of a tree", async () => {
  const db = open();
  const { sqlite } = db;
  sqlite.run("CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT)");
  const pages = Number(sqlite.query("PRAGMA page_count").values()[0]?.[0]);
  // The second page of the map: between two pages of the table, whose root has a small number.
  const map = 822;
  sqlite.run("INSERT INTO dmarc_raw VALUES ('fill', zeroblob(?))", [(map - 10 - pages) * 4_090]);
  db.transact(() => {
    // Pages end with the number of a tree's page in the map.
    for (let n = 0; n < 6_000; n++)
      sqlite.run("INSERT INTO t (text) VALUES (?)", [`${emailOf(n)}\u0005`.padEnd(120, "\u0005")]);
  });
  sqlite.query("PRAGMA wal_checkpoint(TRUNCATE)").all();
  const mapBytes = () => readFileSync(path()).subarray((map - 1) * 4_096, map * 4_096);
  const before = Buffer.from(mapBytes());
  // Type 5, of the parent with this number; then type 5 again, which makes a gap behind the pointers.
  expect([before[0], before[5]]).toEqual([5, 5]);
  expect(12 + 2 * before.readUInt16BE(3)).toBeLessThan(before.readUInt16BE(5));
  await clearPageGaps(db);
  expect(mapBytes().equals(before)).toBe(true);
  expect(sqlite.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
});

test("content that looks like a page of a tree is not changed", async () => {
  const db = open();
  const blob = Buffer.alloc(4_096 * 300, 7);
  for (let at = 0; at < blob.length; at++) blob[at] = [13, 0, 0, 0, 1, 15, 0, 0][at % 8] ?? 0;
  db.sqlite.run("INSERT INTO dmarc_raw VALUES ('a', ?)", [blob]);
  db.sqlite.run("INSERT INTO dmarc_raw VALUES ('b', ?)", [blob]);
  db.sqlite.run("DELETE FROM dmarc_raw WHERE ingestion = 'a'");
  await clearPageGaps(db);
  const stored = db.sqlite.query<{ raw: Uint8Array }, []>("SELECT * FROM dmarc_raw").values()[0]?.[1];
  expect(Buffer.from(stored as Uint8Array).equals(blob)).toBe(true);
});

test("while another connection reads, nothing is written; the next run clears it", async () => {
  const db = open();
  fillAndDelete(db);
  const left = traces(db);
  const reader = new Sqlite(path(), { readonly: true });
  db.sqlite.run("UPDATE w SET n = n + 1");
  reader.run("BEGIN");
  reader.query("SELECT count(*) FROM v").get();
  db.sqlite.run("UPDATE w SET n = n + 1");
  const before = readFileSync(path());
  expect(await clearPageGaps(db, () => false, clock)).toEqual({ outcome: "busy", pages: 0 });
  expect(readFileSync(path()).equals(before)).toBe(true);
  reader.run("COMMIT");
  reader.close();
  expect(left).toBeGreaterThan(0);
  expect(await clearPageGaps(db, () => false, clock)).toMatchObject({ outcome: "cleared" });
  expect(traces(db)).toBe(0);
  expect(db.sqlite.query("PRAGMA busy_timeout").get()).toEqual({ timeout: 5_000 });
});

test("it stops after a step, and the next run continues", async () => {
  const db = open();
  fillAndDelete(db);
  let steps = 0;
  expect(await clearPageGaps(db, () => ++steps > 2)).toMatchObject({ outcome: "stopped" });
  expect(traces(db)).toBeGreaterThan(0);
  await clearPageGaps(db);
  expect(traces(db)).toBe(0);
});

test("a database without a pointer map is left to compact, and one in memory has no file", async () => {
  const plain = new Sqlite(path());
  plain.run("PRAGMA auto_vacuum = NONE");
  plain.run("CREATE TABLE early (x)");
  plain.run("DROP TABLE early");
  plain.close();
  expect(await clearPageGaps(open())).toEqual({ outcome: "unsupported", pages: 0 });
  expect(await clearPageGaps(open(":memory:"))).toEqual({ outcome: "cleared", pages: 0 });
});
