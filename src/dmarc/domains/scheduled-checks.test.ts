import { describe, expect, test } from "bun:test";
import { createLog } from "../../base/log.ts";
import { createDomainHarness } from "../../testing/monitored-domains.ts";
import type { Domains } from "./domains.ts";
import { ScheduledChecks } from "./scheduled-checks.ts";
import type { DomainRow } from "./domain-store.ts";

const newWorld = createDomainHarness();
const HOUR_MS = 60 * 60_000;

const newPasses = (world = newWorld(), fake: Partial<Pick<Domains, "checkScheduled" | "canCheck">> = {}) => {
  const logged: string[] = [];
  const log = createLog("info", world.clock, (line) => logged.push(line));
  const domains: Pick<Domains, "checkScheduled" | "canCheck"> = {
    checkScheduled: (row) => world.domains.checkScheduled(row),
    canCheck: () => world.domains.canCheck(),
    ...fake,
  };
  return { world, logged, passes: new ScheduledChecks({ ...world, log }, world.store, domains) };
};

test("a pass checks what is due, once", async () => {
  const { world, passes } = newPasses();
  const due = ["a.com", "b.com", "c.com"].map((domain) => world.insert({ domain }));
  world.insert({ domain: "later.com", nextCheckAtMs: world.clock.nowMs() + 1 });
  await passes.run();
  for (const { domain } of due) expect(world.resolver.countQueries(`_dmarc.${domain}`, "TXT")).toBe(1);
  expect(world.resolver.countQueries("_dmarc.later.com", "TXT")).toBe(0);
  expect(world.store.due(world.clock.nowMs(), 10)).toEqual([]);
});

test("a pass has eight domains under way at most, and comes to the end of many", async () => {
  const world = newWorld();
  let [now, most] = [0, 0];
  const { passes } = newPasses(world, {
    async checkScheduled({ number }: DomainRow) {
      most = Math.max(most, ++now);
      await Promise.resolve();
      now--;
      world.db.transact((tx) => world.store.update(tx, number, { nextCheckAtMs: world.clock.nowMs() + HOUR_MS }));
      return null;
    },
  });
  for (let n = 0; n < 250; n++) world.insert({ domain: `n${n}.com` });
  await passes.run();
  expect(most).toBe(8);
  expect(world.store.countDue(world.clock.nowMs())).toBe(0);
});

test("a check that fails is logged and done again in half an hour; the others are done", async () => {
  const world = newWorld();
  const bad = world.insert({ domain: "bad.com" });
  const good = world.insert({ domain: "good.com" });
  const { passes, logged } = newPasses(world, {
    checkScheduled: (row) =>
      row.id === bad.id ? Promise.reject(new Error("broken")) : world.domains.checkScheduled(row),
  });
  await passes.run();
  expect(world.find(bad.id).nextCheckAtMs).toBe(world.clock.nowMs() + HOUR_MS / 2);
  expect(world.find(good.id).lastCheck).not.toBeNull();
  expect(logged.join()).toContain("broken");
});

test("nothing is checked while there is no report host, or when the service stops", async () => {
  const without = newPasses(newWorld({ reportHost: null }));
  without.world.insert();
  await without.passes.run();
  const stopped = newPasses();
  stopped.world.insert();
  await stopped.world.domains.stop();
  await stopped.passes.run();
  expect([...without.world.resolver.queries, ...stopped.world.resolver.queries]).toEqual([]);
});

describe("at the start", () => {
  test("a long backlog is spread over an hour", async () => {
    const { world, passes, logged } = newPasses();
    for (let n = 0; n < 100; n++) world.insert({ domain: `n${n}.com`, nextCheckAtMs: world.clock.nowMs() - HOUR_MS });
    await passes.spreadBacklog();
    const nowMs = world.clock.nowMs();
    expect(world.store.countDue(nowMs + HOUR_MS)).toBe(100);
    expect(world.store.countDue(nowMs + HOUR_MS / 2)).toBeLessThan(90);
    expect(logged).toHaveLength(1);
  });

  test("a short one is simply done", async () => {
    const { world, passes } = newPasses();
    const { id } = world.insert({ nextCheckAtMs: world.clock.nowMs() - HOUR_MS });
    await passes.spreadBacklog();
    expect(world.find(id).nextCheckAtMs).toBe(world.clock.nowMs() - HOUR_MS);
  });
});
