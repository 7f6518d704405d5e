import { describe, expect, test } from "bun:test";
import { settle } from "../testing/clock.ts";
import { type Ask, createRunnerFixtures, GREYLISTED_FINDING, heldAnswers } from "../testing/verification-runner.ts";
import type { DomainEvidence } from "./evidence.ts";
import { POLL_MS_MAX } from "./runner.ts";

const networkOf = createRunnerFixtures();

describe("a check", () => {
  test("ends once, with its result, its evidence and its charge", async () => {
    const world = networkOf();
    const runner = world.processOf();
    const row = await world.order();
    runner.submit(row);
    runner.submit(row);
    await settle();
    expect(world.statusOf(row)).toBe("mailbox_exists");
    const stored = world.store.find(row.id);
    expect(stored).toMatchObject({ verdict: "deliverable", attempts: 1, dueAtMs: null });
    expect(JSON.parse(stored?.result ?? "")).toMatchObject({ sub_status: "mailbox_exists", email: "ada@x.example" });
    expect(world.evidenceOf(row).conclusion?.sub_status).toBe("mailbox_exists");
    expect([world.spent(), world.held(), runner.running()]).toEqual([1, 0, 0]);
  });

  test("that heard nobody costs nothing", async () => {
    const world = networkOf();
    const row = await world.order();
    world.processOf({ ask: async () => ({ reading: "timeout", heard: false, reply: null }) }).submit(row);
    await settle();
    expect(world.statusOf(row)).toBe("smtp_timeout");
    expect([world.spent(), world.held()]).toEqual([0, 0]);
  });

  test("that meets a bug ends as internal_error, free of charge, and is logged", async () => {
    const world = networkOf();
    const row = await world.order();
    const ask: Ask = async () => {
      throw new Error("a bug");
    };
    world.processOf({ ask }).submit(row);
    await settle();
    expect(world.statusOf(row)).toBe("internal_error");
    expect([world.spent(), world.held()]).toEqual([0, 0]);
    expect(world.lines.join()).toContain("a bug");
  });

  test("whose stored evidence cannot be read ends as internal_error", async () => {
    const world = networkOf();
    const row = await world.order("ada@x.example", { attempts: 1 });
    world.db.transact((tx) => world.store.saveEvidence(tx, row.id, '{"damaged":'));
    world.processOf().submit(row);
    await settle();
    expect(world.statusOf(row)).toBe("internal_error");
  });

  test("of a test key ends at its time, asks and costs nothing", async () => {
    const world = networkOf();
    const runner = world.processOf({ ask: () => Promise.reject(new Error("asked")) });
    const dueAtMs = world.clock.nowMs() + 8_000;
    const row = await world.order("pending@any.example", { mode: "test", dueAtMs });
    runner.submit(row);
    await world.clock.advance(7_999);
    expect(world.statusOf(row)).toBe("pending");
    await world.clock.advance(1);
    expect(world.statusOf(row)).toBe("mailbox_exists");
    expect([world.spent(), world.held(), world.lines]).toEqual([0, 0, []]);
  });
});

describe("a retry", () => {
  test("comes at its time, knows what was found out before, and is charged once", async () => {
    const world = networkOf();
    const asked: Array<[number, string | null]> = [];
    const ask: Ask = async ({ number, randomRecipient }) => {
      asked.push([number, randomRecipient]);
      return number === 1 ? GREYLISTED_FINDING : {};
    };
    const row = await world.order();
    const runner = world.processOf({ ask });
    runner.submit(row);
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
    expect(asked).toEqual([
      [1, null],
      [2, "random@x.example"],
    ]);
    expect(world.evidenceOf(row).retries.length).toBe(1);
    expect([world.spent(), world.held()]).toEqual([1, 0]);
  });

  test("that is used up ends the check", async () => {
    const world = networkOf();
    const row = await world.order();
    world.processOf({ ask: async () => GREYLISTED_FINDING, retryWaitsS: [60, 300] }).submit(row);
    await world.clock.advance(360_000);
    expect(world.statusOf(row)).toBe("greylisted");
    expect(world.evidenceOf(row).attempts.length).toBe(3);
    expect([world.spent(), world.held()]).toEqual([1, 0]);
  });

  for (const [way, stepMs] of [
    ["back", -86_400_000],
    ["forward", 86_400_000],
  ] as const)
    test(`comes at its time although the wall clock was set ${way} by a day`, async () => {
      const world = networkOf();
      const rows = [await world.order("a@x.example"), await world.order("b@x.example")];
      const ask: Ask = async ({ number }) => (number === 1 ? GREYLISTED_FINDING : {});
      const runner = world.processOf({ ask, retryWaitsS: [3_600] });
      runner.start();
      for (const row of rows.slice(0, 1)) runner.submit(row);
      await settle();
      world.step(stepMs);
      for (const row of rows.slice(1)) runner.submit(row);
      await world.clock.advance(3_599_000);
      expect(rows.map(world.statusOf)).toEqual(["pending", "pending"]);
      for (const row of rows) expect(runner.pollAfterMs(world.store.find(row.id) ?? row)).toBeLessThan(10_000);
      await world.clock.advance(2_000);
      expect(rows.map(world.statusOf)).toEqual(["mailbox_exists", "mailbox_exists"]);
    });

  test("that an earlier process planned before the clock was set back is due at the start", async () => {
    const world = networkOf();
    const far = await world.order("far@x.example", { dueAtMs: world.clock.nowMs() + 86_400_000 });
    const near = await world.order("near@x.example", { dueAtMs: world.clock.nowMs() + 3_600_000 });
    world.processOf({ retryWaitsS: [3_600] }).start();
    await world.clock.advance(0);
    expect([far, near].map(world.statusOf)).toEqual(["mailbox_exists", "pending"]);
  });

  test("due at the very millisecond that was looked at last is not passed over", async () => {
    const world = networkOf();
    const rows = [await world.order("a@x.example"), await world.order("b@x.example")];
    const ask: Ask = async ({ number }) => (number === 1 ? GREYLISTED_FINDING : {});
    world.processOf({ ask, retryWaitsS: [0] }).start();
    await world.clock.advance(POLL_MS_MAX);
    expect(rows.map(world.statusOf)).toEqual(["mailbox_exists", "mailbox_exists"]);
  });

  test("of a row that nobody announced is found", async () => {
    const world = networkOf();
    const runner = world.processOf();
    runner.start();
    runner.submit(await world.order("pending@x.example", { mode: "test", dueAtMs: world.clock.nowMs() + 60_000 }));
    await world.clock.advance(60_000);
    const silent = await world.order("silent@x.example");
    await world.clock.advance(POLL_MS_MAX);
    expect(world.statusOf(silent)).toBe("mailbox_exists");
  });
});

describe("a failure of DNS", () => {
  const failing: Partial<DomainEvidence> = {
    outcome: "dns_error",
    hosts: [],
    questions: [
      {
        ...{ name: "x.example", type: "MX", outcome: "servfail", records: [], ttl_s: 0 },
        ...{ server: null, from_cache: false, elapsed_ms: 1 },
      },
    ],
  };

  test("is retried as greylisting is, over a restart, and ends free when the retries are used up", async () => {
    const world = networkOf();
    const row = await world.order();
    world.processOf({ domain: () => failing, retryWaitsS: [60, 300] }).submit(row);
    await settle();
    expect([world.statusOf(row), world.evidenceOf(row).retries.length]).toEqual(["pending", 1]);
    const next = world.processOf({ domain: () => failing, retryWaitsS: [60, 300] });
    next.start();
    await world.clock.advance(60_000);
    expect([world.statusOf(row), world.evidenceOf(row).retries.length]).toEqual(["pending", 2]);
    await world.clock.advance(300_000);
    expect(world.statusOf(row)).toBe("dns_error");
    expect([world.spent(), world.held()]).toEqual([0, 0]);
  });

  test("that passes leaves the verdict of the mail host", async () => {
    const world = networkOf();
    const row = await world.order();
    let attempts = 0;
    world.processOf({ domain: () => (attempts++ === 0 ? failing : {}) }).submit(row);
    await world.clock.advance(60_000);
    expect(world.statusOf(row)).toBe("mailbox_exists");
    expect([world.spent(), world.held()]).toEqual([1, 0]);
  });

  test("on our side ends as internal_error, never as dns_error", async () => {
    const world = networkOf();
    const row = await world.order();
    world.processOf({ domain: () => ({ outcome: "local_failure", hosts: [] }) }).submit(row);
    await world.clock.advance(60_000);
    expect(world.statusOf(row)).toBe("internal_error");
    expect([world.spent(), world.held()]).toEqual([0, 0]);
  });
});

test("a mail host that cannot be reached while nobody can is asked again, else the check ends", async () => {
  const unreachable: Ask = async ({ number }) =>
    number === 1 ? { reading: "unreachable", heard: false, reply: null } : {};
  const statuses: unknown[] = [];
  for (const judged of ["outage", "open", "believed"] as const) {
    const world = networkOf();
    const row = await world.order();
    world.processOf({ ask: unreachable, judged }).submit(row);
    await world.clock.advance(60_000);
    statuses.push(world.statusOf(row));
  }
  expect(statuses).toEqual(["mailbox_exists", "smtp_unreachable", "smtp_unreachable"]);
});

test("a check that came back because of an outage does not end where it cannot be told, as after a restart", async () => {
  const world = networkOf();
  const row = await world.order();
  const unreachable: Ask = async () => ({ reading: "unreachable", heard: false, reply: null });
  world.processOf({ ask: unreachable, judged: "outage", retryWaitsS: [60, 60, 60] }).submit(row);
  await settle();
  const next = world.processOf({ ask: unreachable, judged: "open", retryWaitsS: [60, 60, 60] });
  next.start();
  await world.clock.advance(120_000);
  expect(world.statusOf(row)).toBe("pending");
  await world.clock.advance(60_000);
  expect([world.statusOf(row), world.spent(), world.held()]).toEqual(["smtp_unreachable", 0, 0]);
});

test("a check that is taken twice is begun once", async () => {
  const world = networkOf();
  const held = heldAnswers();
  const runner = world.processOf({ ask: held.ask });
  const row = await world.order();
  runner.submit(row);
  runner.submit(row);
  await settle();
  expect([held.waiting.length, runner.running()]).toEqual([1, 1]);
});

describe("waiting", () => {
  const waitingWorld = async () => {
    const world = networkOf();
    const held = heldAnswers();
    const runner = world.processOf({ ask: held.ask });
    const row = await world.order();
    runner.submit(row);
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
    held.waiting[0]?.answer(GREYLISTED_FINDING);
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
    const world = networkOf();
    const runner = world.processOf({ ask: heldAnswers().ask });
    const row = await world.order();
    runner.submit(row);
    expect(runner.pollAfterMs(row)).toBe(1_500);
    await world.clock.advance(600);
    expect(runner.pollAfterMs(row)).toBe(900);
    await world.clock.advance(10_000);
    expect(runner.pollAfterMs(row)).toBe(500);
  });

  test("learns from how long checks take; those of test keys teach nothing", async () => {
    const world = networkOf();
    const held = heldAnswers();
    const runner = world.processOf({ ask: held.ask });
    runner.submit(await world.order("mailbox_exists@any.example", { mode: "test" }));
    await settle();
    const pending = await world.order("b@x.example");
    expect(runner.pollAfterMs(pending)).toBe(1_500);
    runner.submit(await world.order("a@x.example"));
    await world.clock.advance(21_500);
    held.waiting[0]?.answer({});
    await settle();
    expect(runner.pollAfterMs(pending)).toBe(3_500);
  });

  test("of a test key's delayed check is the time left", async () => {
    const world = networkOf();
    const row = await world.order("pending@any.example", { mode: "test", dueAtMs: world.clock.nowMs() + 8_000 });
    const runner = world.processOf();
    runner.submit(row);
    await world.clock.advance(3_000);
    expect(runner.pollAfterMs(row)).toBe(5_000);
  });
});
