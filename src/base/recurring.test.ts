import { expect, test } from "bun:test";
import { createTestClock } from "../testing/clock.ts";
import { createLog } from "./log.ts";
import { Recurring } from "./recurring.ts";

const start = (run: (atMs: number) => number) => {
  const clock = createTestClock();
  const logged: string[] = [];
  const log = createLog("error", clock, (line) => logged.push(line));
  const ran: number[] = [];
  const recurring = new Recurring(
    { clock, log },
    {
      failure: "work failed, retrying",
      retryMs: 1_000,
      run: () => {
        ran.push(clock.monotonicMs());
        return run(clock.monotonicMs());
      },
    },
  );
  const beganMs = clock.monotonicMs();
  const times = () => ran.map((ms) => ms - beganMs);
  return { clock, logged, recurring, times };
};

test("work runs when it says; a request brings it forward and never puts it off", async () => {
  const { clock, recurring, times } = start(() => 500);
  recurring.within(100);
  recurring.within(300);
  recurring.within(50);
  await clock.advance(600);
  expect(times()).toEqual([50, 550]);
  recurring.stop();
  recurring.within(0);
  await clock.advance(2_000);
  expect(times()).toEqual([50, 550]);
});

test("work that throws runs again, and its errors are logged once in ten seconds", async () => {
  const { clock, logged, recurring, times } = start(() => {
    throw new Error("disk I/O error");
  });
  recurring.within(0);
  await clock.advance(12_500);
  expect(times().slice(0, 3)).toEqual([0, 1_000, 2_000]);
  expect(logged).toHaveLength(2);
  expect(logged[0]).toContain("disk I/O error");
  recurring.stop();
});
