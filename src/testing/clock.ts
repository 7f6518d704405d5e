import type { Clock } from "../foundation/base/clock.ts";

/** A manual clock. `advance` moves it and runs what became due, in order, settling promises in between. */
export interface TestClock extends Clock {
  advance(ms: number): Promise<void>;
  /** Sets the wall clock forwards or back, as NTP and operators do; the monotonic clock is unaffected. */
  setWall(byMs: number): void;
  /** How many tasks wait for their time. */
  pending(): number;
}

export const createTestClock = (startMs = Date.UTC(2026, 0, 1)): TestClock => {
  let now = startMs;
  let wallMs = 0;
  let serial = 0;
  const tasks = new Map<number, { dueMs: number; run: () => void }>();

  const nextDue = (untilMs: number) =>
    [...tasks.entries()]
      .filter(([, task]) => task.dueMs <= untilMs)
      .sort((a, b) => a[1].dueMs - b[1].dueMs || a[0] - b[0])[0];

  return {
    nowMs: () => now + wallMs,
    monotonicMs: () => now - startMs,
    after(delayMs, run) {
      const id = ++serial;
      tasks.set(id, { dueMs: now + Math.max(0, delayMs), run });
      return () => void tasks.delete(id);
    },
    async advance(ms) {
      const untilMs = now + ms;
      await settle();
      for (let due = nextDue(untilMs); due; due = nextDue(untilMs)) {
        const [id, task] = due;
        tasks.delete(id);
        now = Math.max(now, task.dueMs);
        task.run();
        await settle();
      }
      now = untilMs;
      await settle();
    },
    setWall(byMs) {
      wallMs += byMs;
    },
    pending: () => tasks.size,
  };
};

/** Lets every promise and immediate that is already runnable run. */
export const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
};
