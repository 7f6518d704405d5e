import { describe, expect, test } from "bun:test";
import { createLog } from "../../../foundation/base/log.ts";
import { createDomainHarness } from "../../../testing/monitored-domains.ts";
import type { Domains } from "./domains.ts";
import { ScheduledChecks } from "./domain-monitor.ts";
import type { DomainRow } from "./domain-store.ts";

const newHarness = createDomainHarness();
const HOUR_MS = 60 * 60_000;

const newPasses = (harness = newHarness(), fake: Partial<Pick<Domains, "checkScheduled" | "canCheck">> = {}) => {
  const logged: string[] = [];
  const log = createLog("info", harness.clock, (line) => logged.push(line));
  const domains: Pick<Domains, "checkScheduled" | "canCheck"> = {
    checkScheduled: (row) => harness.domains.checkScheduled(row),
    canCheck: () => harness.domains.canCheck(),
    ...fake,
  };
  return { harness, logged, passes: new ScheduledChecks({ ...harness, log }, harness.store, domains) };
};

test("a pass checks what is due, once", async () => {
  const { harness, passes } = newPasses();
  const due = ["a.com", "b.com", "c.com"].map((domain) => harness.insert({ domain }));
  harness.insert({ domain: "later.com", nextCheckAtMs: harness.clock.nowMs() + 1 });
  await passes.run();
  for (const { domain } of due) expect(harness.resolver.countQueries(`_dmarc.${domain}`, "TXT")).toBe(1);
  expect(harness.resolver.countQueries("_dmarc.later.com", "TXT")).toBe(0);
  expect(harness.store.due(harness.clock.nowMs(), 10)).toEqual([]);
});

test("a pass has eight domains under way at most, and comes to the end of many", async () => {
  const harness = newHarness();
  let [now, most] = [0, 0];
  const { passes } = newPasses(harness, {
    async checkScheduled({ number }: DomainRow) {
      most = Math.max(most, ++now);
      await Promise.resolve();
      now--;
      harness.db.transact((tx) => harness.store.update(tx, number, { nextCheckAtMs: harness.clock.nowMs() + HOUR_MS }));
      return null;
    },
  });
  for (let n = 0; n < 250; n++) harness.insert({ domain: `n${n}.com` });
  await passes.run();
  expect(most).toBe(8);
  expect(harness.store.countDue(harness.clock.nowMs())).toBe(0);
});

test("a check that fails is logged and done again in half an hour; the others are done", async () => {
  const harness = newHarness();
  const bad = harness.insert({ domain: "bad.com" });
  const good = harness.insert({ domain: "good.com" });
  const { passes, logged } = newPasses(harness, {
    checkScheduled: (row) =>
      row.id === bad.id ? Promise.reject(new Error("broken")) : harness.domains.checkScheduled(row),
  });
  await passes.run();
  expect(harness.find(bad.id).nextCheckAtMs).toBe(harness.clock.nowMs() + HOUR_MS / 2);
  expect(harness.find(good.id).lastCheck).not.toBeNull();
  expect(logged.join()).toContain("broken");
});

test("nothing is checked while there is no report host, or when the service stops", async () => {
  const without = newPasses(newHarness({ reportHost: null }));
  without.harness.insert();
  await without.passes.run();
  const stopped = newPasses();
  stopped.harness.insert();
  await stopped.harness.domains.stop();
  await stopped.passes.run();
  expect([...without.harness.resolver.queries, ...stopped.harness.resolver.queries]).toEqual([]);
});

describe("at the start", () => {
  test("a long backlog is spread over an hour", async () => {
    const { harness, passes, logged } = newPasses();
    for (let n = 0; n < 100; n++)
      harness.insert({ domain: `n${n}.com`, nextCheckAtMs: harness.clock.nowMs() - HOUR_MS });
    await passes.spreadBacklog();
    const nowMs = harness.clock.nowMs();
    expect(harness.store.countDue(nowMs + HOUR_MS)).toBe(100);
    expect(harness.store.countDue(nowMs + HOUR_MS / 2)).toBeLessThan(90);
    expect(logged).toHaveLength(1);
  });

  test("a short one is simply done", async () => {
    const { harness, passes } = newPasses();
    const { id } = harness.insert({ nextCheckAtMs: harness.clock.nowMs() - HOUR_MS });
    await passes.spreadBacklog();
    expect(harness.find(id).nextCheckAtMs).toBe(harness.clock.nowMs() - HOUR_MS);
  });
});
