import { expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import type { DnsOutcome, DnsResponse } from "./dns.ts";
import { createDnsCache } from "./dns-resolver.ts";

const reply = (outcome: DnsOutcome, ttlS: number): DnsResponse => ({
  name: "a.example",
  type: "A",
  outcome,
  records: [],
  cnames: [],
  ttlS,
  authenticated: false,
  server: "192.0.2.53:53",
  fromCache: false,
  elapsedMs: 7,
});
const setUp = (entriesMax = 100) => {
  const clock = createTestClock();
  return { clock, cache: createDnsCache({ clock, entriesMax }) };
};

test.each<[DnsOutcome, number, number]>([
  ["response", 60, 60],
  ["response", 0, 5],
  ["response", 86_400, 3600],
  ["no_data", 60, 60],
  ["nxdomain", 0, 5],
  ["nxdomain", 86_400, 300],
  ["unconfirmed", 0, 3],
  ["servfail", 0, 3],
  ["cname_loop", 0, 3],
])("%s with a TTL of %d s is kept for %d s", async (outcome, ttlS, keptS) => {
  const { clock, cache } = setUp();
  cache.keep("k", reply(outcome, ttlS), 100);
  await clock.advance(keptS * 1000 - 1);
  expect(cache.find("k")?.outcome).toBe(outcome);
  await clock.advance(1);
  expect(cache.find("k")).toBeUndefined();
});

test.each<DnsOutcome>(["timeout", "refused", "malformed", "network_error", "aborted", "overloaded", "invalid_name"])(
  "%s is never kept",
  (outcome) => {
    const { cache } = setUp();
    cache.keep("k", reply(outcome, 60), 100);
    expect(cache.find("k")).toBeUndefined();
  },
);

test("a kept reply says so, and how long it has left", async () => {
  const { clock, cache } = setUp();
  cache.keep("k", reply("response", 60), 100);
  await clock.advance(20_500);
  expect(cache.find("k")).toEqual({ ...reply("response", 40), fromCache: true });
});

test("a zero TTL never becomes negative", async () => {
  const { clock, cache } = setUp();
  cache.keep("k", reply("response", 0), 100);
  await clock.advance(4000);
  expect(cache.find("k")?.ttlS).toBe(0);
});

test("at the ceiling the entry unused longest goes", () => {
  const { cache } = setUp(2);
  cache.keep("old", reply("response", 60), 100);
  cache.keep("used", reply("response", 60), 100);
  cache.find("old");
  cache.keep("new", reply("response", 60), 100);
  expect(["old", "used", "new"].map((key) => cache.find(key) !== undefined)).toEqual([true, false, true]);
});

test("never more entries than the ceiling", () => {
  const { cache } = setUp(100);
  const keys = Array.from({ length: 1000 }, (_, n) => `k${n}`);
  for (const key of keys) cache.keep(key, reply("response", 60), 100);
  const kept = keys.filter((key) => cache.find(key));
  expect(kept.length).toBeLessThanOrEqual(100);
  expect(kept).toContain("k999");
});

test("a huge reply is not kept, and a ceiling of zero keeps nothing", () => {
  const { cache } = setUp();
  cache.keep("k", reply("response", 60), 16_385);
  expect(cache.find("k")).toBeUndefined();
  const none = setUp(0).cache;
  none.keep("k", reply("response", 60), 100);
  expect(none.find("k")).toBeUndefined();
});
