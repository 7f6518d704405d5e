import { describe, expect, test } from "bun:test";
import type { Db } from "../db/open.ts";
import { PoolClosed } from "../probe/pool.ts";
import { settle } from "../testing/clock.ts";
import { type Ask, createRunnerFixtures, GREYLISTED_FINDING, heldAnswers } from "../testing/verification-runner.ts";
import { WRITE_AGAIN_MS } from "./attempts.ts";
import { POLL_MS_MAX, CLAIMED_AT_ONCE_MAX } from "./runner.ts";
import type { VerificationRow } from "./store.ts";

const networkOf = createRunnerFixtures();

describe("after a crash", () => {
  test("what was ordered, under way, or waiting for its retry goes on, and ends once", async () => {
    const world = networkOf();
    const before = heldAnswers();
    const crashed = world.processOf({ ask: before.ask });
    const postponed = await world.order("postponed@x.example");
    crashed.submit(postponed);
    await settle();
    before.waiting[0]?.answer(GREYLISTED_FINDING);
    await settle();
    const underWay = await world.order("underway@x.example");
    crashed.submit(underWay);
    await settle();
    const neverTaken = await world.order("never@x.example");
    expect([postponed, underWay, neverTaken].map(world.statusOf)).toEqual(["pending", "pending", "pending"]);
    expect(world.held()).toBe(3);

    const asked: string[] = [];
    const next = world.processOf({
      ask: async ({ address, number }) => {
        asked.push(`${address.normalized} ${number}`);
        return {};
      },
    });
    next.start();
    await world.clock.advance(0);
    expect([underWay, neverTaken].map(world.statusOf)).toEqual(["mailbox_exists", "mailbox_exists"]);
    expect(world.statusOf(postponed)).toBe("pending");
    await world.clock.advance(60_000);
    expect(world.statusOf(postponed)).toBe("mailbox_exists");
    expect(asked.toSorted()).toEqual(["never@x.example 1", "postponed@x.example 2", "underway@x.example 1"]);
    expect([world.spent(), world.held()]).toEqual([3, 0]);
  });

  test("two processes that end the same check charge once, and the first word stands", async () => {
    const world = networkOf();
    const slow = heldAnswers();
    const row = await world.order();
    world.processOf({ ask: slow.ask }).submit(row);
    await settle();
    const next = world.processOf();
    next.start();
    await world.clock.advance(0);
    expect(world.statusOf(row)).toBe("mailbox_exists");
    slow.waiting[0]?.answer({ reading: "mailbox_not_found", reply: "550 5.1.1 User unknown" });
    await settle();
    expect(world.statusOf(row)).toBe("mailbox_exists");
    expect([world.spent(), world.held(), world.ends()]).toEqual([1, 0, { n: 1 }]);
  });

  test("a late postponement does not reopen what has ended", async () => {
    const world = networkOf();
    const slow = heldAnswers();
    const row = await world.order();
    world.processOf({ ask: slow.ask }).submit(row);
    await settle();
    world.processOf().start();
    await world.clock.advance(0);
    slow.waiting[0]?.answer(GREYLISTED_FINDING);
    await settle();
    expect(world.statusOf(row)).toBe("mailbox_exists");
    expect(world.evidenceOf(row).conclusion?.sub_status).toBe("mailbox_exists");
  });

  test("a retry that fell due while nothing ran is made at once", async () => {
    const world = networkOf();
    const row = await world.order("ada@x.example", { dueAtMs: world.clock.nowMs() - 3_600_000 });
    world.processOf().start();
    await world.clock.advance(0);
    expect(world.statusOf(row)).toBe("mailbox_exists");
  });

  test("a backlog is taken up in portions, all of it, each check once", async () => {
    const world = networkOf();
    const total = CLAIMED_AT_ONCE_MAX * 2 + 10;
    const dueAtMs = world.clock.nowMs();
    for (let at = 0; at < total; at++) await world.order(`a${at}@x.example`, { dueAtMs });
    const held = heldAnswers();
    const runner = world.processOf({ ask: held.ask });
    runner.start();
    expect(runner.running()).toBe(0);
    await world.clock.advance(0);
    expect([runner.running(), held.waiting.length]).toEqual([total, total]);
    await world.clock.advance(POLL_MS_MAX);
    expect(held.waiting.length).toBe(total);
    for (const { answer } of held.waiting) answer({});
    await settle();
    expect([runner.running(), world.spent(), world.held()]).toEqual([0, total, 0]);
  });

  test("no more runs at a time than may, and the rest follows", async () => {
    const world = networkOf();
    const held = heldAnswers();
    const runner = world.processOf({ ask: held.ask, runningMax: 2 });
    const rows: VerificationRow[] = [];
    for (let at = 0; at < 5; at++) {
      const row = await world.order(`a${at}@x.example`);
      rows.push(row);
      runner.submit(row);
    }
    await settle();
    expect([runner.running(), held.waiting.length]).toEqual([2, 2]);
    for (let seconds = 0; seconds < 5; seconds++) {
      for (const { answer } of held.waiting.splice(0)) answer({});
      await world.clock.advance(1_000);
      expect(runner.running()).toBeLessThanOrEqual(2);
    }
    expect(rows.map(world.statusOf)).toEqual(rows.map(() => "mailbox_exists"));
    expect(world.spent()).toBe(5);
  });
});

describe("a write that fails", () => {
  const failingWith = (code: string) => Object.assign(new Error("cannot write"), { code });

  test("for the disk is made again until it succeeds", async () => {
    const world = networkOf();
    let failures = 2;
    const commit: Db["commit"] = (work) =>
      failures-- > 0 ? Promise.reject(failingWith("SQLITE_FULL")) : world.db.commit(work);
    const row = await world.order();
    world.processOf({ commit }).submit(row);
    await settle();
    expect(world.statusOf(row)).toBe("pending");
    await world.clock.advance(WRITE_AGAIN_MS);
    expect(world.statusOf(row)).toBe("pending");
    await world.clock.advance(WRITE_AGAIN_MS);
    expect(world.statusOf(row)).toBe("mailbox_exists");
    expect([world.spent(), world.held()]).toEqual([1, 0]);
  });

  test("for a bug is not made for ever: the check ends as internal_error", async () => {
    const world = networkOf();
    let failures = 1;
    const commit: Db["commit"] = (work) =>
      failures-- > 0 ? Promise.reject(failingWith("SQLITE_CONSTRAINT_UNIQUE")) : world.db.commit(work);
    const row = await world.order();
    world.processOf({ commit }).submit(row);
    await settle();
    expect(world.statusOf(row)).toBe("internal_error");
    expect([world.spent(), world.held()]).toEqual([0, 0]);
  });

  test("for a bug every time is made again after growing waits, then the credit goes back without a restart", async () => {
    const world = networkOf();
    const row = await world.order();
    let isBroken: boolean = true;
    const commit: Db["commit"] = (work) =>
      isBroken ? Promise.reject(failingWith("SQLITE_CONSTRAINT_CHECK")) : world.db.commit(work);
    const asked: number[] = [];
    const ask: Ask = async () => {
      asked.push(world.clock.monotonicMs());
      return {};
    };
    const runner = world.processOf({ commit, ask });
    runner.start();
    runner.submit(row);
    await settle();
    runner.submit(row);
    expect([world.statusOf(row), runner.running(), world.held()]).toEqual(["pending", 0, 1]);
    await world.clock.advance(5_000 + 30_000);
    isBroken = false;
    await world.clock.advance(119_999);
    expect(world.statusOf(row)).toBe("pending");
    await world.clock.advance(1);
    expect([world.statusOf(row), asked]).toEqual(["internal_error", [0, 5_000, 35_000]]);
    expect([world.spent(), world.held()]).toEqual([0, 0]);
    expect(world.lines.filter((line) => line.includes("ended in a bug")).length).toBe(3);
  });

  test("for a bug once, and then no more, costs nothing but the wait", async () => {
    const world = networkOf();
    const row = await world.order();
    let failures = 2;
    const commit: Db["commit"] = (work) =>
      failures-- > 0 ? Promise.reject(failingWith("SQLITE_CONSTRAINT_CHECK")) : world.db.commit(work);
    world.processOf({ commit }).submit(row);
    await world.clock.advance(5_000);
    expect([world.statusOf(row), world.spent(), world.held()]).toEqual(["mailbox_exists", 1, 0]);
  });

  test("is not made again once the service stops", async () => {
    const world = networkOf();
    const row = await world.order();
    const runner = world.processOf({ commit: () => Promise.reject(failingWith("SQLITE_FULL")) });
    runner.submit(row);
    await settle();
    const stopped = runner.stop();
    await world.clock.advance(WRITE_AGAIN_MS);
    await stopped;
    expect([world.statusOf(row), runner.running()]).toEqual(["pending", 0]);
  });
});

describe("stop", () => {
  test("lets a check under way end, and takes up no other", async () => {
    const world = networkOf();
    const held = heldAnswers();
    const runner = world.processOf({ ask: held.ask });
    const underWay = await world.order("a@x.example");
    runner.submit(underWay);
    await settle();
    const stopped = runner.stop();
    const late = await world.order("b@x.example");
    runner.submit(late);
    held.waiting[0]?.answer({});
    await stopped;
    expect([underWay, late].map(world.statusOf)).toEqual(["mailbox_exists", "pending"]);
    expect(world.clock.pending()).toBe(0);
  });

  test("does not wait for ever, and what has not ended stays pending", async () => {
    const world = networkOf();
    const runner = world.processOf({ ask: heldAnswers().ask });
    const row = await world.order();
    runner.submit(row);
    await settle();
    const stopped = runner.stop();
    await world.clock.advance(10_000);
    await stopped;
    expect(world.statusOf(row)).toBe("pending");
  });

  test("leaves what the closed pool turned away pending, without a word in the log", async () => {
    const world = networkOf();
    const row = await world.order();
    world.processOf({ ask: () => Promise.reject(new PoolClosed()) }).submit(row);
    await settle();
    expect([world.statusOf(row), world.held(), world.lines]).toEqual(["pending", 1, []]);
  });

  test("lets every waiting request go", async () => {
    const world = networkOf();
    const runner = world.processOf({ ask: heldAnswers().ask });
    const waits = ["a", "b"].map((id) => runner.waitFor(id, 90_000));
    await runner.stop();
    await Promise.all([...waits, runner.waitFor("c", 90_000)]);
    expect(world.clock.pending()).toBe(0);
  });
});
