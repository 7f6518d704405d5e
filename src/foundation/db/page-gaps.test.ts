import { Database as Sqlite } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { settle } from "../../testing/clock.ts";
import { type Clock, systemClock } from "../base/clock.ts";
import type { Moved } from "./checkpoints.ts";
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
    db.sqlite.query("DELETE FROM v WHERE n = ?").run(n * 2);
    db.sqlite.query("DELETE FROM w WHERE key = ?").run(keyOf(n * 2 + ROWS));
  });
};

let filled: Buffer | null = null;
/** Opens a database with what `fillAndDelete` leaves, all of it in the file. */
const openFilled = (): Db => {
  if (filled !== null) writeFileSync(path(), filled);
  const db = open();
  if (filled !== null) return db;
  fillAndDelete(db);
  db.sqlite.query("PRAGMA wal_checkpoint(TRUNCATE)").all();
  filled = readFileSync(path());
  return db;
};

/** Addresses of deleted rows in the file and its write-ahead log. */
const traces = ({ sqlite }: Db): number => {
  sqlite.query("PRAGMA wal_checkpoint(TRUNCATE)").all();
  const text = readFileSync(path(), "latin1") + readFileSync(`${realpathSync(path())}-wal`, "latin1");
  return new Set(text.match(/user\d+@deleted/g)).size;
};
const rowsOf = ({ sqlite }: Db): unknown =>
  ["v", "w"].map((table) => sqlite.query(`SELECT * FROM ${table} ORDER BY key`).values());

test("deleted rows leave traces where SQLite moved them; these are cleared, and nothing else changes", async () => {
  const db = openFilled();
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
  const db = openFilled();
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

test.each(["", "a symbolic link"])(
  "while another connection reads %s, nothing is written; the next run clears it",
  async (link) => {
    const real = join(folder, "real");
    mkdirSync(real);
    if (link !== "") {
      writeFileSync(join(real, "a.db"), "");
      symlinkSync(join(real, "a.db"), path());
    }
    const db = openFilled();
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
  },
);

test("it stops after a step, and the next run continues", async () => {
  const db = openFilled();
  let steps = 0;
  expect(await clearPageGaps(db, () => ++steps > 2)).toMatchObject({ outcome: "stopped" });
  expect(traces(db)).toBeGreaterThan(0);
  await clearPageGaps(db);
  expect(traces(db)).toBe(0);
});

test("what is only in the log, because another connection reads an older state, is not called cleared", async () => {
  const db = open();
  db.sqlite.query("PRAGMA wal_checkpoint(TRUNCATE)").all();
  const reader = new Sqlite(path(), { readonly: true });
  reader.run("BEGIN");
  reader.query("SELECT count(*) FROM accounts").get();
  fillAndDelete(db);
  expect(readFileSync(path(), "latin1")).not.toContain("@deleted");
  expect(await clearPageGaps(db, () => false, clock)).toEqual({ outcome: "busy", pages: 0 });
  reader.close();
});

test("the log is emptied, also when no gap has content", async () => {
  const db = open();
  await clearPageGaps(db);
  db.sqlite.run("INSERT INTO dmarc_raw VALUES ('a', 'user1@deleted.example')");
  db.sqlite.run("DELETE FROM dmarc_raw");
  expect(readFileSync(`${path()}-wal`, "latin1")).toContain("user1@deleted");
  expect(await clearPageGaps(db)).toEqual({ outcome: "cleared", pages: 0 });
  expect(readFileSync(`${path()}-wal`).length).toBe(0);
});

test("a run that waits for another connection ends when it is to stop", async () => {
  const db = open();
  const reader = new Sqlite(path(), { readonly: true });
  db.sqlite.run("DELETE FROM dmarc_raw");
  reader.run("BEGIN");
  reader.query("SELECT count(*) FROM accounts").get();
  db.sqlite.run("INSERT INTO dmarc_raw VALUES ('a', 'b')");
  let asked = 0;
  expect(await clearPageGaps(db, () => ++asked > 2, clock)).toEqual({ outcome: "stopped", pages: 0 });
  expect(asked).toBeLessThan(6);
  reader.close();
});

test("nothing is written into a file that has replaced that of the database", async () => {
  const db = openFilled();
  db.sqlite.query("PRAGMA wal_checkpoint(TRUNCATE)").all();
  copyFileSync(path(), join(folder, "other.db"));
  renameSync(join(folder, "other.db"), path());
  const before = readFileSync(path());
  expect(clearPageGaps(db)).rejects.toThrow("was replaced while it was open");
  expect(readFileSync(path()).equals(before)).toBe(true);
});

/** Copies of a database as a power failure may leave it: with any of the sectors that were written, and any log. */
const SECTOR_BYTES = 512;
const FAILURES = 24;

test("after a power failure that keeps any part of what was written, the content is the same", async () => {
  const db = openFilled();
  db.sqlite.query("PRAGMA wal_checkpoint(TRUNCATE)").all();
  const before = readFileSync(path());
  const cleared = await clearPageGaps(db);
  db.sqlite.query("PRAGMA wal_checkpoint(TRUNCATE)").all();
  const after = readFileSync(path());
  expect(after.length).toBe(before.length);
  // SQLite itself writes the first page, by its log.
  const sectors: number[] = [];
  for (let at = 4_096; at < after.length; at += SECTOR_BYTES)
    if (!after.subarray(at, at + SECTOR_BYTES).equals(before.subarray(at, at + SECTOR_BYTES))) sectors.push(at);
  expect(sectors.length).toBeGreaterThan(cleared.pages / 2);
  // Changes that were acknowledged after the clearing, of which the file has nothing yet.
  db.sqlite.run("PRAGMA wal_autocheckpoint = 0");
  db.sqlite.run("UPDATE v SET email = 'x' || email WHERE n % 3 = 0");
  db.sqlite.run("DELETE FROM w WHERE n % 7 = 0");
  const log = readFileSync(`${path()}-wal`);
  const rows = { "": digestOf(path(), before), log: digestOf(path(), before, log) };
  expect(rows[""]).not.toBe(rows.log);
  for (let failure = 0; failure < FAILURES; failure++) {
    const torn = Buffer.from(before);
    for (const at of sectors)
      if (Bun.hash.crc32(`${failure} ${at}`) % FAILURES <= failure) after.copy(torn, at, at, at + SECTOR_BYTES);
    expect(digestOf(`${path()}-torn`, torn)).toBe(rows[""]);
    expect(digestOf(`${path()}-torn`, torn, log)).toBe(rows.log);
  }
});

/** A digest of all rows of a database with these bytes and this log, and of what the integrity check says. */
const digestOf = (name: string, file: Buffer, log: Buffer = Buffer.alloc(0)): string => {
  const copy = `${name}-copy`;
  writeFileSync(copy, file);
  writeFileSync(`${copy}-wal`, log);
  const sqlite = new Sqlite(copy);
  try {
    expect(sqlite.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
    const hash = createHash("sha256");
    for (const table of ["v", "w"])
      hash.update(JSON.stringify(sqlite.query(`SELECT * FROM ${table} ORDER BY key`).values()));
    return hash.digest("hex");
  } finally {
    sqlite.close();
  }
};

test("a database without a pointer map is left to compact, and one in memory has no file", async () => {
  const plain = new Sqlite(path());
  plain.run("PRAGMA auto_vacuum = NONE");
  plain.run("CREATE TABLE early (x)");
  plain.run("DROP TABLE early");
  plain.close();
  expect(await clearPageGaps(open())).toEqual({ outcome: "unsupported", pages: 0 });
  expect(await clearPageGaps(open(":memory:"))).toEqual({ outcome: "cleared", pages: 0 });
});

test("a long log is moved by the thread before it is emptied here", async () => {
  const db = openFilled();
  const moved = Promise.withResolvers<Moved>();
  db.checkpoints.use({ make: () => moved.promise, stop: () => undefined });
  db.sqlite.run("CREATE TABLE large (body BLOB)");
  db.transact(() => db.sqlite.run("INSERT INTO large VALUES (zeroblob(8000000))"));
  const logBytes = () => statSync(`${path()}-wal`).size;
  const clearing = clearPageGaps(db);
  await settle();
  expect(logBytes()).toBeGreaterThan(8_000_000);
  moved.resolve("none");
  expect(await clearing).toMatchObject({ outcome: "cleared" });
  expect(logBytes()).toBeLessThan(10_000);
});
