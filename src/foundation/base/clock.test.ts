import { expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import { ClockWatch } from "./clock.ts";

test("a step of the wall clock is reported once, in both directions, and time that passes is none", async () => {
  const clock = createTestClock();
  const watch = new ClockWatch(clock);
  await clock.advance(60_000);
  expect([watch.stepMs(), watch.aheadMs()]).toEqual([0, 0]);
  clock.setWall(3_600_000);
  expect([watch.stepMs(), watch.stepMs(), watch.aheadMs()]).toEqual([3_600_000, 0, 3_600_000]);
  clock.setWall(-7_200_000);
  expect([watch.stepMs(), watch.stepMs(), watch.aheadMs()]).toEqual([-7_200_000, 0, -3_600_000]);
});

test("corrections below a second add up before they are a step", () => {
  const clock = createTestClock();
  const watch = new ClockWatch(clock);
  clock.setWall(600);
  expect(watch.stepMs()).toBe(0);
  clock.setWall(600);
  expect(watch.stepMs()).toBe(1_200);
});
