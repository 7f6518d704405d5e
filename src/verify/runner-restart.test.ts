import { describe, expect, test } from "bun:test";
import type { Db } from "../foundation/db/open.ts";
import { PoolClosed } from "./smtp/pool.ts";
import { settle } from "../testing/clock.ts";
import { type Ask, createRunnerFixtures, GREYLISTED_FINDING, heldAnswers } from "../testing/verification-runner.ts";
import { WRITE_AGAIN_MS, POLL_MS_MAX, CLAIMED_AT_ONCE_MAX } from "./runner.ts";
import type { VerificationRow } from "./store.ts";

const networkOf = createRunnerFixtures();

describe("after a crash", () => {
  test("what was ordered, under way, or waiting for its retry goes on, and ends once", async () => {
    const network = networkOf();
    const before = heldAnswers();
    const crashed = network.processOf({ ask: before.ask });
    const postponed = await network.order("postponed@x.example");
    crashed.submit(postponed);
    await settle();
    before.waiting[0]?.answer(GREYLISTED_FINDING);
    await settle();
    const underWay = await network.order("underway@x.example");
    crashed.submit(underWay);
    await settle();
    const neverTaken = await network.order("never@x.example");
    expect([postponed, underWay, neverTaken].map(network.statusOf)).toEqual(["pending", "pending", "pending"]);
    expect(network.held()).toBe(3);

    const asked: string[] = [];
    const next = network.processOf({
      ask: async ({ address, number }) => {
        asked.push(`${address.normalized} ${number}`);
        return {};
      },
    });
    next.start();
    await network.clock.advance(0);
    expect([underWay, neverTaken].map(network.statusOf)).toEqual(["mailbox_exists", "mailbox_exists"]);
    expect(network.statusOf(postponed)).toBe("pending");
    await network.clock.advance(60_000);
    expect(network.statusOf(postponed)).toBe("mailbox_exists");
    expect(asked.toSorted()).toEqual(["never@x.example 1", "postponed@x.example 2", "underway@x.example 1"]);
    expect([network.spent(), network.held()]).toEqual([3, 0]);
  });

  test("two processes that end the same verification charge once, and the first result stands", async () => {
    const network = networkOf();
    const slow = heldAnswers();
    const row = await network.order();
    network.processOf({ ask: slow.ask }).submit(row);
    await settle();
    const next = network.processOf();
    next.start();
    await network.clock.advance(0);
    expect(network.statusOf(row)).toBe("mailbox_exists");
    slow.waiting[0]?.answer({ reading: "mailbox_not_found", reply: "550 5.1.1 User unknown" });
    await settle();
    expect(network.statusOf(row)).toBe("mailbox_exists");
    expect([network.spent(), network.held(), network.ends()]).toEqual([1, 0, { n: 1 }]);
  });

  test("a late postponement does not reopen what has ended", async () => {
    const network = networkOf();
    const slow = heldAnswers();
    const row = await network.order();
    network.processOf({ ask: slow.ask }).submit(row);
    await settle();
    network.processOf().start();
    await network.clock.advance(0);
    slow.waiting[0]?.answer(GREYLISTED_FINDING);
    await settle();
    expect(network.statusOf(row)).toBe("mailbox_exists");
    expect(network.evidenceOf(row).conclusion?.sub_status).toBe("mailbox_exists");
  });

  test("a retry that fell due while nothing ran is made at once", async () => {
    const network = networkOf();
    const row = await network.order("ada@x.example", { dueAtMs: network.clock.nowMs() - 3_600_000 });
    network.processOf().start();
    await network.clock.advance(0);
    expect(network.statusOf(row)).toBe("mailbox_exists");
  });

  test("a backlog is claimed in portions, all of it, each row once", async () => {
    const network = networkOf();
    const total = CLAIMED_AT_ONCE_MAX * 2 + 10;
    const dueAtMs = network.clock.nowMs();
    for (let at = 0; at < total; at++) await network.order(`a${at}@x.example`, { dueAtMs });
    const held = heldAnswers();
    const runner = network.processOf({ ask: held.ask });
    runner.start();
    expect(runner.running()).toBe(0);
    await network.clock.advance(0);
    expect([runner.running(), held.waiting.length]).toEqual([total, total]);
    await network.clock.advance(POLL_MS_MAX);
    expect(held.waiting.length).toBe(total);
    for (const { answer } of held.waiting) answer({});
    await settle();
    expect([runner.running(), network.spent(), network.held()]).toEqual([0, total, 0]);
  });

  test("no more run at a time than may, and the others follow", async () => {
    const network = networkOf();
    const held = heldAnswers();
    const runner = network.processOf({ ask: held.ask, runningMax: 2 });
    const rows: VerificationRow[] = [];
    for (let at = 0; at < 5; at++) {
      const row = await network.order(`a${at}@x.example`);
      rows.push(row);
      runner.submit(row);
    }
    await settle();
    expect([runner.running(), held.waiting.length]).toEqual([2, 2]);
    for (let seconds = 0; seconds < 5; seconds++) {
      for (const { answer } of held.waiting.splice(0)) answer({});
      await network.clock.advance(1_000);
      expect(runner.running()).toBeLessThanOrEqual(2);
    }
    expect(rows.map(network.statusOf)).toEqual(rows.map(() => "mailbox_exists"));
    expect(network.spent()).toBe(5);
  });
});

describe("a write that fails", () => {
  const failingWith = (code: string) => Object.assign(new Error("cannot write"), { code });

  test("for the disk is made again until it succeeds", async () => {
    const network = networkOf();
    let failures = 2;
    const commit: Db["commit"] = (work) =>
      failures-- > 0 ? Promise.reject(failingWith("SQLITE_FULL")) : network.db.commit(work);
    const row = await network.order();
    network.processOf({ commit }).submit(row);
    await settle();
    expect(network.statusOf(row)).toBe("pending");
    await network.clock.advance(WRITE_AGAIN_MS);
    expect(network.statusOf(row)).toBe("pending");
    await network.clock.advance(WRITE_AGAIN_MS);
    expect(network.statusOf(row)).toBe("mailbox_exists");
    expect([network.spent(), network.held()]).toEqual([1, 0]);
    expect(network.lines.join()).toContain("verification could not be stored, retrying");
  });

  test("for a bug is not made for ever: the check ends as internal_error", async () => {
    const network = networkOf();
    let failures = 1;
    const commit: Db["commit"] = (work) =>
      failures-- > 0 ? Promise.reject(failingWith("SQLITE_CONSTRAINT_UNIQUE")) : network.db.commit(work);
    const row = await network.order();
    network.processOf({ commit }).submit(row);
    await settle();
    expect(network.statusOf(row)).toBe("internal_error");
    expect([network.spent(), network.held()]).toEqual([0, 0]);
    expect(network.lines.join()).toContain("verification could not be concluded");
  });

  test("for a bug every time is made again after growing waits, then the credit goes back without a restart", async () => {
    const network = networkOf();
    const row = await network.order();
    let isBroken: boolean = true;
    const commit: Db["commit"] = (work) =>
      isBroken ? Promise.reject(failingWith("SQLITE_CONSTRAINT_CHECK")) : network.db.commit(work);
    const asked: number[] = [];
    const ask: Ask = async () => {
      asked.push(network.clock.monotonicMs());
      return {};
    };
    const runner = network.processOf({ commit, ask });
    runner.start();
    runner.submit(row);
    await settle();
    runner.submit(row);
    expect([network.statusOf(row), runner.running(), network.held()]).toEqual(["pending", 0, 1]);
    await network.clock.advance(5_000 + 30_000);
    isBroken = false;
    await network.clock.advance(119_999);
    expect(network.statusOf(row)).toBe("pending");
    await network.clock.advance(1);
    expect([network.statusOf(row), asked]).toEqual(["internal_error", [0, 5_000, 35_000]]);
    expect([network.spent(), network.held()]).toEqual([0, 0]);
    expect(network.lines.filter((line) => line.includes("ended in a bug")).length).toBe(3);
  });

  test("for a bug once, and then no more, costs nothing but the wait", async () => {
    const network = networkOf();
    const row = await network.order();
    let failures = 2;
    const commit: Db["commit"] = (work) =>
      failures-- > 0 ? Promise.reject(failingWith("SQLITE_CONSTRAINT_CHECK")) : network.db.commit(work);
    network.processOf({ commit }).submit(row);
    await network.clock.advance(5_000);
    expect([network.statusOf(row), network.spent(), network.held()]).toEqual(["mailbox_exists", 1, 0]);
  });

  test("is not made again once the service stops", async () => {
    const network = networkOf();
    const row = await network.order();
    const runner = network.processOf({ commit: () => Promise.reject(failingWith("SQLITE_FULL")) });
    runner.submit(row);
    await settle();
    const stopped = runner.stop();
    await network.clock.advance(WRITE_AGAIN_MS);
    await stopped;
    expect([network.statusOf(row), runner.running()]).toEqual(["pending", 0]);
  });

  test("while the service stops leaves the check pending, although the disk has room again", async () => {
    const network = networkOf();
    const row = await network.order();
    let failures = 2;
    const commit: Db["commit"] = (work) =>
      failures-- > 0 ? Promise.reject(failingWith("SQLITE_FULL")) : network.db.commit(work);
    const runner = network.processOf({ commit });
    runner.submit(row);
    await settle();
    const stopped = runner.stop();
    await network.clock.advance(WRITE_AGAIN_MS);
    await stopped;
    expect([failures, network.statusOf(row), network.held()]).toEqual([0, "pending", 1]);
    expect(network.lines.join()).not.toContain("could not be concluded");
  });
});

describe("stop", () => {
  test("lets a check under way end, and takes up no other", async () => {
    const network = networkOf();
    const held = heldAnswers();
    const runner = network.processOf({ ask: held.ask });
    const underWay = await network.order("a@x.example");
    runner.submit(underWay);
    await settle();
    const stopped = runner.stop();
    const late = await network.order("b@x.example");
    runner.submit(late);
    held.waiting[0]?.answer({});
    await stopped;
    expect([underWay, late].map(network.statusOf)).toEqual(["mailbox_exists", "pending"]);
    expect(network.clock.pending()).toBe(0);
  });

  test("does not wait for ever, and what has not ended stays pending", async () => {
    const network = networkOf();
    const runner = network.processOf({ ask: heldAnswers().ask });
    const row = await network.order();
    runner.submit(row);
    await settle();
    const stopped = runner.stop();
    await network.clock.advance(10_000);
    await stopped;
    expect(network.statusOf(row)).toBe("pending");
  });

  test("leaves what the closed pool rejected pending, and logs nothing", async () => {
    const network = networkOf();
    const row = await network.order();
    network.processOf({ ask: () => Promise.reject(new PoolClosed()) }).submit(row);
    await settle();
    expect([network.statusOf(row), network.held(), network.lines]).toEqual(["pending", 1, []]);
  });

  test("lets every waiting request go", async () => {
    const network = networkOf();
    const runner = network.processOf({ ask: heldAnswers().ask });
    const waits = ["a", "b"].map((id) => runner.waitFor(id, 90_000));
    await runner.stop();
    await Promise.all([...waits, runner.waitFor("c", 90_000)]);
    expect(network.clock.pending()).toBe(0);
  });
});
