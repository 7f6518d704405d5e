import { expect, test } from "bun:test";
import { createApps } from "../../testing/app.ts";
import { errorRate, PromiseCounts, PROVIDERS_PER_DAY_MAX } from "./promise-counts.ts";

const start = createApps();

test("a day has a limited number of providers; the checks of further ones are counted together", () => {
  const { db } = start();
  const counts = new PromiseCounts(db);
  const providers = Array.from({ length: PROVIDERS_PER_DAY_MAX }, (_, at) => `p${at}.example`);
  db.transact((tx) => counts.add(tx, "account", 7, [...providers, "one-more.example", null, "p3.example"]));
  db.transact((tx) => counts.add(tx, "account", 7, ["another.example", "p3.example"]));
  db.transact((tx) => counts.add(tx, "other", 7, ["another.example"]));
  const { fromDay, byProvider } = counts.since("account", 1);
  expect([fromDay, byProvider.size]).toEqual([7, PROVIDERS_PER_DAY_MAX + 1]);
  expect([byProvider.get("p3.example")?.checks, byProvider.get(null)?.checks]).toEqual([3, 3]);
  expect(counts.since("other", 1).byProvider).toEqual(new Map([["another.example", { checks: 1, bounced: 0 }]]));
  expect(counts.since("nobody", 1)).toEqual({ fromDay: null, byProvider: new Map() });
});

test("days expire", () => {
  const { db } = start();
  const counts = new PromiseCounts(db);
  for (const day of [5, 6, 7]) db.transact((tx) => counts.add(tx, "account", day, ["a.example", "b.example"]));
  expect(db.transact((tx) => [counts.expire(tx, 7, 3), counts.expire(tx, 7, 3)])).toEqual([3, 1]);
  expect(counts.since("account", 1).fromDay).toBe(7);
});

test.each([
  [{ checks: 0, bounced: 0 }, null],
  [{ checks: 3, bounced: 1 }, 0.333_333],
  [{ checks: 3, bounced: 0 }, 0],
  // One check counts once, and its address may have bounced under another check.
  [{ checks: 1, bounced: 2 }, 1],
])("the error rate of %o is %p", (kept, rate) => {
  expect(errorRate(kept)).toBe(rate);
});
