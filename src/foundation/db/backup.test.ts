import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { Database as Sqlite } from "bun:sqlite";
import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { holdUntilWaitedFor } from "../../testing/database-holder.ts";
import { describeCopyProblem, describeDatabaseFileProblem, roomOf, verifyCopy, writeBackup } from "./backup.ts";
import { restoreBackup } from "./restore.ts";
import { MIGRATIONS } from "./migrations.ts";
import { type Db, openDb } from "./open.ts";

const KNOWN = MIGRATIONS.length;
/** Above the largest ID that Linux gives. */
const ENDED_PID = 4_194_305;
let folder = "";
const at = (name: string) => join(folder, name);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postwarden-backup-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const open = (name: string): Db => {
  const opened = openDb(at(name));
  if (!opened.ok) throw new Error(opened.error.kind);
  return opened.value;
};
const addAccount = ({ sqlite }: Db, name: string) =>
  sqlite.run("INSERT INTO accounts (id, name, plan, created_at_ms) VALUES (?, ?, 'free', 1)", [name, name]);
const namesIn = (name: string): string[] => {
  const sqlite = new Sqlite(at(name), { readonly: true });
  try {
    return sqlite
      .query<{ name: string }, []>("SELECT name FROM accounts ORDER BY name")
      .all()
      .map((row) => row.name);
  } finally {
    sqlite.close();
  }
};
const restore = (file: string) => {
  return restoreBackup(at(file), {
    path: at("a.db"),
    keptSuffix: ".kept",
    schemaMax: KNOWN,
    keepSessions: false,
    by: { atMs: 1, user: "root", host: "h", pid: 1 },
  });
};

describe("a backup", () => {
  test("has everything that was committed, also what is still in the write-ahead log", () => {
    const db = open("a.db");
    addAccount(db, "first");
    expect(statSync(at("a.db-wal")).size).toBeGreaterThan(0);
    expect(writeBackup(at("a.db"), at("b.db"))).toEqual({
      ok: true,
      value: { bytes: statSync(at("b.db")).size, schema: KNOWN },
    });
    db.close();
    expect(namesIn("b.db")).toEqual(["first"]);
  });

  test("does not contain a transaction that is open meanwhile, and does not disturb it", () => {
    const db = open("a.db");
    addAccount(db, "before");
    db.transact(() => {
      addAccount(db, "meanwhile");
      expect(writeBackup(at("a.db"), at("b.db")).ok).toBe(true);
    });
    db.close();
    expect(namesIn("b.db")).toEqual(["before"]);
    expect(namesIn("a.db")).toEqual(["before", "meanwhile"]);
  });

  test("is readable by its owner only, and leaves nothing else behind", () => {
    open("a.db").close();
    writeBackup(at("a.db"), at("b.db"));
    expect(statSync(at("b.db")).mode & 0o777).toBe(0o600);
    expect(
      readdirSync(folder)
        .filter((name) => name.startsWith("b.db"))
        .toSorted(),
    ).toEqual(["b.db", "b.db.sha256"]);
  });

  test("leaves 64 MiB of the disk to the service", () => {
    const mebibyte = 1024 * 1024;
    expect(roomOf({ bavail: 100, blocks: 1_000, bsize: mebibyte })).toBe(36 * mebibyte);
    expect(roomOf({ bavail: 10, blocks: 1_000, bsize: mebibyte })).toBe(0);
    expect(roomOf({ bavail: 0, blocks: 0, bsize: mebibyte })).toBe(Number.POSITIVE_INFINITY);
  });

  test("never overwrites a file", () => {
    open("a.db").close();
    writeFileSync(at("b.db"), "mine");
    expect(writeBackup(at("a.db"), at("b.db"))).toEqual({ ok: false, error: { kind: "exists", path: at("b.db") } });
    expect(statSync(at("b.db")).size).toBe(4);
  });

  test.each(["b.db-wal", "b.db-journal"])("never lies beside a foreign %s, which SQLite would read with it", (name) => {
    open("a.db").close();
    writeFileSync(at(name), "mine");
    const written = writeBackup(at("a.db"), at("b.db"));
    expect(written).toEqual({ ok: false, error: { kind: "exists", path: at(name) } });
    expect(readdirSync(folder).toSorted()).toEqual(["a.db", name]);
  });

  test("never follows a symbolic link", () => {
    open("a.db").close();
    symlinkSync(at("elsewhere"), at("b.db"));
    expect(writeBackup(at("a.db"), at("b.db"))).toMatchObject({ ok: false, error: { kind: "exists" } });
    symlinkSync(at("elsewhere"), at(`c.db.${process.pid}.partial`));
    expect(writeBackup(at("a.db"), at("c.db")).ok).toBe(true);
    expect(existsSync(at("elsewhere"))).toBe(false);
  });

  test("of another program's database is none", () => {
    new Sqlite(at("a.db")).run("CREATE TABLE t (a)");
    const written = writeBackup(at("a.db"), at("b.db"));
    expect(written).toMatchObject({ ok: false, error: { kind: "source", problem: { kind: "foreign_database" } } });
    expect(existsSync(at("b.db"))).toBe(false);
  });

  test("of a newer database can be made, because nothing in it has to be understood", () => {
    const db = open("a.db");
    db.sqlite.run(`PRAGMA user_version = ${KNOWN + 1}`);
    db.close();
    expect(writeBackup(at("a.db"), at("b.db"))).toMatchObject({ ok: true, value: { schema: KNOWN + 1 } });
  });

  test("replaces what an interrupted backup left", () => {
    open("a.db").close();
    for (const name of [
      `b.db.${ENDED_PID}.partial`,
      `b.db.${ENDED_PID}.partial-journal`,
      `b.db.${process.pid}.partial`,
    ])
      writeFileSync(at(name), "half of it");
    writeFileSync(at("b.db.1.partial"), "another process is writing it");
    expect(writeBackup(at("a.db"), at("b.db")).ok).toBe(true);
    expect(readdirSync(folder).filter((name) => name.includes("partial"))).toEqual(["b.db.1.partial"]);
  });

  test("of a damaged database is none", () => {
    const db = open("a.db");
    addAccount(db, "first");
    db.sqlite.run("PRAGMA wal_checkpoint(TRUNCATE)");
    const { rootpage } = db.sqlite
      .query<{ rootpage: number }, []>("SELECT rootpage FROM sqlite_master WHERE name = 'accounts'")
      .get() ?? { rootpage: 0 };
    db.close();
    const bytes = new Uint8Array(readFileSync(at("a.db")));
    bytes.fill(0xff, (rootpage - 1) * 4096, rootpage * 4096);
    writeFileSync(at("a.db"), bytes);
    const written = writeBackup(at("a.db"), at("b.db"));
    expect(written).toMatchObject({ ok: false, error: { kind: "source", problem: { kind: "damaged" } } });
    if (!written.ok) expect(describeCopyProblem("a.db", "b.db", written.error)).toStartWith("a.db is damaged");
    expect(readdirSync(folder).filter((name) => name.startsWith("b.db"))).toEqual([]);
  });

  test("waits for a program that has the database to itself for a while", async () => {
    open("a.db").close();
    const other = await holdUntilWaitedFor(at("a.db"), "EXCLUSIVE");
    expect(writeBackup(at("a.db"), at("b.db")).ok).toBe(true);
    expect(await other.exited).toBe(0);
  });

  test("of a database that is not there throws, and creates none", () => {
    expect(() => writeBackup(at("none.db"), at("b.db"))).toThrow();
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe("a file to restore", () => {
  test.each<[string, (file: string) => void, string]>([
    [
      "text",
      (file) => writeFileSync(file, "no database, but long enough to be read as one".repeat(100)),
      "not_a_database",
    ],
    ["another database", (file) => new Sqlite(file).run("CREATE TABLE t (a)"), "foreign_database"],
    ["nothing", (file) => writeFileSync(file, ""), "foreign_database"],
    ["a directory", (file) => mkdirSync(file), "not_a_file"],
  ])("%s is refused, and nothing is changed", (_, make, kind) => {
    const db = open("a.db");
    addAccount(db, "first");
    db.close();
    make(at("b.db"));
    expect(restore("b.db")).toMatchObject({ ok: false, error: { kind: "backup", problem: { kind } } });
    expect(namesIn("a.db")).toEqual(["first"]);
    expect(existsSync(at("a.db.kept"))).toBe(false);
  });

  test("is not changed by being verified, nor is its log", () => {
    const db = open("c.db");
    addAccount(db, "in the log");
    // As after kill -9: whoever writes to it next moves the log into the file.
    for (const suffix of ["", "-wal"]) copyFileSync(at(`c.db${suffix}`), at(`b.db${suffix}`));
    db.close();
    const before = ["", "-wal"].map((suffix) => readFileSync(at(`b.db${suffix}`)));
    expect(verifyCopy(at("b.db"), KNOWN).ok).toBe(true);
    expect(["", "-wal"].map((suffix) => readFileSync(at(`b.db${suffix}`)))).toEqual(before);
  });

  test("of a newer version is refused", () => {
    open("b.db").close();
    const checked = verifyCopy(at("b.db"), KNOWN - 1);
    expect(checked).toEqual({ ok: false, error: { kind: "newer_database", has: KNOWN, knows: KNOWN - 1 } });
    if (!checked.ok) expect(describeDatabaseFileProblem("b.db", checked.error)).toContain("newer version");
  });
});

describe("a restored database", () => {
  test("is the backup alone: the log of the former database does not flow into it", () => {
    const db = open("a.db");
    addAccount(db, "in the backup");
    writeBackup(at("a.db"), at("b.db"));
    addAccount(db, "later");
    // As after kill -9: the log stays, and is not part of the file yet.
    for (const suffix of ["", "-wal", "-shm"]) copyFileSync(at(`a.db${suffix}`), at(`c.db${suffix}`));
    db.close();
    for (const suffix of ["", "-wal", "-shm"]) {
      rmSync(at(`a.db${suffix}`), { force: true });
      renameSync(at(`c.db${suffix}`), at(`a.db${suffix}`));
    }
    expect(statSync(at("a.db-wal")).size).toBeGreaterThan(0);
    expect(restore("b.db")).toMatchObject({ ok: true, value: { kept: at("a.db.kept"), schema: KNOWN } });
    open("a.db").close();
    expect(namesIn("a.db")).toEqual(["in the backup"]);
    expect(namesIn("a.db.kept")).toEqual(["in the backup", "later"]);
    expect(statSync(at("a.db")).mode & 0o777).toBe(0o600);
  });

  test("replaces a damaged one, which is kept with its log", () => {
    open("b.db").close();
    writeFileSync(at("a.db"), "damaged".repeat(1_000));
    writeFileSync(at("a.db-wal"), "its log");
    expect(restore("b.db")).toMatchObject({ ok: true, value: { kept: at("a.db.kept") } });
    expect(existsSync(at("a.db-wal"))).toBe(false);
    expect(statSync(at("a.db.kept-wal")).size).toBe(7);
    expect(namesIn("a.db")).toEqual([]);
  });

  test("includes the log that lies beside the file", () => {
    const db = open("b.db");
    addAccount(db, "in the log");
    expect(statSync(at("b.db-wal")).size).toBeGreaterThan(0);
    expect(restore("b.db").ok).toBe(true);
    db.close();
    expect(namesIn("a.db")).toEqual(["in the log"]);
  });

  test("is refused while another program has the former one open, and nothing is changed", () => {
    open("b.db").close();
    const db = open("a.db");
    addAccount(db, "first");
    expect(restore("b.db")).toEqual({ ok: false, error: { kind: "in_use" } });
    addAccount(db, "second");
    db.close();
    expect(namesIn("a.db")).toEqual(["first", "second"]);
    expect(readdirSync(folder).filter((name) => /kept|partial/.test(name))).toEqual([]);
  });

  test("never lies beside the journal of the former one", () => {
    open("b.db").close();
    writeFileSync(at("a.db"), "damaged".repeat(1_000));
    writeFileSync(at("a.db-journal"), "hot");
    expect(restore("b.db").ok).toBe(true);
    expect(existsSync(at("a.db-journal"))).toBe(false);
    expect(readFileSync(at("a.db.kept-journal"), "utf8")).toBe("hot");
  });

  test("is put where a symbolic link points, and the link stays", () => {
    mkdirSync(at("disk"));
    open("disk/real.db").close();
    symlinkSync(at("disk/real.db"), at("a.db"));
    const db = open("b.db");
    addAccount(db, "restored");
    db.close();
    expect(restore("b.db")).toMatchObject({ ok: true, value: { kept: at("disk/real.db.kept") } });
    expect(lstatSync(at("a.db")).isSymbolicLink()).toBe(true);
    expect(namesIn("disk/real.db")).toEqual(["restored"]);
  });

  test("can be put where there is none", () => {
    open("b.db").close();
    expect(restore("b.db")).toMatchObject({ ok: true, value: { kept: null } });
    expect(namesIn("a.db")).toEqual([]);
  });

  test("is written anew after a crash in the middle", () => {
    open("b.db").close();
    writeFileSync(at(`a.db.${ENDED_PID}.partial`), "half of it");
    expect(restore("b.db").ok).toBe(true);
    expect(readdirSync(folder).filter((name) => name.includes("partial"))).toEqual([]);
  });
});
