import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../base/clock.ts";
import { GroupCommit } from "./group-commit.ts";
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
