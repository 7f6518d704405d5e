import { Database as Sqlite } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nextTurn } from "../base/clock.ts";
import { createTestClock, type TestClock } from "../../testing/clock.ts";
import { type CheckpointMaker, Checkpoints, type Moved } from "./checkpoints.ts";

const MIB = 1024 * 1024;
let folder = "";
let sqlite: Sqlite;
let insert: ReturnType<typeof insertPages>;
let clock: TestClock;
let checkpoints: Checkpoints;
let syncs = 0;
const file = () => join(folder, "a.db");
const syncFile = async () => {
  syncs += 1;
  if (syncs > 1) throw new Error("no descriptor is left");
};

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postwarden-checkpoints-"));
  clock = createTestClock();
  sqlite = new Sqlite(file());
  sqlite.run("PRAGMA journal_mode = WAL");
  sqlite.run("PRAGMA synchronous = OFF");
  sqlite.run("CREATE TABLE t (id INTEGER PRIMARY KEY, body BLOB)");
  insert = insertPages();
  syncs = 0;
  checkpoints = new Checkpoints(sqlite, { clock, syncFile });
});
afterEach(() => {
  checkpoints.stop();
  sqlite.close();
  rmSync(folder, { recursive: true });
});

const insertPages = () =>
  sqlite.prepare(
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO t (body) SELECT zeroblob(3900) FROM n",
  );

/** Adds rows of a page each. */
const write = (pages: number) => {
  insert.run(pages);
  checkpoints.afterCommit();
};

interface State {
  readonly log: number;
  readonly checkpointed: number;
}

const state = () => sqlite.query<State, []>("PRAGMA wal_checkpoint(NOOP)").get() as State;
const logBytes = () => statSync(`${file()}-wal`).size;

/** By a connection of its own, as the thread does. */
const moveAll = (): Moved => {
  const other = new Sqlite(file());
  const after = other.query<State, []>("PRAGMA wal_checkpoint(PASSIVE)").get();
  other.close();
  return after?.log === after?.checkpointed ? "all" : "some";
};

class FakeMaker implements CheckpointMaker {
  calls = 0;
  isStopped = false;

  constructor(private readonly work: () => Moved | Promise<Moved> = moveAll) {}

  async make(): Promise<Moved> {
    this.calls += 1;
    await nextTurn();
    return this.work();
  }

  stop() {
    this.isStopped = true;
  }
}

/** A connection that keeps reading the present state. */
const openReader = () => {
  const reader = new Sqlite(file());
  reader.run("BEGIN");
  reader.query("SELECT count(*) FROM t").get();
  return reader;
};

const use = (maker: FakeMaker) => {
  checkpoints.use(maker);
  return maker;
};

describe("checkpoints of a server", () => {
  test("are not made by a commit, however long the log is", async () => {
    const maker = use(new FakeMaker());
    write(900);
    expect(maker.calls).toBe(0);
    write(200);
    expect(state()).toMatchObject({ checkpointed: 0 });
    await checkpoints.settle();
    expect(maker.calls).toBe(1);
    expect(state().checkpointed).toBe(state().log);
  });

  test("are left to SQLite without a maker", () => {
    write(2_000);
    expect(state().checkpointed).toBe(state().log);
  });

  test("are made one after another", async () => {
    const maker = use(new FakeMaker());
    for (let n = 0; n < 3; n++) write(1_000);
    await checkpoints.settle();
    expect(maker.calls).toBe(1);
    write(1_000);
    await checkpoints.settle();
    expect(maker.calls).toBe(2);
  });

  test("wait a second while a reader keeps the log", async () => {
    const maker = use(new FakeMaker());
    const reader = openReader();
    write(2_000);
    await checkpoints.settle();
    write(1);
    await checkpoints.settle();
    expect(maker.calls).toBe(1);
    await clock.advance(1_000);
    reader.close();
    await checkpoints.settle();
    expect(maker.calls).toBe(2);
    expect(state().checkpointed).toBe(state().log);
  });

  test("are made here when the maker cannot", async () => {
    const maker = use(new FakeMaker(() => "none"));
    write(2_000);
    await checkpoints.settle();
    expect(maker.calls).toBe(1);
    expect(state().checkpointed).toBe(state().log);
  });

  test("are tried again after a second when the maker cannot, while a reader keeps the log", async () => {
    const maker = use(new FakeMaker(() => "none"));
    const reader = openReader();
    write(2_000);
    await checkpoints.settle();
    write(1);
    await checkpoints.settle();
    expect(maker.calls).toBe(1);
    await clock.advance(1_000);
    await checkpoints.settle();
    expect(maker.calls).toBe(2);
    reader.close();
  });

  test("leave no log that grows for ever: the little that was written meanwhile is moved here", async () => {
    use(
      new FakeMaker(() => {
        const reader = openReader();
        write(10);
        moveAll();
        reader.close();
        return "all";
      }),
    );
    write(2_000);
    await checkpoints.settle();
    expect(state().log - state().checkpointed).toBeGreaterThan(0);
    expect(syncs).toBe(0);
    for (let n = 1; n < 3; n++) {
      write(2_000);
      await checkpoints.settle();
      expect([state().checkpointed, syncs]).toEqual([state().log, n]);
      write(1);
      expect(state().log).toBeLessThan(10);
      write(2_000);
      await checkpoints.settle();
    }
  });

  test("cut a long log in steps of 64 MiB, down to 64 MiB", async () => {
    const maker = use(new FakeMaker());
    const reader = openReader();
    for (let n = 0; n < 5; n++) write(10_000);
    const full = logBytes();
    expect(full).toBeGreaterThan(190 * MIB);
    reader.close();
    const sizes: number[] = [];
    for (let n = 0; n < 5; n++) {
      await clock.advance(1_000);
      write(1_000);
      sizes.push(logBytes());
      await checkpoints.settle();
    }
    expect(maker.calls).toBeGreaterThan(3);
    expect(sizes.map((size, at) => (sizes[at - 1] ?? full) - size).every((cut) => cut <= 64 * MIB)).toBe(true);
    expect(sizes.at(-1)).toBe(64 * MIB);
  });

  test("end with the database: nothing is read from it afterwards", async () => {
    const held = Promise.withResolvers<Moved>();
    const maker = use(new FakeMaker(() => held.promise));
    write(2_000);
    const settled = checkpoints.settle();
    checkpoints.stop();
    held.resolve("none");
    await settled;
    expect(maker.isStopped).toBe(true);
    expect(state().checkpointed).toBe(0);
  });

  test("that fail leave the commit as it is", async () => {
    use(new FakeMaker(() => "none"));
    const failing = spyOn(sqlite, "query").mockImplementation(() => sqlite.prepare("SELECT full"));
    write(2_000);
    await checkpoints.settle();
    expect(failing).toHaveBeenCalled();
  });
});
