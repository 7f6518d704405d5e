import { expect, test } from "bun:test";
import { systemClock } from "../base/clock.ts";
import { createApps } from "../../testing/app.ts";
import { unhurried } from "./unhurried.ts";

const start = createApps();

test("each commit is followed by a pause as long as it took", async () => {
  const { db } = start();
  const times = [100, 130];
  const pauses: number[] = [];
  const clock = {
    ...systemClock,
    monotonicMs: () => times.shift() ?? 0,
    after(delayMs: number, task: () => void) {
      pauses.push(delayMs);
      queueMicrotask(task);
      return () => undefined;
    },
  };
  expect(await unhurried(db, clock).commit(() => "written")).toBe("written");
  expect(pauses).toEqual([30]);
  const failed = unhurried(db, clock).commit(() => {
    throw new Error("not written");
  });
  await expect(failed).rejects.toThrow("not written");
  expect(pauses).toHaveLength(1);
});
