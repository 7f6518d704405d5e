import { Database as Sqlite, type SQLQueryBindings } from "bun:sqlite";
import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describeMigrateProblem, migrate, schemaVersion } from "./migrate.ts";
import { MIGRATIONS } from "./migrations.ts";
import { createDatabaseFile } from "./new-database.ts";
import { type Db, openDb } from "./open.ts";

const opened: Db[] = [];
const folders: string[] = [];
afterEach(() => {
  for (const db of opened.splice(0)) db.close();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

const open = (path = ":memory:"): Db => {
  const result = openDb(path);
  if (!result.ok) throw new Error(describeMigrateProblem(result.error));
  opened.push(result.value);
  return result.value;
};
const folder = (): string => {
  const path = mkdtempSync(join(tmpdir(), "postwarden-db-"));
  folders.push(path);
  return path;
};
const grant = (db: Db, id: string) =>
  db.sqlite.run("INSERT INTO accounts (id, name, plan, created_at_ms) VALUES (?, ?, 'free', 0)", [id, id]);
const names = (db: Db) =>
  (db.sqlite.query("SELECT name FROM accounts ORDER BY name").all() as { name: string }[]).map((row) => row.name);

describe("migrations", () => {
  test("the embedded list matches the folder", () => {
    const files = readdirSync(new URL("../../../drizzle/", import.meta.url)).filter((name) => name.endsWith(".sql"));
    expect(MIGRATIONS.map((migration) => `${migration.name}.sql`)).toEqual(files.toSorted());
  });

  test("a new database gets all, an up-to-date one none", () => {
    const sqlite = new Sqlite(":memory:");
    expect(migrate(sqlite, MIGRATIONS)).toEqual({ ok: true, value: MIGRATIONS.map((migration) => migration.name) });
    expect(migrate(sqlite, MIGRATIONS)).toEqual({ ok: true, value: [] });
    expect(schemaVersion(sqlite)).toBe(MIGRATIONS.length);
  });

  test.each([":memory:", "postwarden.db"])(
    "a new database (%s) is what all migrations make of an empty one",
    (name) => {
      const byMigrations = new Sqlite(":memory:");
      byMigrations.run("PRAGMA auto_vacuum = INCREMENTAL");
      const applied = migrate(byMigrations, MIGRATIONS);
      const { sqlite: atOnce, migrated } = open(name === ":memory:" ? name : join(folder(), name));
      expect(applied).toEqual({ ok: true, value: [...migrated.applied] });
      expect(migrated).toMatchObject({ before: 0, after: MIGRATIONS.length, copy: null });
      const contentOf = (sqlite: Sqlite) => {
        const objects = sqlite
          .query<{ type: string; name: string }, []>(
            "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid",
          )
          .all();
        // An AUTOINCREMENT table without rows counts from 0, with or without an entry.
        const tables = objects.filter(({ type, name }) => type === "table" && name !== "sqlite_sequence");
        return {
          objects,
          rows: tables.map(({ name }) => sqlite.query(`SELECT count(*) FROM "${name}"`).values()),
          counted: sqlite.query("SELECT * FROM sqlite_sequence WHERE seq > 0").all(),
          settings: ["user_version", "application_id", "page_size", "auto_vacuum", "encoding"].map((name) =>
            sqlite.query(`PRAGMA ${name}`).values(),
          ),
        };
      };
      const content = contentOf(atOnce);
      expect(content).toEqual(contentOf(byMigrations));
      expect(content.objects.length).toBeGreaterThan(150);
      expect(new Set(content.rows.flat(2))).toEqual(new Set([0]));
      expect(atOnce.query("PRAGMA freelist_count").values()).toEqual([[0]]);
      expect(atOnce.query("PRAGMA integrity_check").values()).toEqual([["ok"]]);
      expect(atOnce.query("PRAGMA journal_mode").values()).toEqual([[name === ":memory:" ? "memory" : "wal"]]);
    },
  );

  test("a new file is private and complete; one that is there stays as it is, also an empty one until it is migrated", () => {
    const path = join(folder(), "postwarden.db");
    const before = process.umask(0);
    expect(createDatabaseFile(path)).toBe(true);
    process.umask(before);
    expect([statSync(path).mode & 0o777, readdirSync(dirname(path))]).toEqual([0o600, ["postwarden.db"]]);
    grant(open(path), "kept");
    expect(createDatabaseFile(path)).toBe(false);
    expect(names(open(path))).toEqual(["kept"]);
    const empty = join(folder(), "empty.db");
    writeFileSync(empty, "");
    expect(createDatabaseFile(empty)).toBe(false);
    const { migrated, sqlite } = open(empty);
    expect(migrated).toMatchObject({ before: 0, after: MIGRATIONS.length });
    expect(schemaVersion(sqlite)).toBe(MIGRATIONS.length);
  });

  test("a failing migration leaves the version and the tables of the one before", () => {
    const sqlite = new Sqlite(":memory:");
    const broken = [
      { name: "a", sql: "CREATE TABLE a (x)" },
      { name: "b", sql: "CREATE TABLE b (x);--> statement-breakpoint\nCREATE TABLE a (x)" },
    ];
    expect(() => migrate(sqlite, broken)).toThrow("already exists");
    expect(schemaVersion(sqlite)).toBe(1);
    expect(sqlite.query("SELECT name FROM sqlite_master").all()).toEqual([{ name: "a" }]);
  });

  test("a database of a newer binary is refused with both numbers", () => {
    const sqlite = new Sqlite(":memory:");
    migrate(sqlite, [...MIGRATIONS, { name: "future", sql: "CREATE TABLE future (x)" }]);
    const result = migrate(sqlite, MIGRATIONS);
    expect(result).toEqual({
      ok: false,
      error: { kind: "newer_database", has: MIGRATIONS.length + 1, knows: MIGRATIONS.length },
    });
    if (!result.ok) expect(describeMigrateProblem(result.error)).toContain("newer than this binary");
  });

  /** Runs `act` once, just before the query or transaction that `when` names: another process was quicker. */
  const interrupted = (path: string, when: string, act: () => void): Sqlite => {
    let transactions = 0;
    let isOver = false;
    const once = (step: string) => {
      if (isOver || !step.includes(when)) return;
      isOver = true;
      act();
    };
    return new (class extends Sqlite {
      override query<R, P extends SQLQueryBindings | SQLQueryBindings[]>(sql: string) {
        once(sql);
        return super.query<R, P>(sql);
      }
      override transaction<A extends unknown[], R>(work: (...args: A) => R) {
        once(`transaction ${++transactions}`);
        return super.transaction(work);
      }
    })(path, { create: true });
  };

  test.each([
    ["before it is looked at", "application_id"],
    ["while it is looked at", "sqlite_master"],
    ["after it was looked at", "transaction 2"],
  ])("a database that another process migrates %s is migrated once, and is not refused", (_, when) => {
    const path = join(folder(), "two.db");
    const other = new Sqlite(path, { create: true });
    other.run("PRAGMA journal_mode = WAL");
    const byOther: unknown[] = [];
    const sqlite = interrupted(path, when, () => void byOther.push(migrate(other, MIGRATIONS)));
    expect(migrate(sqlite, MIGRATIONS)).toEqual({ ok: true, value: [] });
    expect(byOther).toEqual([{ ok: true, value: MIGRATIONS.map(({ name }) => name) }]);
    expect(schemaVersion(sqlite)).toBe(MIGRATIONS.length);
    sqlite.close();
    other.close();
  });

  test("opening refuses the database of another program", () => {
    const path = join(folder(), "theirs.db");
    const theirs = new Sqlite(path, { create: true });
    theirs.run("CREATE TABLE theirs (x)");
    expect(openDb(path)).toEqual({ ok: false, error: { kind: "foreign_database" } });
    theirs.close();
  });

  test("the database of another program is refused and not changed", () => {
    const sqlite = new Sqlite(":memory:");
    sqlite.run("CREATE TABLE theirs (x)");
    expect(migrate(sqlite, MIGRATIONS)).toEqual({ ok: false, error: { kind: "foreign_database" } });
    expect(sqlite.query("SELECT name FROM sqlite_master").all()).toEqual([{ name: "theirs" }]);
  });
});

test("webhooks of both modes survive the migration that separates them", () => {
  const sqlite = new Sqlite(":memory:");
  const at = MIGRATIONS.findIndex(({ name }) => name.endsWith("webhook_modes_and_ledger_inserts"));
  migrate(sqlite, MIGRATIONS.slice(0, at));
  sqlite.run("INSERT INTO webhook_secrets VALUES ('s', 'a', 'whsec_old', 0, NULL)");
  sqlite.run("INSERT INTO webhook_gone VALUES ('a', 'https://gone.example/', 7)");
  for (const [id, mode, due] of [
    ["1", "live", 5],
    ["2", "test", null],
    ["3", "live", null],
    ["4", "test", null],
  ])
    sqlite.run(
      `INSERT INTO webhook_deliveries (id, account_id, mode, url, type, body, status, due_at_ms, created_at_ms)
       VALUES (?, 'a', ?, 'https://u.example/', 't', '{}', 'pending', ?, 0)`,
      [id ?? null, mode ?? null, due ?? null],
    );
  migrate(sqlite, MIGRATIONS);
  expect(sqlite.query("SELECT secret, mode FROM webhook_secrets").all()).toEqual([
    { secret: "whsec_old", mode: "live" },
  ]);
  expect(sqlite.query("SELECT mode, at_ms FROM webhook_gone ORDER BY mode").all()).toEqual([
    { mode: "live", at_ms: 7 },
    { mode: "test", at_ms: 7 },
  ]);
  expect(sqlite.query("SELECT id, due_at_ms FROM webhook_deliveries ORDER BY id").all()).toEqual([
    { id: "1", due_at_ms: 5 },
    { id: "2", due_at_ms: 0 },
    { id: "3", due_at_ms: null },
    { id: "4", due_at_ms: null },
  ]);
});

describe("writing", () => {
  test("a transaction that throws is rolled back", () => {
    const db = open();
    expect(() =>
      db.transact(() => {
        grant(db, "a");
        throw new Error("no");
      }),
    ).toThrow("no");
    expect(names(db)).toEqual([]);
  });

  test("writes in one commit are all stored", async () => {
    const db = open();
    const values = await Promise.all(
      ["a", "b", "c"].map((id) =>
        db.commit(() => {
          grant(db, id);
          return id.toUpperCase();
        }),
      ),
    );
    expect(values).toEqual(["A", "B", "C"]);
    expect(names(db)).toEqual(["a", "b", "c"]);
  });

  test("one that throws is undone alone", async () => {
    const db = open();
    const outcomes = await Promise.allSettled([
      db.commit(() => grant(db, "a")),
      db.commit(() => {
        grant(db, "b");
        throw new Error("only b");
      }),
      db.commit(() => grant(db, "c")),
    ]);
    expect(outcomes.map((outcome) => outcome.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(names(db)).toEqual(["a", "c"]);
  });

  test("one that throws repeats no other, and the order is kept", async () => {
    const db = open();
    const ran: string[] = [];
    const add = (id: string) =>
      db.commit(() => {
        ran.push(id);
        grant(db, id);
        if (id === "c") throw new Error("only c");
      });
    await Promise.allSettled(["a", "b", "c", "d", "e"].map(add));
    expect(ran).toEqual(["a", "b", "c", "d", "e"]);
    expect(names(db)).toEqual(["a", "b", "d", "e"]);
  });

  test("when SQLite rolls back the transaction, no write is reported as stored", async () => {
    const db = open();
    const outcomes = await Promise.allSettled([
      db.commit(() => grant(db, "a")),
      db.commit(() => {
        db.sqlite.run("ROLLBACK");
        throw new Error("database or disk is full");
      }),
      db.commit(() => grant(db, "c")),
    ]);
    const reasons = outcomes.map((outcome) => (outcome.status === "rejected" ? String(outcome.reason) : "stored"));
    expect(new Set(reasons)).toEqual(new Set(["Error: database or disk is full"]));
    await db.commit(() => grant(db, "d"));
    expect(names(db)).toEqual(["d"]);
  });

  test("more writes than fit in one transaction are stored in order", async () => {
    const db = open();
    const ids = Array.from({ length: 1_300 }, (_, n) => `n${String(n).padStart(5, "0")}`);
    await Promise.all(ids.map((id) => db.commit(() => grant(db, id))));
    expect(names(db)).toEqual(ids);
  });

  test("a statement whose parameter has no value is an error, not a NULL", () => {
    const { sqlite } = open();
    expect(() => sqlite.query("SELECT $id AS id").get({ name: "a" })).toThrow("Missing parameter");
  });

  test("committed writes are in the file when it is reopened", async () => {
    const path = join(folder(), "postwarden.db");
    const first = open(path);
    await first.commit(() => grant(first, "a"));
    expect(names(open(path))).toEqual(["a"]);
  });

  test("closing writes what is pending", () => {
    const path = join(folder(), "postwarden.db");
    const result = openDb(path);
    if (!result.ok) throw new Error("not opened");
    void result.value.commit(() => grant(result.value, "late"));
    result.value.close();
    expect(names(open(path))).toEqual(["late"]);
  });

  const COLUMNS = "(id, account_id, kind, available, held, reference, at_ms)";
  test.each([
    ["UPDATE", "UPDATE ledger SET available = 2"],
    ["UPDATE OR REPLACE", "UPDATE OR REPLACE ledger SET id = 2 WHERE id = 1"],
    ["DELETE", "DELETE FROM ledger"],
    ["INSERT OR REPLACE by id", `INSERT OR REPLACE INTO ledger ${COLUMNS} VALUES (1, 'a', 'grant', 9, 0, NULL, 0)`],
    ["REPLACE INTO by id", `REPLACE INTO ledger ${COLUMNS} VALUES (1, 'a', 'grant', 9, 0, NULL, 0)`],
    ["REPLACE of a hold", `REPLACE INTO ledger ${COLUMNS} VALUES (NULL, 'a', 'hold', -9, 9, 'r', 0)`],
    ["REPLACE of an end", `REPLACE INTO ledger ${COLUMNS} VALUES (NULL, 'a', 'release', 9, -9, 'r', 0)`],
    [
      "an upsert",
      `INSERT INTO ledger ${COLUMNS} VALUES (1, 'a', 'grant', 9, 0, NULL, 0) ON CONFLICT DO UPDATE SET available = 9`,
    ],
  ])("the ledger is append-only, also for a connection with default pragmas: %s fails", (_, statement) => {
    const path = join(folder(), "postwarden.db");
    const db = open(path);
    grant(db, "a");
    const rows = [
      "(1, 'a', 'grant', 5, 0, NULL, 0)",
      "(2, 'a', 'hold', -1, 1, 'r', 0)",
      "(3, 'a', 'settle', 0, -1, 'r', 0)",
    ];
    for (const row of rows) db.sqlite.run(`INSERT INTO ledger ${COLUMNS} VALUES ${row}`);
    const before = db.sqlite.query("SELECT * FROM ledger").all();
    const plain = new Sqlite(path);
    expect(() => plain.run(statement)).toThrow("append-only");
    plain.close();
    expect(db.sqlite.query("SELECT * FROM ledger").all()).toEqual(before);
    db.sqlite.run("INSERT INTO ledger (account_id, kind, available, held, at_ms) VALUES ('a', 'grant', 1, 0, 0)");
    expect(db.sqlite.query("SELECT id FROM ledger").all()).toHaveLength(before.length + 1);
  });

  test("a snapshot does not see what another connection commits meanwhile", () => {
    const path = join(folder(), "postwarden.db");
    const [ours, theirs] = [open(path), open(path)];
    const [before, after] = ours.snapshot(() => {
      const first = names(ours);
      grant(theirs, "a");
      return [first, names(ours)];
    });
    expect([before, after, names(ours)]).toEqual([[], [], ["a"]]);
  });

  test("disk space is known of a database in a file, and not of one in memory", () => {
    expect(open().diskSpace()).toBeNull();
    const space = open(join(folder(), "postwarden.db")).diskSpace();
    expect(space?.freeBytes).toBeGreaterThan(0);
    expect(space?.totalBytes).toBeGreaterThan(0);
  });

  test("a writable database is reported as such", () => {
    expect(open().isWritable()).toBe(true);
  });
});

test("every commit of an open database is synced", () => {
  const opened = openDb(":memory:");
  if (!opened.ok) throw new Error("no database");
  expect(opened.value.sqlite.query("PRAGMA synchronous").get()).toEqual({ synchronous: 2 });
});

test("an unsynced transaction restores synchronous commits, also when it throws", () => {
  const opened = openDb(":memory:");
  if (!opened.ok) throw new Error("no database");
  const db = opened.value;
  const synchronous = () => (db.sqlite.query("PRAGMA synchronous").get() as { synchronous: number }).synchronous;
  expect(db.transactUnsynced(synchronous)).toBe(1);
  expect(synchronous()).toBe(2);
  const fails = () => {
    throw new Error("no");
  };
  expect(() => db.transactUnsynced(fails)).toThrow("no");
  expect(synchronous()).toBe(2);
  db.close();
});
