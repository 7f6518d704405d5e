import { describe, expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import { ResponseFreshness } from "./liveness.ts";

const UNKNOWN = Number.NEGATIVE_INFINITY;
const OBSERVATIONS_MAX = 20_000;

/** When the list must have sent each of these responses, in milliseconds since the first. */
const sentAfter = async (...seen: ReadonlyArray<readonly [atMs: number, ttlS: number]>): Promise<number[]> => {
  const clock = createTestClock();
  const freshness = new ResponseFreshness(clock);
  const startMs = clock.monotonicMs();
  const times: number[] = [];
  for (const [atMs, ttlS] of seen) {
    await clock.advance(startMs + atMs - clock.monotonicMs());
    times.push(freshness.observe("name A", ttlS) - startMs);
  }
  return times;
};

describe("a response", () => {
  test("with a TTL of whole minutes is fresh at first sight, and its copies keep its time", async () => {
    expect(await sentAfter([0, 300], [100_000, 201], [299_000, 1])).toEqual([0, 0, 0]);
  });

  test("with another TTL is of unknown age at first sight, and so are its copies", async () => {
    expect(await sentAfter([0, 250], [100_000, 150], [249_999, 1])).toEqual([UNKNOWN, UNKNOWN, UNKNOWN]);
  });

  test("that no cache may keep is always fresh", async () => {
    expect(await sentAfter([0, 300], [10_000, 0], [20_000, 0])).toEqual([0, 10_000, 20_000]);
  });

  test("whose TTL counts down more slowly than rounding explains was sent after the one before", async () => {
    expect(await sentAfter([0, 250], [98_500, 153])).toEqual([UNKNOWN, UNKNOWN]);
    expect(await sentAfter([0, 250], [98_500, 154])).toEqual([UNKNOWN, 0]);
  });

  test("after its last copy has expired was sent after that", async () => {
    expect(await sentAfter([0, 250], [250_000, 1])).toEqual([UNKNOWN, 250_000]);
    expect(await sentAfter([0, 250], [300_000, 100])).toEqual([UNKNOWN, 250_000]);
  });

  test("with the highest TTL seen is fresh when no copy can be left", async () => {
    expect(await sentAfter([0, 250], [100_000, 250], [400_000, 250])).toEqual([UNKNOWN, 0, 400_000]);
  });

  test("is as old as its TTL is below the known one", async () => {
    expect(await sentAfter([0, 300], [100_000, 250])).toEqual([0, 50_000]);
    expect(await sentAfter([0, 250], [260_000, 250], [300_000, 230])).toEqual([UNKNOWN, 260_000, 280_000]);
  });
});

test("the names observed longest ago are forgotten, and only as many as necessary", () => {
  const clock = createTestClock();
  const freshness = new ResponseFreshness(clock);
  const untilMs = clock.monotonicMs() + 300_000;
  const names = ["oldest", "again", ...Array.from({ length: OBSERVATIONS_MAX - 2 }, (_, n) => `name ${n}`)];
  for (const name of [...names, "again"]) freshness.observe(name, 300);
  expect(freshness.cachedUntilMs("oldest")).toBe(untilMs);
  freshness.observe("new", 300);
  expect(["oldest", "again", "new"].map((name) => freshness.cachedUntilMs(name))).toEqual([UNKNOWN, untilMs, untilMs]);
});
