import { describe, expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import { createTokenBuckets } from "./limits.ts";

const FREE = { perSecond: 1, burst: 2 };
const SCALE = { perSecond: 25, burst: 50 };

describe("a token bucket", () => {
  test("starts with the whole burst and refuses the request after it", () => {
    const buckets = createTokenBuckets(createTestClock());
    expect(buckets.take("k", FREE)).toEqual({ allowed: true, remaining: 1, resetS: 1, retryAfterS: 0 });
    expect(buckets.take("k", FREE)).toEqual({ allowed: true, remaining: 0, resetS: 2, retryAfterS: 0 });
    expect(buckets.take("k", FREE)).toEqual({ allowed: false, remaining: 0, resetS: 2, retryAfterS: 1 });
  });

  test("refills at the sustained rate, and a refused request takes nothing", async () => {
    const clock = createTestClock();
    const buckets = createTokenBuckets(clock);
    for (let n = 0; n < 5; n++) buckets.take("k", FREE);
    await clock.advance(999);
    expect(buckets.take("k", FREE).allowed).toBe(false);
    await clock.advance(1);
    expect(buckets.take("k", FREE)).toEqual({ allowed: true, remaining: 0, resetS: 2, retryAfterS: 0 });
  });

  test("never holds more than the burst", async () => {
    const clock = createTestClock();
    const buckets = createTokenBuckets(clock);
    buckets.take("k", SCALE);
    await clock.advance(3_600_000);
    expect(buckets.take("k", SCALE).remaining).toBe(49);
  });

  test("allows exactly rate × time + burst over a long run of odd steps", async () => {
    const clock = createTestClock();
    const buckets = createTokenBuckets(clock);
    let allowed = 0;
    for (let step = 0; step < 3_000; step++) {
      if (buckets.take("k", SCALE).allowed) allowed++;
      await clock.advance(7);
    }
    expect(allowed).toBe(Math.floor(50 + ((3_000 - 1) * 7 * 25) / 1000));
  });

  test("keeps names apart", () => {
    const buckets = createTokenBuckets(createTestClock());
    for (let n = 0; n < 3; n++) buckets.take("a", FREE);
    expect(buckets.take("b", FREE).allowed).toBe(true);
  });

  test("forgets idle buckets instead of growing for ever", async () => {
    const clock = createTestClock();
    const buckets = createTokenBuckets(clock);
    for (let n = 0; n < 10_000; n++) buckets.take(`k${n}`, FREE);
    await clock.advance(120_000);
    buckets.take("one more", FREE);
    expect(buckets.size()).toBe(1);
  });

  test("keeps a bucket that has not refilled yet, however many others come", async () => {
    const clock = createTestClock();
    const buckets = createTokenBuckets(clock);
    const large = { perSecond: 1, burst: 1_000 };
    for (let n = 0; n < 1_000; n++) expect(buckets.take("spent", large).allowed).toBe(true);
    await clock.advance(61_000);
    for (let n = 0; n < 10_001; n++) buckets.take(`k${n}`, FREE);
    expect(buckets.take("spent", large).remaining).toBe(60);
    await clock.advance(1_000_000);
    for (let n = 0; n < 20_001; n++) buckets.take(`l${n}`, FREE);
    expect(buckets.size()).toBe(20_001);
  });
});
