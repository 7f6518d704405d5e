import type { Clock } from "../../../src/foundation/base/clock.ts";

/** A clock that jumps. Timers that became due on the way run once, in order, as in a process that was asleep. */
export interface FleetClock extends Clock {
  jumpTo(ms: number): Promise<void>;
}

const TURNS = 10;

/** Lets what is runnable run. */
export const settle = async (): Promise<void> => {
  for (let turn = 0; turn < TURNS; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
};

export const createFleetClock = (startMs: number): FleetClock => {
  let now = startMs;
  let serial = 0;
  const tasks = new Map<number, { readonly dueMs: number; readonly run: () => void }>();
  return {
    nowMs: () => now,
    monotonicMs: () => now - startMs,
    after(delayMs, run) {
      const id = ++serial;
      tasks.set(id, { dueMs: now + Math.max(0, delayMs), run });
      return () => void tasks.delete(id);
    },
    async jumpTo(ms) {
      await settle();
      now = Math.max(now, ms);
      const due = [...tasks].filter(([, task]) => task.dueMs <= now).toSorted((a, b) => a[1].dueMs - b[1].dueMs);
      for (const [id, task] of due) {
        if (!tasks.delete(id)) continue;
        task.run();
        await settle();
      }
    },
  };
};
