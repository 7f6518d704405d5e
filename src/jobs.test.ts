import { afterEach, expect, test } from "bun:test";
import { createLog } from "./base/log.ts";
import { createJobs } from "./jobs.ts";
import { createTestClock } from "./testing/clock.ts";

interface Timer {
  trigger(): Promise<void>;
  nextRun(): Date | null;
}

const stops: Array<() => void> = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

const start = (forgetOldIdempotency: () => Promise<unknown>) => {
  const logged: string[] = [];
  const log = createLog("error", createTestClock(), (line) => logged.push(line));
  const jobs = createJobs({ log, forgetOldIdempotency });
  stops.push(jobs.stop);
  const { cron } = jobs.plugin.store as { cron: Record<string, Timer> };
  return { jobs, logged, timers: Object.entries(cron) };
};

test("every job is due within the hour, and none is due after the stop", () => {
  const { jobs, timers } = start(async () => undefined);
  expect(timers.map(([name]) => name)).toEqual(["forget old idempotency keys"]);
  for (const [, timer] of timers) expect(timer.nextRun()?.getUTCMinutes()).toBe(17);
  jobs.stop();
  for (const [, timer] of timers) expect(timer.nextRun()).toBeNull();
});

test("a job that fails is logged by its name, and runs again", async () => {
  let runs = 0;
  const { logged, timers } = start(async () => {
    runs++;
    throw new Error("no disk");
  });
  for (let n = 0; n < 2; n++) for (const [, timer] of timers) await timer.trigger();
  expect(runs).toBe(2);
  expect(logged).toHaveLength(2);
  expect(logged[0]).toContain("forget old idempotency keys");
});
