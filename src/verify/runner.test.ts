import { describe, expect, spyOn, test } from "bun:test";
import { settle } from "../testing/clock.ts";
import { type Ask, createRunnerFixtures, GREYLISTED_FINDING, heldAnswers } from "../testing/verification-runner.ts";
import type { DomainEvidence } from "./evidence.ts";
import { POLL_MS_MAX } from "./runner.ts";

const networkOf = createRunnerFixtures();

describe("a check", () => {
  test("ends once, with its result, its evidence and its charge", async () => {
    const network = networkOf();
    const runner = network.processOf();
    const row = await network.order();
    runner.submit(row);
    runner.submit(row);
    await settle();
    expect(network.statusOf(row)).toBe("mailbox_exists");
    const stored = network.store.find(row.id);
    expect(stored).toMatchObject({ verdict: "deliverable", attempts: 1, dueAtMs: null });
    expect(JSON.parse(stored?.result ?? "")).toMatchObject({ sub_status: "mailbox_exists", email: "ada@x.example" });
    expect(network.evidenceOf(row).conclusion?.sub_status).toBe("mailbox_exists");
    expect([network.spent(), network.held(), runner.running()]).toEqual([1, 0, 0]);
  });

  test("without a response is not charged", async () => {
    const network = networkOf();
    const row = await network.order();
    network.processOf({ ask: async () => ({ reading: "timeout", heard: false, reply: null }) }).submit(row);
    await settle();
    expect(network.statusOf(row)).toBe("smtp_timeout");
    expect([network.spent(), network.held()]).toEqual([0, 0]);
  });

  test("that meets a bug ends as internal_error, free of charge, and is logged", async () => {
    const network = networkOf();
    const row = await network.order();
    const ask: Ask = async () => {
      throw new Error("a bug");
    };
    network.processOf({ ask }).submit(row);
    await settle();
    expect(network.statusOf(row)).toBe("internal_error");
    expect([network.spent(), network.held()]).toEqual([0, 0]);
    expect(network.lines.join()).toContain("a bug");
  });

  test("whose stored evidence cannot be read ends as internal_error", async () => {
    const network = networkOf();
    const row = await network.order("ada@x.example", { attempts: 1 });
    network.db.sqlite.run("INSERT INTO verification_evidence VALUES (?, ?)", [row.id, '{"damaged":']);
    network.processOf().submit(row);
    await settle();
    expect(network.statusOf(row)).toBe("internal_error");
  });

  test("of a test key ends at its time, without a probe or a charge", async () => {
    const network = networkOf();
    const runner = network.processOf({ ask: () => Promise.reject(new Error("asked")) });
    const dueAtMs = network.clock.nowMs() + 8_000;
    const row = await network.order("pending@any.example", { mode: "test", dueAtMs });
    runner.submit(row);
    await network.clock.advance(7_999);
    expect(network.statusOf(row)).toBe("pending");
    await network.clock.advance(1);
    expect(network.statusOf(row)).toBe("mailbox_exists");
    expect([network.spent(), network.held(), network.lines]).toEqual([0, 0, []]);
  });
});

describe("a retry", () => {
  test("comes at its time, knows what was found out before, and is charged once", async () => {
    const network = networkOf();
    const asked: Array<[number, string | null]> = [];
    const ask: Ask = async ({ number, randomRecipient }) => {
      asked.push([number, randomRecipient]);
      return number === 1 ? GREYLISTED_FINDING : {};
    };
    const row = await network.order();
    const runner = network.processOf({ ask });
    runner.submit(row);
    await settle();
    expect(network.store.find(row.id)).toMatchObject({
      status: "pending",
      attempts: 1,
      dueAtMs: row.createdAtMs + 60_000,
    });
    expect(runner.pollAfterMs({ ...row, dueAtMs: row.createdAtMs + 60_000 })).toBeGreaterThan(60_000);
    await network.clock.advance(59_999);
    expect(asked.length).toBe(1);
    await network.clock.advance(1);
    expect(network.statusOf(row)).toBe("mailbox_exists");
    expect(asked).toEqual([
      [1, null],
      [2, "random@x.example"],
    ]);
    expect(network.evidenceOf(row).retries.length).toBe(1);
    expect([network.spent(), network.held()]).toEqual([1, 0]);
  });

  test("that is used up ends the check", async () => {
    const network = networkOf();
    const row = await network.order();
    network.processOf({ ask: async () => GREYLISTED_FINDING, retryWaitsS: [60, 300] }).submit(row);
    await network.clock.advance(360_000);
    expect(network.statusOf(row)).toBe("greylisted");
    expect(network.evidenceOf(row).attempts.length).toBe(3);
    expect([network.spent(), network.held()]).toEqual([1, 0]);
  });

  for (const [way, stepMs] of [
    ["back", -86_400_000],
    ["forward", 86_400_000],
  ] as const)
    test(`comes at its time although the wall clock was set ${way} by a day`, async () => {
      const network = networkOf();
      const rows = [await network.order("a@x.example"), await network.order("b@x.example")];
      const ask: Ask = async ({ number }) => (number === 1 ? GREYLISTED_FINDING : {});
      const runner = network.processOf({ ask, retryWaitsS: [3_600] });
      runner.start();
      for (const row of rows.slice(0, 1)) runner.submit(row);
      await settle();
      network.step(stepMs);
      for (const row of rows.slice(1)) runner.submit(row);
      await network.clock.advance(3_599_000);
      expect(rows.map(network.statusOf)).toEqual(["pending", "pending"]);
      for (const row of rows) expect(runner.pollAfterMs(network.store.find(row.id) ?? row)).toBeLessThan(10_000);
      await network.clock.advance(2_000);
      expect(rows.map(network.statusOf)).toEqual(["mailbox_exists", "mailbox_exists"]);
    });

  test("that an earlier process planned before the clock was set back is due at the start", async () => {
    const network = networkOf();
    const far = await network.order("far@x.example", { dueAtMs: network.clock.nowMs() + 86_400_000 });
    const near = await network.order("near@x.example", { dueAtMs: network.clock.nowMs() + 3_600_000 });
    network.processOf({ retryWaitsS: [3_600] }).start();
    await network.clock.advance(0);
    expect([far, near].map(network.statusOf)).toEqual(["mailbox_exists", "pending"]);
  });

  test("due at the very millisecond that was looked at last is not passed over", async () => {
    const network = networkOf();
    const rows = [await network.order("a@x.example"), await network.order("b@x.example")];
    const ask: Ask = async ({ number }) => (number === 1 ? GREYLISTED_FINDING : {});
    network.processOf({ ask, retryWaitsS: [0] }).start();
    await network.clock.advance(POLL_MS_MAX);
    expect(rows.map(network.statusOf)).toEqual(["mailbox_exists", "mailbox_exists"]);
  });

  test("of a row that was not submitted is found", async () => {
    const network = networkOf();
    const runner = network.processOf();
    runner.start();
    runner.submit(await network.order("pending@x.example", { mode: "test", dueAtMs: network.clock.nowMs() + 60_000 }));
    await network.clock.advance(60_000);
    const silent = await network.order("silent@x.example");
    await network.clock.advance(POLL_MS_MAX);
    expect(network.statusOf(silent)).toBe("mailbox_exists");
  });
});

describe("a failure of DNS", () => {
  const failing: Partial<DomainEvidence> = {
    outcome: "dns_error",
    hosts: [],
    dns_queries: [
      {
        ...{ name: "x.example", type: "MX", outcome: "servfail", records: [], ttl_s: 0 },
        ...{ server: null, from_cache: false, elapsed_ms: 1 },
      },
    ],
  };

  test("is retried as greylisting is, over a restart, and ends free when the retries are used up", async () => {
    const network = networkOf();
    const row = await network.order();
    network.processOf({ domain: () => failing, retryWaitsS: [60, 300] }).submit(row);
    await settle();
    expect([network.statusOf(row), network.evidenceOf(row).retries.length]).toEqual(["pending", 1]);
    const next = network.processOf({ domain: () => failing, retryWaitsS: [60, 300] });
    next.start();
    await network.clock.advance(60_000);
    expect([network.statusOf(row), network.evidenceOf(row).retries.length]).toEqual(["pending", 2]);
    await network.clock.advance(300_000);
    expect(network.statusOf(row)).toBe("dns_error");
    expect([network.spent(), network.held()]).toEqual([0, 0]);
  });

  test("that passes leaves the verdict of the mail host", async () => {
    const network = networkOf();
    const row = await network.order();
    let attempts = 0;
    network.processOf({ domain: () => (attempts++ === 0 ? failing : {}) }).submit(row);
    await network.clock.advance(60_000);
    expect(network.statusOf(row)).toBe("mailbox_exists");
    expect([network.spent(), network.held()]).toEqual([1, 0]);
  });

  test("on our side ends as internal_error, never as dns_error", async () => {
    const network = networkOf();
    const row = await network.order();
    network.processOf({ domain: () => ({ outcome: "local_failure", hosts: [] }) }).submit(row);
    await network.clock.advance(60_000);
    expect(network.statusOf(row)).toBe("internal_error");
    expect([network.spent(), network.held()]).toEqual([0, 0]);
  });
});

test("an unreachable mail host is retried in an outage, else the verification ends", async () => {
  const unreachable: Ask = async ({ number }) =>
    number === 1 ? { reading: "unreachable", heard: false, reply: null } : {};
  const statuses: unknown[] = [];
  for (const judged of ["outage", "open", "believed"] as const) {
    const network = networkOf();
    const row = await network.order();
    network.processOf({ ask: unreachable, judged }).submit(row);
    await network.clock.advance(60_000);
    statuses.push(network.statusOf(row));
  }
  expect(statuses).toEqual(["mailbox_exists", "smtp_unreachable", "smtp_unreachable"]);
});

test("a verification that was retried in an outage is retried again while the judgement is open, as after a restart", async () => {
  const network = networkOf();
  const row = await network.order();
  const unreachable: Ask = async () => ({ reading: "unreachable", heard: false, reply: null });
  network.processOf({ ask: unreachable, judged: "outage", retryWaitsS: [60, 60, 60] }).submit(row);
  await settle();
  const next = network.processOf({ ask: unreachable, judged: "open", retryWaitsS: [60, 60, 60] });
  next.start();
  await network.clock.advance(120_000);
  expect(network.statusOf(row)).toBe("pending");
  await network.clock.advance(60_000);
  expect([network.statusOf(row), network.spent(), network.held()]).toEqual(["smtp_unreachable", 0, 0]);
});

test("a row that is submitted twice is begun once", async () => {
  const network = networkOf();
  const held = heldAnswers();
  const runner = network.processOf({ ask: held.ask });
  const row = await network.order();
  runner.submit(row);
  runner.submit(row);
  await settle();
  expect([held.waiting.length, runner.running()]).toEqual([1, 1]);
});

describe("waiting", () => {
  const waitingWorld = async () => {
    const network = networkOf();
    const held = heldAnswers();
    const runner = network.processOf({ ask: held.ask });
    const row = await network.order();
    runner.submit(row);
    await settle();
    let over = 0;
    return { network, runner, row, held, count: () => over, over: () => void over++ };
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
    const { network, runner, row, count, over } = await waitingWorld();
    void runner.waitFor(row.id, 5_000).then(over);
    await network.clock.advance(4_999);
    expect(count()).toBe(0);
    await network.clock.advance(1);
    expect(count()).toBe(1);
  });

  test("ends when the caller is gone, also when he was gone before", async () => {
    const { network, runner, row, count, over } = await waitingWorld();
    const caller = new AbortController();
    const wait = runner.waitFor(row.id, 5_000, caller.signal).then(over);
    caller.abort();
    await wait;
    await runner.waitFor(row.id, 5_000, caller.signal).then(over);
    expect([count(), network.clock.pending()]).toEqual([2, 0]);
  });

  test("does not end with a postponement", async () => {
    const { network, runner, row, held, count, over } = await waitingWorld();
    void runner.waitFor(row.id, 90_000).then(over);
    held.waiting[0]?.answer(GREYLISTED_FINDING);
    await settle();
    expect(count()).toBe(0);
    await network.clock.advance(60_000);
    held.waiting[1]?.answer({});
    await settle();
    expect(count()).toBe(1);
  });
});

describe("poll_after_ms", () => {
  test("counts down while the check runs, never below 500", async () => {
    const network = networkOf();
    const runner = network.processOf({ ask: heldAnswers().ask });
    const row = await network.order();
    runner.submit(row);
    expect(runner.pollAfterMs(row)).toBe(1_500);
    await network.clock.advance(600);
    expect(runner.pollAfterMs(row)).toBe(900);
    await network.clock.advance(10_000);
    expect(runner.pollAfterMs(row)).toBe(500);
  });

  test("learns from how long checks take; those of test keys teach nothing", async () => {
    const network = networkOf();
    const held = heldAnswers();
    const runner = network.processOf({ ask: held.ask });
    runner.submit(await network.order("mailbox_exists@any.example", { mode: "test" }));
    await settle();
    const pending = await network.order("b@x.example");
    expect(runner.pollAfterMs(pending)).toBe(1_500);
    runner.submit(await network.order("a@x.example"));
    await network.clock.advance(21_500);
    held.waiting[0]?.answer({});
    await settle();
    expect(runner.pollAfterMs(pending)).toBe(3_500);
  });

  test("of a test key's delayed check is the time left", async () => {
    const network = networkOf();
    const row = await network.order("pending@any.example", { mode: "test", dueAtMs: network.clock.nowMs() + 8_000 });
    const runner = network.processOf();
    runner.submit(row);
    await network.clock.advance(3_000);
    expect(runner.pollAfterMs(row)).toBe(5_000);
  });
});

describe("a read of the database that fails inside a timer", () => {
  const readError = () => Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR_READ" });

  test("is logged, and what is pending is claimed by the next read", async () => {
    const network = networkOf();
    const row = await network.order();
    spyOn(network.store, "due").mockImplementationOnce(() => {
      throw readError();
    });
    const runner = network.processOf();
    runner.start();
    await network.clock.advance(0);
    expect(network.statusOf(row)).toBe("pending");
    expect(
      network.lines.filter((line) => line.includes("SQLITE_IOERR_READ") || line.includes("disk I/O")),
    ).toHaveLength(1);
    await network.clock.advance(2_000);
    await settle();
    expect(network.statusOf(row)).toBe("mailbox_exists");
    await runner.stop();
  });

  test("after the wait of a verification that met a bug, leads to another read", async () => {
    const network = networkOf();
    const row = await network.order();
    let writes = 0;
    const commit: typeof network.db.commit = (work) => {
      writes += 1;
      return writes <= 2 ? Promise.reject(new Error("a bug")) : network.db.commit(work);
    };
    const runner = network.processOf({ commit });
    runner.submit(row);
    await settle();
    expect(network.statusOf(row)).toBe("pending");
    const find = spyOn(network.store, "find").mockImplementationOnce(() => {
      throw readError();
    });
    await network.clock.advance(5_000);
    expect(find).toHaveBeenCalledTimes(1);
    await network.clock.advance(2_000);
    await settle();
    expect(network.statusOf(row)).toBe("mailbox_exists");
    await runner.stop();
  });
});
