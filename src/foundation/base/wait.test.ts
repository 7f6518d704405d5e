import { describe, expect, test } from "bun:test";
import { createTestClock, settle } from "../../testing/clock.ts";
import { drain, Gate, mapConcurrently, wait, waitFor, withDeadline } from "./wait.ts";

const never = new Promise<never>(() => undefined);

test("a wait ends after its time", async () => {
  const clock = createTestClock();
  let isOver = false;
  void wait(clock, 100).then(() => {
    isOver = true;
  });
  await clock.advance(99);
  expect(isOver).toBe(false);
  await clock.advance(1);
  expect(isOver).toBe(true);
});

test("a wait ends when its signal fires, or had fired before", async () => {
  const clock = createTestClock();
  const controller = new AbortController();
  const waited = wait(clock, 100, controller.signal);
  controller.abort();
  await waited;
  await wait(clock, 100, controller.signal);
  expect(clock.pending()).toBe(0);
});

describe("waiting for work", () => {
  test("gives its value, and leaves no timer and no listener", async () => {
    const clock = createTestClock();
    const { signal } = new AbortController();
    expect(await waitFor(clock, Promise.resolve(7), { timeoutMs: 100, signal })).toEqual({ ok: true, value: 7 });
    expect(clock.pending()).toBe(0);
  });

  test("rejects as the work does", async () => {
    expect(waitFor(createTestClock(), Promise.reject(new Error("broken")), { timeoutMs: 100 })).rejects.toThrow(
      "broken",
    );
  });

  test("ends as `timeout` exactly after its time", async () => {
    const clock = createTestClock();
    const waited = waitFor(clock, never, { timeoutMs: 100 });
    await clock.advance(99);
    expect(clock.pending()).toBe(1);
    await clock.advance(1);
    expect(await waited).toEqual({ ok: false, error: "timeout" });
  });

  test("ends as `aborted` when the signal fires, or had fired before", async () => {
    const clock = createTestClock();
    const controller = new AbortController();
    const waited = waitFor(clock, never, { timeoutMs: 100, signal: controller.signal });
    controller.abort();
    expect(await waited).toEqual({ ok: false, error: "aborted" });
    expect(await waitFor(clock, Promise.resolve(7), { signal: controller.signal })).toEqual({
      ok: false,
      error: "aborted",
    });
    expect(clock.pending()).toBe(0);
  });

  test("a rejection after the wait was given up is nobody's", async () => {
    const clock = createTestClock();
    const work = Promise.withResolvers<never>();
    const waited = waitFor(clock, work.promise, { timeoutMs: 1 });
    await clock.advance(1);
    work.reject(new Error("too late"));
    expect(await waited).toEqual({ ok: false, error: "timeout" });
    await settle();
  });
});

describe("work with a deadline", () => {
  const reasonOf = (signal: AbortSignal): Promise<unknown> =>
    new Promise((resolve) => {
      if (signal.aborted) resolve(signal.reason);
      signal.addEventListener("abort", () => resolve(signal.reason));
    });

  test("learns of the deadline by its signal", async () => {
    const clock = createTestClock();
    const work = withDeadline(clock, { timeoutMs: 100 }, reasonOf);
    await clock.advance(100);
    expect(await work).toBe("timeout");
  });

  test("is aborted when the caller aborts, also before it begins", async () => {
    const clock = createTestClock();
    const controller = new AbortController();
    const limits = { timeoutMs: 100, signal: controller.signal };
    const work = withDeadline(clock, limits, reasonOf);
    controller.abort();
    expect(await work).toBe("aborted");
    expect(await withDeadline(clock, limits, reasonOf)).toBe("aborted");
    expect(clock.pending()).toBe(0);
  });

  test("that ends in time leaves no timer, however it ends", async () => {
    const clock = createTestClock();
    expect(await withDeadline(clock, { timeoutMs: 100 }, async () => 7)).toBe(7);
    expect(withDeadline(clock, { timeoutMs: 100 }, () => Promise.reject(new Error("broken")))).rejects.toThrow(
      "broken",
    );
    await settle();
    expect(clock.pending()).toBe(0);
  });
});

describe("a drain", () => {
  test("ends when all work has settled, failures included", async () => {
    const clock = createTestClock();
    await drain(clock, 100, [Promise.resolve(1), Promise.reject(new Error("broken"))]);
    expect(clock.pending()).toBe(0);
  });

  test("ends after its time when some of the work does not", async () => {
    const clock = createTestClock();
    let isOver = false;
    const draining = drain(clock, 100, [Promise.resolve(1), never]).then(() => {
      isOver = true;
    });
    await clock.advance(99);
    expect(isOver).toBe(false);
    await clock.advance(1);
    await draining;
  });
});

describe("a gate", () => {
  test("runs so many at a time, the others in the order in which they came", async () => {
    const gate = new Gate(2);
    const ends = Array.from({ length: 4 }, () => Promise.withResolvers<number>());
    const begun: number[] = [];
    const runs = ends.map(({ promise }, index) =>
      gate.run(() => {
        begun.push(index);
        return promise;
      }),
    );
    await settle();
    expect([begun, gate.waiting, gate.isOpen]).toEqual([[0, 1], 2, false]);
    ends[1]?.reject(new Error("broken"));
    expect(runs[1]).rejects.toThrow("broken");
    await settle();
    expect([begun, gate.waiting]).toEqual([[0, 1, 2], 1]);
    for (const [index, { resolve }] of ends.entries()) resolve(index);
    expect(await Promise.all([runs[0], runs[2], runs[3]])).toEqual([0, 2, 3]);
    expect([begun, gate.waiting, gate.isOpen]).toEqual([[0, 1, 2, 3], 0, true]);
  });

  test("is not passed by whoever comes when a place is handed on", async () => {
    const gate = new Gate(1);
    const order: string[] = [];
    const first = gate.run(async () => void order.push("first"));
    const second = gate.run(async () => void order.push("second"));
    void first.then(() => gate.run(async () => void order.push("third")));
    await second;
    await settle();
    expect(order).toEqual(["first", "second", "third"]);
  });
});

describe("mapping concurrently", () => {
  test("has so many under way at most, and the results in the order of the items", async () => {
    let [running, most] = [0, 0];
    const results = await mapConcurrently([5, 1, 4, 2, 3], 2, async (turns) => {
      most = Math.max(most, ++running);
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      running--;
      return turns * 10;
    });
    expect([results, most]).toEqual([[50, 10, 40, 20, 30], 2]);
  });

  test("rejects with the first failure, and begins no further item", async () => {
    const begun: number[] = [];
    const mapped = mapConcurrently([1, 2, 3, 4, 5], 2, async (item) => {
      begun.push(item);
      await Promise.resolve();
      if (item === 2) throw new Error("broken");
      await settle();
    });
    expect(mapped).rejects.toThrow("broken");
    await settle();
    await settle();
    expect(begun.length).toBeLessThanOrEqual(3);
  });
});
