import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { Database as Sqlite } from "bun:sqlite";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog } from "../base/log.ts";
import { createTestClock } from "../../testing/clock.ts";
import { CheckpointThread } from "./checkpoint-thread.ts";
import type { LogState } from "./checkpoints.ts";
import { type Db, openDb } from "./open.ts";

const MAIN = new URL("../../main.ts", import.meta.url).pathname;
const clock = createTestClock();
let folder = "";
let db: Db;
let logged: string[] = [];
let thread: CheckpointThread;

const threadOf = (program: string) => {
  const log = createLog("warn", clock, (line) => logged.push(line));
  thread = new CheckpointThread(db.path, { log, clock, program });
  return thread;
};

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postwarden-checkpoint-thread-"));
  const opened = openDb(join(folder, "a.db"));
  if (!opened.ok) throw new Error("no database");
  db = opened.value;
  logged = [];
});
afterEach(() => {
  thread.stop();
  db.close();
  rmSync(folder, { recursive: true });
});

const state = () => db.sqlite.query<LogState, []>("PRAGMA wal_checkpoint(NOOP)").get();

const writeMany = () => {
  const insert = db.sqlite.prepare("INSERT INTO t (body) VALUES (zeroblob(3900))");
  db.transact(() => {
    for (let n = 0; n < 1_500; n++) insert.run();
  });
};

/** A thread that replies to each message with what the code comes to. */
const replying = (code: string) =>
  `import { parentPort } from "node:worker_threads"; let count = 0; parentPort.on("message", () => parentPort.postMessage(${code}));`;

const programOf = (text: string): string => {
  const program = join(folder, "program.ts");
  writeFileSync(program, text);
  return program;
};

describe("the thread that makes checkpoints", () => {
  test("is started from main.ts by the first commit that makes the log long, and moves all of it", async () => {
    db.checkpoints.use(threadOf(MAIN));
    db.sqlite.run("CREATE TABLE t (body BLOB)");
    writeMany();
    expect(state()).toMatchObject({ checkpointed: 0 });
    await db.checkpoints.settle();
    const { log, checkpointed } = state() ?? { log: -1, checkpointed: 0 };
    expect(log).toBeGreaterThan(1_500);
    expect(checkpointed).toBe(log);
    expect(logged).toEqual([]);
  });

  test("says that a reader keeps a part", async () => {
    db.sqlite.run("CREATE TABLE t (body BLOB)");
    const reader = new Sqlite(db.path);
    reader.run("BEGIN");
    reader.query("SELECT count(*) FROM t").get();
    writeMany();
    expect(await threadOf(MAIN).make()).toBe("some");
    reader.close();
    expect(await thread.make()).toBe("all");
  });

  test.each([
    ["process.exit(0);", "exit status 0"],
    ['throw new Error("broken");', "broken"],
  ])("that ends early (%s) is logged, and the next is started: %s", async (text, message) => {
    const ending = threadOf(programOf(text));
    expect(await ending.make()).toBe("none");
    expect(await ending.make()).toBe("none");
    expect(logged.filter((line) => line.includes(message))).toHaveLength(2);
  });

  test("that cannot be started is logged, and nothing is rejected", async () => {
    const broken = threadOf("\0");
    expect(await broken.make()).toBe("none");
    expect(logged).toHaveLength(1);
  });

  test("ends when it had nothing to do for a minute, and is started again", async () => {
    const counting = threadOf(programOf(replying('count++ === 0 ? "all" : "some"')));
    expect(await counting.make()).toBe("all");
    await clock.advance(59_999);
    expect(await counting.make()).toBe("some");
    await clock.advance(59_999);
    expect(await counting.make()).toBe("some");
    await clock.advance(60_000);
    expect(await counting.make()).toBe("all");
  });

  test("is not ended while it works", async () => {
    const working = threadOf(programOf(replying('"all"')));
    await working.make();
    expect(clock.pending()).toBe(1);
    const made = working.make();
    expect(clock.pending()).toBe(0);
    await made;
  });

  test("is given up when the server stops", async () => {
    const hanging = threadOf(programOf('require("node:worker_threads").parentPort.on("message", () => undefined);'));
    const made = hanging.make();
    hanging.stop();
    expect(await made).toBe("none");
    expect(logged).toEqual([]);
  });
});
