import { describe, expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import type { LoopDelay } from "../../verify/open.ts";
import { ConcurrencyLimiter } from "./attempt.ts";

const WINDOW = 1_000;

/** A limiter on an event loop whose timers come `late.ms` too late. */
const limited = (checkMs = 5) => {
  const clock = createTestClock();
  const [late, checks] = [{ ms: 0 }, { areRunning: true }];
  /** The share of the time in which this process has a processor. */
  const own = { share: 1 };
  const shortage = { atMs: Number.NEGATIVE_INFINITY };
  /** Of the thread that makes the attempts. */
  const other: { delay: LoopDelay | null } = { delay: null };
  const lateClock: typeof clock = { ...clock, after: (delayMs, run) => clock.after(delayMs + late.ms, run) };
  const limiter = new ConcurrencyLimiter(lateClock, WINDOW, {
    runningChecks: () => Number(checks.areRunning),
    lastShortageMs: () => shortage.atMs,
    checkMs: () => checkMs,
    processorMs: () => clock.monotonicMs() * own.share,
    loopDelay: () => other.delay,
  });
  /** Lets time go by, while the runner asks as often as it does. */
  const pass = async (ms: number) => {
    for (let step = 0; step < ms; step += 10) {
      limiter.window(0);
      await clock.advance(10);
    }
    return limiter.window(0);
  };
  return { clock, limiter, late, checks, own, other, shortage, pass };
};

describe("the limiter", () => {
  test("begins with a small window, which grows while the event loop is responsive", async () => {
    const { limiter, checks, pass } = limited();
    checks.areRunning = false;
    expect(limiter.window(0)).toBe(100);
    expect(limiter.isReduced).toBe(true);
    expect(await pass(100)).toBeGreaterThan(150);
    expect(await pass(1_000)).toBe(WINDOW);
    expect(limiter.isReduced).toBe(false);
  });

  test("reduces it while the event loop is delayed, to what uses the processor, and measures nothing when no list is verified", async () => {
    const { clock, late, checks, pass } = limited();
    checks.areRunning = false;
    await pass(1_000);
    late.ms = 3;
    expect(await pass(1_000)).toBe(WINDOW);
    late.ms = 50;
    expect(await pass(5_000)).toBe(32);
    await clock.advance(6_000);
    expect(clock.pending()).toBe(0);
  });

  test("leaves it as it is while other processes delay the event loop, unless single checks run", async () => {
    const { late, checks, own, pass } = limited();
    checks.areRunning = false;
    own.share = 0;
    late.ms = 50;
    expect(await pass(15_000)).toBe(WINDOW);
    checks.areRunning = true;
    expect(await pass(5_000)).toBeLessThan(10);
  });

  test("reduces it while the thread that makes the attempts is late: by its own work, beside single checks by anything", async () => {
    const { checks, other, pass } = limited();
    checks.areRunning = false;
    other.delay = { lateMs: 50, ownMs: 0 };
    expect(await pass(15_000)).toBe(WINDOW);
    other.delay = { lateMs: 50, ownMs: 50 };
    expect(await pass(5_000)).toBe(32);
    other.delay = null;
    expect(await pass(2_000)).toBe(WINDOW);
    checks.areRunning = true;
    other.delay = { lateMs: 50, ownMs: 0 };
    expect(await pass(5_000)).toBeLessThan(10);
  });

  test("leaves it to them while single checks run and the event loop is responsive", async () => {
    const { pass } = limited();
    expect(await pass(1_000)).toBe(WINDOW);
  });

  test("reduces it while single checks run and the event loop is delayed, but never to zero", async () => {
    const { late, pass } = limited();
    late.ms = 5;
    expect(await pass(200)).toBeLessThan(WINDOW / 2);
    const least = await pass(5_000);
    expect(least).toBeGreaterThan(0);
    expect(least).toBeLessThan(10);
  });

  test("leaves it to them when checks are so slow that the delay is irrelevant", async () => {
    const { late, pass } = limited(500);
    late.ms = 5;
    expect(await pass(1_000)).toBe(WINDOW);
  });

  test("halves what is under way when sockets run out, at most four times a second, and restores it within a minute", async () => {
    const { clock, limiter, checks, shortage, pass } = limited();
    checks.areRunning = false;
    await pass(1_000);
    const windowAfter = async (ms: number, underWay: number) => {
      await clock.advance(ms);
      return limiter.window(underWay);
    };
    expect(await windowAfter(1_000, 100)).toBe(WINDOW);
    shortage.atMs = clock.monotonicMs();
    expect(await windowAfter(0, 100)).toBe(50);
    shortage.atMs = clock.monotonicMs() + 100;
    expect(await windowAfter(249, 50)).toBe(50);
    expect(await windowAfter(1, 50)).toBe(25);
    expect(await windowAfter(30_000, 25)).toBe(525);
    expect(await windowAfter(30_000, 525)).toBe(WINDOW);
    shortage.atMs = clock.monotonicMs();
    expect(await windowAfter(0, 0)).toBe(1);
  });

  test("restores it when the event loop recovers, and tolerates more when no single checks ran for a while", async () => {
    const { late, checks, pass } = limited();
    late.ms = 5;
    const small = await pass(2_000);
    late.ms = 0;
    expect(await pass(1_000)).toBeGreaterThan(small * 10);
    late.ms = 2;
    expect(await pass(2_000)).toBeLessThan(10);
    checks.areRunning = false;
    expect(await pass(4_900)).toBeLessThan(10);
    expect(await pass(1_500)).toBe(WINDOW);
  });
});
