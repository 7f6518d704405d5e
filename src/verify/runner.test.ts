import { describe, expect, test } from "bun:test";
import { settle } from "../testing/clock.ts";
import { type Ask, createRunnerWorlds, GREYLISTED, heldAnswers } from "../testing/runner-world.ts";
import { LOOK_AT_LEAST_EVERY_MS } from "./runner.ts";

const worldOf = createRunnerWorlds();

describe("a check", () => {
  test("ends once, with its result, its evidence and its charge", async () => {
    const world = worldOf();
    const runner = world.processOf();
    const row = await world.order();
    runner.take(row);
    runner.take(row);
    await settle();
    expect(world.statusOf(row)).toBe("mailbox_exists");
    const stored = world.store.find(row.id);
    expect(stored).toMatchObject({ verdict: "deliverable", attempts: 1, dueAtMs: null });
    expect(JSON.parse(stored?.result ?? "")).toMatchObject({ sub_status: "mailbox_exists", email: "ada@x.example" });
    expect(world.evidenceOf(row).conclusion?.sub_status).toBe("mailbox_exists");
    expect([world.spent(), world.held(), runner.running()]).toEqual([1, 0, 0]);
  });

  test("that heard nobody costs nothing", async () => {
    const world = worldOf();
    const row = await world.order();
    world.processOf({ ask: async () => ({ reading: "timeout", heard: false, reply: null }) }).take(row);
    await settle();
    expect(world.statusOf(row)).toBe("smtp_timeout");
    expect([world.spent(), world.held()]).toEqual([0, 0]);
  });

  test("that meets a bug ends as internal_error, free of charge, and is logged", async () => {
    const world = worldOf();
    const row = await world.order();
    const ask: Ask = async () => {
      throw new Error("a bug");
    };
    world.processOf({ ask }).take(row);
    await settle();
    expect(world.statusOf(row)).toBe("internal_error");
    expect([world.spent(), world.held()]).toEqual([0, 0]);
    expect(world.lines.join()).toContain("a bug");
  });

  test("whose stored evidence cannot be read ends as internal_error", async () => {
    const world = worldOf();
    const row = await world.order("ada@x.example", { attempts: 1 });
    world.db.transact((tx) => world.store.saveEvidence(tx, row.id, '{"damaged":'));
    world.processOf().take(row);
    await settle();
    expect(world.statusOf(row)).toBe("internal_error");
  });

  test("of a test key ends at its time, asks and costs nothing", async () => {
    const world = worldOf();
    const runner = world.processOf({ ask: () => Promise.reject(new Error("asked")) });
    const dueAtMs = world.clock.nowMs() + 8_000;
    const row = await world.order("pending@any.example", { mode: "test", dueAtMs });
    runner.take(row);
    await world.clock.advance(7_999);
    expect(world.statusOf(row)).toBe("pending");
    await world.clock.advance(1);
    expect(world.statusOf(row)).toBe("mailbox_exists");
    expect([world.spent(), world.held(), world.lines]).toEqual([0, 0, []]);
  });
});

describe("a retry", () => {
  test("comes at its time, knows what was found out before, and is charged once", async () => {
    const world = worldOf();
    const asked: Array<[number, string]> = [];
    const ask: Ask = async ({ number, randomRecipient }) => {
      asked.push([number, randomRecipient]);
      return number === 1 ? GREYLISTED : {};
    };
    const row = await world.order();
    const runner = world.processOf({ ask });
    runner.take(row);
    await settle();
    expect(world.store.find(row.id)).toMatchObject({
      status: "pending",
      attempts: 1,
      dueAtMs: row.createdAtMs + 60_000,
    });
    expect(runner.pollAfterMs({ ...row, dueAtMs: row.createdAtMs + 60_000 })).toBeGreaterThan(60_000);
    await world.clock.advance(59_999);
    expect(asked.length).toBe(1);
    await world.clock.advance(1);
    expect(world.statusOf(row)).toBe("mailbox_exists");
    expect(asked.map(([number]) => number)).toEqual([1, 2]);
    expect(asked[0]?.[1]).toBe(asked[1]?.[1] as string);
    expect(world.evidenceOf(row).retries.length).toBe(1);
    expect([world.spent(), world.held()]).toEqual([1, 0]);
  });

  test("that is used up ends the check", async () => {
    const world = worldOf();
    const row = await world.order();
    world.processOf({ ask: async () => GREYLISTED, retryWaitsS: [60, 300] }).take(row);
    await world.clock.advance(360_000);
    expect(world.statusOf(row)).toBe("greylisted");
    expect(world.evidenceOf(row).attempts.length).toBe(3);
    expect([world.spent(), world.held()]).toEqual([1, 0]);
  });

  test("whose wall clock was set back in between still comes", async () => {
    const world = worldOf();
    const row = await world.order();
    world.processOf({ ask: async ({ number }) => (number === 1 ? GREYLISTED : {}) }).take(row);
    await settle();
    world.step(-30_000);
    await world.clock.advance(90_000 + LOOK_AT_LEAST_EVERY_MS);
    expect(world.statusOf(row)).toBe("mailbox_exists");
  });

  test("whose wall clock was set forward is noticed within a minute", async () => {
    const world = worldOf();
    const row = await world.order();
    const ask: Ask = async ({ number }) => (number === 1 ? GREYLISTED : {});
    world.processOf({ ask, retryWaitsS: [3_600] }).take(row);
    world.processOf().start();
    await settle();
    world.step(3_600_000);
    await world.clock.advance(LOOK_AT_LEAST_EVERY_MS);
    expect(world.statusOf(row)).toBe("mailbox_exists");
  });

  test("planned behind what has been looked at already, by a clock set back, is not passed over", async () => {
    const world = worldOf();
    const runner = world.processOf({ ask: async ({ number }) => (number === 1 ? GREYLISTED : {}), retryWaitsS: [2] });
    runner.start();
    runner.take(await world.order("pending@x.example", { mode: "test", dueAtMs: world.clock.nowMs() + 60_000 }));
    await world.clock.advance(60_000);
    world.step(-10_000);
    const late = await world.order("late@x.example");
    runner.take(late);
    await settle();
    world.step(20_000);
    await world.clock.advance(2_000);
    expect(world.statusOf(late)).toBe("mailbox_exists");
  });

  test("of a row that nobody announced is found, also behind a clock set back", async () => {
    const world = worldOf();
    const runner = world.processOf();
    runner.start();
    runner.take(await world.order("pending@x.example", { mode: "test", dueAtMs: world.clock.nowMs() + 60_000 }));
    await world.clock.advance(60_000);
    world.step(-3_600_000);
    const silent = await world.order("silent@x.example");
    await world.clock.advance(LOOK_AT_LEAST_EVERY_MS);
    expect(world.statusOf(silent)).toBe("mailbox_exists");
  });
});

describe("waiting", () => {
  const waitingWorld = async () => {
    const world = worldOf();
    const held = heldAnswers();
    const runner = world.processOf({ ask: held.ask });
    const row = await world.order();
    runner.take(row);
    await settle();
    let over = 0;
    return { world, runner, row, held, count: () => over, over: () => void over++ };
  };

  test("ends with the check, for everybody who waits", async () => {
    const { runner, row, held, count, over } = await waitingWorld();
    const waits = [1, 2].map(() => runner.waitFor(row.id, 5_000).then(over));
    await settle();
    expect(count()).toBe(0);
    held.waiting[0]?.answer({});
    await Promise.all(waits);
    expect(count()).toBe(2);
  });

  test("ends at its time", async () => {
    const { world, runner, row, count, over } = await waitingWorld();
    void runner.waitFor(row.id, 5_000).then(over);
    await world.clock.advance(4_999);
    expect(count()).toBe(0);
    await world.clock.advance(1);
    expect(count()).toBe(1);
  });

  test("ends when the caller is gone, also when he was gone before", async () => {
    const { world, runner, row, count, over } = await waitingWorld();
    const caller = new AbortController();
    const wait = runner.waitFor(row.id, 5_000, caller.signal).then(over);
    caller.abort();
    await wait;
    await runner.waitFor(row.id, 5_000, caller.signal).then(over);
    expect([count(), world.clock.pending()]).toEqual([2, 0]);
  });

  test("does not end with a postponement", async () => {
    const { world, runner, row, held, count, over } = await waitingWorld();
    void runner.waitFor(row.id, 90_000).then(over);
    held.waiting[0]?.answer(GREYLISTED);
    await settle();
    expect(count()).toBe(0);
    await world.clock.advance(60_000);
    held.waiting[1]?.answer({});
    await settle();
    expect(count()).toBe(1);
  });
});

describe("poll_after_ms", () => {
  test("counts down while the check runs, never below 500", async () => {
    const world = worldOf();
    const runner = world.processOf({ ask: heldAnswers().ask });
    const row = await world.order();
    runner.take(row);
    expect(runner.pollAfterMs(row)).toBe(1_500);
    await world.clock.advance(600);
    expect(runner.pollAfterMs(row)).toBe(900);
    await world.clock.advance(10_000);
    expect(runner.pollAfterMs(row)).toBe(500);
  });

  test("learns from how long checks take; those of test keys teach nothing", async () => {
    const world = worldOf();
    const held = heldAnswers();
    const runner = world.processOf({ ask: held.ask });
    runner.take(await world.order("mailbox_exists@any.example", { mode: "test" }));
    await settle();
    const pending = await world.order("b@x.example");
    expect(runner.pollAfterMs(pending)).toBe(1_500);
    runner.take(await world.order("a@x.example"));
    await world.clock.advance(21_500);
    held.waiting[0]?.answer({});
    await settle();
    expect(runner.pollAfterMs(pending)).toBe(3_500);
  });

  test("of a test key's delayed check is the time left", async () => {
    const world = worldOf();
    const row = await world.order("pending@any.example", { mode: "test", dueAtMs: world.clock.nowMs() + 8_000 });
    const runner = world.processOf();
    runner.take(row);
    await world.clock.advance(3_000);
    expect(runner.pollAfterMs(row)).toBe(5_000);
  });
});
