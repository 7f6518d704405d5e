import { expect, test } from "bun:test";
import { createTestClock } from "../testing/clock.ts";
import { CatchAllCache } from "./findings.ts";

test("an entry is found for a quarter of an hour, with its age", async () => {
  const clock = createTestClock();
  const cache = new CatchAllCache(clock);
  cache.set("example.com", "mx1.example.com", "no");
  await clock.advance(15 * 60_000 - 1);
  expect(cache.find("example.com", "mx1.example.com")).toEqual({ state: "no", ageMs: 15 * 60_000 - 1 });
  await clock.advance(1);
  expect(cache.find("example.com", "mx1.example.com")).toBeNull();
  expect(cache.size).toBe(0);
});

test("another domain at the host, or another host of the domain, has an entry of its own", () => {
  const cache = new CatchAllCache(createTestClock());
  cache.set("example.com", "mx1.example.com", "yes");
  expect(cache.find("example.org", "mx1.example.com")).toBeNull();
  expect(cache.find("example.com", "mx2.example.com")).toBeNull();
});

test("a later answer replaces an earlier one", () => {
  const cache = new CatchAllCache(createTestClock());
  cache.set("example.com", "mx", "yes");
  cache.set("example.com", "mx", "no");
  expect(cache.find("example.com", "mx")?.state).toBe("no");
});

test.each([
  ["back", -86_400_000],
  ["forwards", 86_400_000],
])("a wall clock that was set %s changes nothing", async (_, byMs) => {
  const clock = createTestClock();
  const cache = new CatchAllCache(clock);
  cache.set("example.com", "mx", "yes");
  clock.setWall(byMs);
  expect(cache.find("example.com", "mx")).toEqual({ state: "yes", ageMs: 0 });
  await clock.advance(15 * 60_000);
  expect(cache.find("example.com", "mx")).toBeNull();
});

test("the cache is bounded: the oldest go first", () => {
  const cache = new CatchAllCache(createTestClock());
  for (let n = 0; n <= 50_000; n++) cache.set(`d${n}.example`, "mx", "no");
  expect(cache.size).toBe(50_000);
  expect(cache.find("d0.example", "mx")).toBeNull();
});
