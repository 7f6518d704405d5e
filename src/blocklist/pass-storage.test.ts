import { expect, test } from "bun:test";
import { createTestClock, settle } from "../testing/clock.ts";
import { PassStorage, STORED_AT_ONCE } from "./pass-storage.ts";

const setUp = (lookupsAtOnce = STORED_AT_ONCE * 4) => {
  const clock = createTestClock();
  const pass = new PassStorage(clock, lookupsAtOnce);
  const lookups: Array<() => void> = [];
  const stored: number[] = [];
  const begin = async (n: number) => {
    await pass.lookUp(() => new Promise<void>((resolve) => void lookups.push(resolve)));
    await pass.untilStored();
    stored.push(n);
  };
  /** Ends the first lookups that run. */
  const end = async (count: number) => {
    for (const resolve of lookups.splice(0, count)) resolve();
    await settle();
  };
  return { clock, pass, lookups, stored, begin, end };
};

test("finished checks wait for each other, and the last ones for no lookup", async () => {
  const { begin, end, stored, clock } = setUp();
  for (let n = 0; n < STORED_AT_ONCE + 3; n++) void begin(n);
  await end(STORED_AT_ONCE - 1);
  expect(stored).toEqual([]);
  await end(1);
  expect(stored).toHaveLength(STORED_AT_ONCE);
  await end(2);
  expect(stored).toHaveLength(STORED_AT_ONCE);
  await end(1);
  expect(stored).toHaveLength(STORED_AT_ONCE + 3);
  expect(clock.pending()).toBe(0);
});

test("a slow lookup delays the others by 250 ms at most, and a stop by nothing", async () => {
  const { begin, end, stored, clock, pass } = setUp();
  for (let n = 0; n < 3; n++) void begin(n);
  await end(1);
  await clock.advance(249);
  expect(stored).toEqual([]);
  await clock.advance(1);
  expect(stored).toEqual([0]);
  await end(1);
  pass.flush();
  await settle();
  expect(stored).toEqual([0, 1]);
});

test("only some are looked up at a time; one that fails delays no other", async () => {
  const { lookups, pass, begin, end, stored } = setUp(2);
  for (let n = 0; n < 3; n++) void begin(n);
  expect(lookups).toHaveLength(2);
  await end(1);
  expect(lookups).toHaveLength(2);
  const failing = pass.lookUp(() => Promise.reject(new Error("no"))).catch(String);
  await end(2);
  expect(await failing).toBe("Error: no");
  await settle();
  expect(stored.toSorted()).toEqual([0, 1, 2]);
});
