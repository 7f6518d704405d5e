import { expect, test } from "bun:test";
import { createLog } from "../foundation/base/log.ts";
import type { DnsblHealth, ListHealth } from "./lists/health.ts";
import type { HealthState } from "./lists/list-client.ts";
import { createTestClock } from "../testing/clock.ts";
import { ListBreaker, TEST_LIST } from "./target-lookup.ts";

const HALF_HOUR_MS = 30 * 60_000;

const start = (targets: number) => {
  const clock = createTestClock();
  const logged: string[] = [];
  const noted: string[] = [];
  let state: HealthState = "wildcard";
  let isTestable = true;
  const healthOf = (): ListHealth => ({
    list: TEST_LIST.id,
    kind: "ipv4",
    state,
    reason: null,
    remedy: null,
    testedAtMs: isTestable ? clock.nowMs() : null,
  });
  const health: Pick<DnsblHealth, "testAgain"> = {
    testAgain: async (list) => {
      noted.push(list.id);
      return { health: healthOf(), isTested: isTestable };
    },
  };
  const log = createLog("warn", clock, (line) => logged.push(line));
  const breaker = new ListBreaker({ clock, log }, { health, countTargets: () => targets });
  const move = async (count: number, list = TEST_LIST, from = 0): Promise<number> => {
    let believed = 0;
    for (let n = from; n < from + count; n++) {
      if ((await breaker.holdsUntil({ list, kind: "ipv4", targetId: `target ${n}` })) === null) believed++;
    }
    return believed;
  };
  return {
    breaker,
    clock,
    logged,
    noted,
    move,
    become(now: HealthState): void {
      state = now;
    },
    refuseTests(): void {
      isTestable = false;
    },
  };
};

test.each([
  [3, 5],
  [16, 5],
  [20, 6],
  [1_000, 300],
])("of %d targets watched, %d may be moved by one list within an hour", async (targets, believed) => {
  const { move, noted, logged } = start(targets);
  expect(await move(believed)).toBe(believed);
  expect(await move(20, TEST_LIST, believed)).toBe(0);
  expect(noted).toEqual([TEST_LIST.id]);
  expect(logged).toHaveLength(1);
});

test("the same target that moves again and again counts once", async () => {
  const { move } = start(3);
  for (let n = 0; n < 20; n++) expect(await move(1)).toBe(1);
});

test("what moved more than an hour ago no longer counts", async () => {
  const { move, clock } = start(3);
  expect(await move(5)).toBe(5);
  await clock.advance(2 * HALF_HOUR_MS);
  expect(await move(5, TEST_LIST, 5)).toBe(5);
});

test("a list that stands its test is believed at once, for all that it moved", async () => {
  const { move, become, noted, logged } = start(3);
  become("healthy");
  expect(await move(40)).toBe(40);
  expect(noted).toEqual([TEST_LIST.id]);
  expect(logged.join()).toContain("passed its test");
});

test("those that come while the test runs wait for the same one", async () => {
  const { breaker, noted, become } = start(3);
  become("healthy");
  const movements = Array.from({ length: 40 }, (_, n) => ({
    list: TEST_LIST,
    kind: "ipv4" as const,
    targetId: `${n}`,
  }));
  const judged = await Promise.all(movements.map((movement) => breaker.holdsUntil(movement)));
  expect(judged.every((heldUntilMs) => heldUntilMs === null)).toBe(true);
  expect(noted).toHaveLength(1);
});

test("a list that cannot be tested is held, and tried again after five minutes", async () => {
  const { move, become, refuseTests, clock } = start(3);
  become("healthy");
  refuseTests();
  expect(await move(40)).toBe(5);
  await clock.advance(5 * 60_000 - 1);
  expect(await move(1)).toBe(0);
  await clock.advance(1);
  expect(await move(1)).toBe(0);
  expect(await move(1)).toBe(0);
});

test("one list does not speak for another", async () => {
  const { move } = start(3);
  await move(20);
  expect(await move(5, { ...TEST_LIST, id: "other" })).toBe(5);
});

test("a list that fails is tested again after half an hour: a healthy one is believed, any other is held on", async () => {
  const { move, clock, become } = start(3);
  await move(20);
  await clock.advance(HALF_HOUR_MS - 1);
  expect(await move(1)).toBe(0);
  await clock.advance(1);
  expect(await move(20)).toBe(0);
  become("healthy");
  expect(await move(20)).toBe(0);
  await clock.advance(HALF_HOUR_MS);
  expect(await move(20)).toBe(20);
});

test("a list is not held longer when the wall clock is set back", async () => {
  const { move, clock, become } = start(3);
  await move(20);
  become("healthy");
  clock.setWall(-24 * HALF_HOUR_MS);
  await clock.advance(HALF_HOUR_MS);
  expect(await move(1)).toBe(1);
});
