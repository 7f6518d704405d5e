import { describe, expect, test } from "bun:test";
import { createTestClock, settle } from "../../testing/clock.ts";
import type { Blocklist, Budget } from "./blocklist.ts";
import { createDnsblPacing, createMemoryLedger, noPacing } from "./list-client.ts";
import { readEmbeddedCatalogue } from "./catalogue.ts";

const [SOME_LIST] = readEmbeddedCatalogue().lists;
if (!SOME_LIST) throw new Error("an empty catalogue");
const listWith = (budget: Budget, id = "one"): Blocklist => ({ ...SOME_LIST, id, name: "One", budget });
const DAY_MS = 86_400_000;

describe("the pause between two queries", () => {
  test("is kept, and the first query does not wait", async () => {
    const clock = createTestClock();
    const pacing = createDnsblPacing({ clock });
    const list = listWith({ queriesPerDay: null, spacingMs: 200 });
    const turns: number[] = [];
    for (let asked = 0; asked < 3; asked++) void pacing.acquire(list).then(() => turns.push(clock.monotonicMs()));
    await settle();
    expect(turns).toEqual([0]);
    await clock.advance(199);
    expect(turns).toEqual([0]);
    await clock.advance(1000);
    expect(turns).toEqual([0, 200, 400]);
  });

  test("of one list does not delay another", async () => {
    const pacing = createDnsblPacing({ clock: createTestClock() });
    const budget = { queriesPerDay: null, spacingMs: 10_000 };
    await pacing.acquire(listWith(budget));
    expect(await pacing.acquire(listWith(budget, "two"))).toEqual({ ok: true, value: null });
  });

  test("refuses a query that would wait too long, without using the budget", async () => {
    const clock = createTestClock();
    const pacing = createDnsblPacing({ clock, waitMsMax: 300 });
    const list = listWith({ queriesPerDay: null, spacingMs: 200 });
    await pacing.acquire(list);
    const second = pacing.acquire(list);
    const third = await pacing.acquire(list);
    expect(third.ok ? null : third.error).toMatchObject({ kind: "queue_full", retryAfterMs: 400 });
    await clock.advance(400);
    expect((await second).ok).toBe(true);
    expect((await pacing.acquire(list)).ok).toBe(true);
  });
});

describe("the daily budget", () => {
  test("can be used completely, in blocks, and anew on the next day", async () => {
    const clock = createTestClock(Date.UTC(2026, 0, 1, 12));
    const pacing = createDnsblPacing({ clock });
    const list = listWith({ queriesPerDay: 1_000, spacingMs: 0 });
    const acquired = async () => {
      let count = 0;
      while ((await pacing.acquire(list)).ok) count += 1;
      return count;
    };
    for (let query = 0; query < 5; query++) expect((await pacing.acquire(list)).ok).toBe(true);
    await clock.advance(DAY_MS);
    // The rest of yesterday's block is not added to today's budget.
    expect(await acquired()).toBe(1_000);
    expect(await acquired()).toBe(0);
  });

  test("is exhausted until midnight UTC", async () => {
    const clock = createTestClock(Date.UTC(2026, 0, 1, 23));
    const pacing = createDnsblPacing({ clock });
    const list = listWith({ queriesPerDay: 2, spacingMs: 0 });
    expect([(await pacing.acquire(list)).ok, (await pacing.acquire(list)).ok]).toEqual([true, true]);
    const third = await pacing.acquire(list);
    expect(third.ok ? null : third.error).toEqual({
      kind: "budget_spent",
      problem: "The daily budget of 2 queries to One is exhausted.",
      retryAfterMs: DAY_MS / 24,
    });
    await clock.advance(DAY_MS / 24);
    expect((await pacing.acquire(list)).ok).toBe(true);
  });

  test("survives a restart; a crash never leads to more queries than the budget", async () => {
    const clock = createTestClock();
    const ledger = createMemoryLedger();
    const list = listWith({ queriesPerDay: 12, spacingMs: 0 });
    let asked = 0;
    for (let restarts = 0; restarts < 3; restarts += 1) {
      const pacing = createDnsblPacing({ clock, ledger });
      for (let n = 0; n < 5; n += 1) if ((await pacing.acquire(list)).ok) asked += 1;
    }
    expect(asked).toBe(12);
  });

  test("is reserved in blocks, which are lost when the process ends", async () => {
    const clock = createTestClock();
    const ledger = createMemoryLedger();
    const list = listWith({ queriesPerDay: 1000, spacingMs: 0 });
    await createDnsblPacing({ clock, ledger }).acquire(list);
    expect(ledger.reserve(list.id, Math.floor(clock.nowMs() / DAY_MS), { wanted: 1000, most: 1000 })).toBe(990);
  });

  test("is bounded even where none is published", async () => {
    const clock = createTestClock();
    const pacing = createDnsblPacing({ clock });
    const list = listWith({ queriesPerDay: null, spacingMs: 0 });
    for (let asked = 0; asked < 100_000; asked++) await pacing.acquire(list);
    expect((await pacing.acquire(list)).ok).toBe(false);
  });

  test("is unlimited with noPacing", async () => {
    const list = listWith({ queriesPerDay: 1, spacingMs: 1000 });
    expect([(await noPacing.acquire(list)).ok, (await noPacing.acquire(list)).ok]).toEqual([true, true]);
  });
});
