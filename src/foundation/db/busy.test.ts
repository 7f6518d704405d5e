import { afterAll, describe, expect, spyOn, test } from "bun:test";
import { chmodSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../base/clock.ts";
import { AppError } from "../base/errors.ts";
import { createTestClock, settle } from "../../testing/clock.ts";
import { holdUntilWaitedFor } from "../../testing/database-holder.ts";
import { takeServerLock } from "./database-files.ts";
import { GroupCommit, orRefusal } from "./group-commit.ts";
import { type Db, openDb, SERVER_BUSY_TIMEOUT_MS } from "./open.ts";

const folder = mkdtempSync(join(tmpdir(), "postwarden-busy-"));
afterAll(() => rmSync(folder, { recursive: true }));

const openTwice = (name: string): [Db, Db] => {
  const path = join(folder, name);
  const [ours, theirs] = [openDb(path, SERVER_BUSY_TIMEOUT_MS), openDb(path)];
  if (!ours.ok || !theirs.ok) throw new Error("not opened");
  return [ours.value, theirs.value];
};
const insert = (db: Db, id: string) =>
  void db.sqlite.run("INSERT INTO accounts (id, name, plan, created_at_ms) VALUES (?, ?, 'free', 0)", [id, id]);
const count = (db: Db) => (db.sqlite.query("SELECT count(*) AS n FROM accounts").get() as { n: number }).n;

test("without writes nothing is scheduled", async () => {
  const [ours, theirs] = openTwice("idle.db");
  await ours.commit(() => insert(ours, "a"));
  const immediate = spyOn(globalThis, "setImmediate");
  for (let turn = 0; turn < 3; turn++) await new Promise<void>((resolve) => setTimeout(resolve, 0));
  expect(immediate).not.toHaveBeenCalled();
  immediate.mockRestore();
  ours.close();
  theirs.close();
});

describe("while another process holds the database", () => {
  test("a write waits without blocking the event loop and succeeds when it is free", async () => {
    const [ours, theirs] = openTwice("wait.db");
    theirs.sqlite.run("BEGIN IMMEDIATE");
    const written = ours.commit(() => insert(ours, "a"));
    // The event loop turns while the write waits: this turn could not come otherwise.
    await new Promise<void>((resolve) => setImmediate(resolve));
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect(count(ours)).toBe(0);
    theirs.sqlite.run("COMMIT");
    await written;
    expect(count(ours)).toBe(1);
    ours.close();
    theirs.close();
  });

  /** Writes through a clock that stands still, in a database that another connection holds. */
  const hold = (name: string) => {
    const [ours, theirs] = openTwice(name);
    ours.sqlite.run("PRAGMA busy_timeout = 0");
    theirs.sqlite.run("BEGIN IMMEDIATE");
    const clock = createTestClock();
    const group = new GroupCommit(ours.sqlite, clock);
    const outcomes: string[] = [];
    const write = (id: string) =>
      void group
        .enqueue(() => insert(ours, id))
        .then(
          () => outcomes.push(`${id} written`),
          () => outcomes.push(`${id} failed`),
        );
    const close = () => {
      group.close();
      ours.close();
      theirs.close();
    };
    return { theirs, clock, outcomes, write, close };
  };

  test("all writes wait for one next attempt, 20 ms later", async () => {
    const { theirs, clock, outcomes, write, close } = hold("attempts.db");
    for (const id of ["a", "b", "c"]) {
      write(id);
      await settle();
    }
    expect(clock.pending()).toBe(1);
    theirs.sqlite.run("COMMIT");
    await clock.advance(19);
    expect(outcomes).toEqual([]);
    await clock.advance(1);
    expect(outcomes).toEqual(["a written", "b written", "c written"]);
    expect(clock.pending()).toBe(0);
    close();
  });

  test("what still waits at the end fails, and nothing waits for the database", async () => {
    const { outcomes, write, close } = hold("closing.db");
    write("a");
    close();
    await settle();
    expect(outcomes).toEqual(["a failed"]);
  });

  test("a write fails after five seconds; a later one goes on waiting", async () => {
    const { theirs, clock, outcomes, write, close } = hold("five-seconds.db");
    write("a");
    await clock.advance(1_000);
    write("b");
    await clock.advance(3_999);
    expect(outcomes).toEqual([]);
    await clock.advance(1);
    expect(outcomes).toEqual(["a failed"]);
    theirs.sqlite.run("COMMIT");
    await clock.advance(20);
    expect(outcomes).toEqual(["a failed", "b written"]);
    expect(count(theirs)).toBe(1);
    close();
  });

  test("opening waits until a new database is free", async () => {
    const path = join(folder, "opening.db");
    const other = await holdUntilWaitedFor(path);
    const opened = openDb(path, SERVER_BUSY_TIMEOUT_MS);
    expect(opened.ok).toBe(true);
    if (!opened.ok) return;
    expect(opened.value.sqlite.query("PRAGMA busy_timeout").get()).toEqual({ timeout: SERVER_BUSY_TIMEOUT_MS });
    opened.value.close();
    expect(await other.exited).toBe(0);
  });

  test("it does not look writable", () => {
    const [ours, theirs] = openTwice("readyz.db");
    theirs.sqlite.run("BEGIN IMMEDIATE");
    expect(ours.isWritable()).toBe(false);
    theirs.sqlite.run("COMMIT");
    expect(ours.isWritable()).toBe(true);
    ours.close();
    theirs.close();
  });

  test("a file that was moved away or replaced does not look writable", () => {
    const [ours, theirs] = openTwice("moved.db");
    theirs.close();
    expect(ours.isWritable()).toBe(true);
    renameSync(join(folder, "moved.db"), join(folder, "elsewhere.db"));
    expect(ours.isWritable()).toBe(false);
    writeFileSync(join(folder, "moved.db"), "");
    expect(ours.isWritable()).toBe(false);
    rmSync(join(folder, "moved.db"));
    renameSync(join(folder, "elsewhere.db"), join(folder, "moved.db"));
    expect(ours.isWritable()).toBe(true);
    ours.close();
  });

  test("closing does not wait: a pending write fails at the first attempt", async () => {
    const [ours, theirs] = openTwice("close.db");
    let looks = 0;
    // A close that goes on trying asks this clock, which stands still, for ever.
    const monotonicMs = () => {
      if (++looks > 10) throw new Error("the close tries again and again");
      return 0;
    };
    const group = new GroupCommit(ours.sqlite, { monotonicMs, after: systemClock.after });
    theirs.sqlite.run("BEGIN IMMEDIATE");
    const outcome = group
      .enqueue(() => insert(ours, "a"))
      .then(
        () => "written",
        () => "failed",
      );
    group.close();
    expect(await outcome).toBe("failed");
    theirs.sqlite.run("COMMIT");
    expect(count(theirs)).toBe(0);
    ours.close();
    theirs.close();
  });
});

test("an intact database has no damage", () => {
  const [ours, theirs] = openTwice("sound.db");
  insert(ours, "a");
  expect(ours.damage()).toBeNull();
  ours.close();
  theirs.close();
});

test("a damaged one reports the problem", async () => {
  const path = join(folder, "damaged.db");
  const made = openDb(path);
  if (!made.ok) throw new Error("not made");
  for (let n = 0; n < 500; n++) insert(made.value, `account-${n}`);
  made.value.sqlite.run("PRAGMA wal_checkpoint(TRUNCATE)");
  made.value.close();
  const bytes = await Bun.file(path).bytes();
  bytes.fill(0x5a, bytes.length - 16_384);
  await Bun.write(path, bytes);
  const opened = openDb(path);
  if (!opened.ok) throw new Error("not opened");
  expect(opened.value.damage()).not.toBeNull();
  opened.value.close();
});

test("when the commit fails, no write is stored, and none is tried again", async () => {
  const [ours, theirs] = openTwice("commit.db");
  const orphan = () => {
    ours.sqlite.run("PRAGMA defer_foreign_keys = ON");
    ours.sqlite.run("CREATE TABLE IF NOT EXISTS parents (id INTEGER PRIMARY KEY)");
    ours.sqlite.run("CREATE TABLE IF NOT EXISTS children (parent INTEGER REFERENCES parents (id))");
    ours.sqlite.run("INSERT INTO children VALUES (1)");
  };
  const clock = createTestClock();
  const group = new GroupCommit(ours.sqlite, clock);
  const outcomes = await Promise.allSettled([group.enqueue(() => insert(ours, "a")), group.enqueue(orphan)]);
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(clock.pending()).toBe(0);
  await group.enqueue(() => insert(ours, "b"));
  expect(count(theirs)).toBe(1);
  ours.close();
  theirs.close();
});

test("a closed database takes no writes, and does not look damaged or full", async () => {
  const [ours, theirs] = openTwice("closed.db");
  theirs.close();
  ours.close();
  expect(await ours.commit(() => "written").catch((error: Error) => error.message)).toBe("the database is closed");
  expect(() => ours.isWritable()).toThrow("closed");
  expect(() => ours.damage()).toThrow("closed");
});

test("files of a database that others can read are restricted when it is opened", () => {
  const path = join(folder, "readable.db");
  for (const suffix of ["", "-wal"]) {
    writeFileSync(path + suffix, "");
    chmodSync(path + suffix, 0o644);
  }
  const opened = openDb(path);
  if (!opened.ok) throw new Error("not opened");
  for (const suffix of ["", "-wal", "-shm"]) expect(statSync(path + suffix).mode & 0o777).toBe(0o600);
  opened.value.close();
});

describe("the lock of a data directory", () => {
  test("is taken once, until it is released", () => {
    const path = join(folder, "server.lock");
    const lock = takeServerLock(path);
    expect(lock).not.toBeNull();
    expect(takeServerLock(path)).toBeNull();
    lock?.release();
    const again = takeServerLock(path);
    expect(again).not.toBeNull();
    again?.release();
  });

  test("is not reported as taken when the file is no database", () => {
    const path = join(folder, "text.lock");
    writeFileSync(path, "This is a text and no database at all. ".repeat(50));
    expect(() => takeServerLock(path)).toThrow("not a database");
  });
});

test("only a refusal becomes a value; other errors are thrown", () => {
  const refusal = new AppError("not_found");
  const thrower = (error: Error) => () => {
    throw error;
  };
  expect(orRefusal(() => 1)).toBe(1);
  expect(orRefusal(thrower(refusal))).toBe(refusal);
  expect(() => orRefusal(thrower(new Error("disk full")))).toThrow("disk full");
});
