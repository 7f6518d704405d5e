import { afterEach, expect, spyOn, test } from "bun:test";
import { createLog, type LogLevel } from "./base/log.ts";
import { Jobs } from "./jobs.ts";
import { createApps } from "./testing/app.ts";
import { createTestClock } from "./testing/clock.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const running: Jobs[] = [];
afterEach(() => {
  for (const jobs of running.splice(0)) jobs.stop();
});

const startApp = createApps();

/** Jobs by a clock of their own, started at midnight; `due` is called by the job that runs 57 minutes past each hour. */
const start = (due: () => Promise<unknown> = async () => undefined, level: LogLevel = "error") => {
  const lines: string[] = [];
  const clock = createTestClock();
  const log = createLog(level, clock, (line) => lines.push(line));
  const { service } = startApp();
  const jobs = new Jobs({ service, log, clock, renewCertificates: due });
  running.push(jobs);
  const logged = () => lines.map((line): Record<string, unknown> => JSON.parse(line));
  return { jobs, clock, service, logged };
};

/** When each job started, in minutes after midnight. */
const startsIn = async (ms: number): Promise<Record<string, number[]>> => {
  const { clock, logged } = start(undefined, "debug");
  await clock.advance(ms);
  const begun = logged().filter(({ message }) => message === "job started");
  const minuteOf = ({ at }: Record<string, unknown>) => (Date.parse(String(at)) - Date.UTC(2026, 0, 1)) / MINUTE_MS;
  const starts = Map.groupBy(begun, ({ job }) => String(job));
  return Object.fromEntries([...starts].map(([job, lines]) => [job, lines.map(minuteOf)]));
};

test("every job runs at its times", async () => {
  const starts = await startsIn(2 * HOUR_MS);
  const minutely = Array.from({ length: 120 }, (_, minute) => minute + 1);
  const everyFive = minutely.filter((minute) => minute % 5 === 0);
  expect(starts).toEqual({
    "purge idempotency keys": [17, 77],
    "purge webhook deliveries": [27, 87],
    "check blocklist targets": minutely,
    "end mutes of blocklists": minutely,
    "mail blocklist alerts": minutely,
    "test blocklists": minutely,
    "purge blocklist checks": [37, 97],
    "check DMARC domains": minutely,
    "raise DMARC alerts": everyFive,
    "mail DMARC alerts": minutely,
    "mail DMARC digests": everyFive,
    "authenticate report mails": minutely,
    "look up reverse names and networks": minutely,
    "check the health of DMARC domains": minutely,
    "sum up DMARC domains": minutely,
    "purge DMARC reports": [47, 107],
    "purge deleted domains": minutely,
    "rebuild DMARC sources": minutely,
    "back up the database": minutely,
    "check this machine": [13, 73],
    "correct planned times": [51, 111],
    "renew certificates": [57, 117],
  });
});

test("verifications and lists expire once a day, at 03:07 UTC", async () => {
  const { clock, service } = start();
  const purge = spyOn(service.purge, "run");
  await clock.advance(3 * HOUR_MS + 6 * MINUTE_MS);
  expect(purge).toHaveBeenCalledTimes(0);
  await clock.advance(MINUTE_MS);
  expect(purge).toHaveBeenCalledTimes(1);
});

test("after the stop no job runs", async () => {
  let runs = 0;
  const { jobs, clock } = start(async () => ++runs);
  jobs.stop();
  await clock.advance(2 * HOUR_MS);
  expect([runs, clock.pending()]).toEqual([0, 0]);
});

test("a job that still runs is not started again", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let runs = 0;
  const { clock } = start(() => {
    runs++;
    return promise;
  });
  await clock.advance(3 * HOUR_MS);
  expect(runs).toBe(1);
  resolve();
  await clock.advance(HOUR_MS);
  expect(runs).toBe(2);
});

test("what became due while the machine was suspended runs once; after the clock was set back, jobs go on", async () => {
  let runs = 0;
  const { clock } = start(async () => ++runs);
  clock.setWall(5 * HOUR_MS);
  await clock.advance(MINUTE_MS);
  expect(runs).toBe(1);
  clock.setWall(-5 * HOUR_MS);
  await clock.advance(56 * MINUTE_MS);
  expect(runs).toBe(2);
});

test("a timer that fires before the full minute starts nothing twice", async () => {
  let runs = 0;
  const { clock } = start(async () => ++runs);
  await clock.advance(57 * MINUTE_MS);
  clock.setWall(-5_000);
  await clock.advance(MINUTE_MS + 6_000);
  clock.setWall(5_000);
  await clock.advance(MINUTE_MS);
  expect(runs).toBe(1);
});

test("nothing expires while the clock is set forward by more than a day", async () => {
  const { service, clock, logged } = start();
  const purges = [
    spyOn(service.idempotency, "purge").mockResolvedValue(0),
    spyOn(service.webhooks, "purge").mockResolvedValue(),
    spyOn(service.blocklist.scheduler, "purgeOldChecks").mockResolvedValue(undefined),
    spyOn(service.dmarc.jobs, "expireReports").mockResolvedValue(),
  ];
  const counts = () => purges.map(({ mock }) => mock.calls.length);
  clock.setWall(DAY_MS + 1_000);
  await clock.advance(HOUR_MS);
  expect(counts()).toEqual([0, 0, 0, 0]);
  const held = logged().filter((line) => JSON.stringify(line).includes("nothing expires"));
  expect(held.length).toBeGreaterThanOrEqual(purges.length);
  clock.setWall(-2_000);
  await clock.advance(HOUR_MS);
  expect(counts()).toEqual([1, 1, 1, 1]);
  clock.setWall(-400 * DAY_MS);
  await clock.advance(HOUR_MS);
  expect(counts()).toEqual([2, 2, 2, 2]);
});

test("a job that fails is logged by its name, and runs again", async () => {
  let runs = 0;
  const { clock, logged } = start(async () => {
    runs++;
    throw new Error("no disk");
  });
  await clock.advance(2 * HOUR_MS);
  expect(runs).toBe(2);
  expect(logged()).toMatchObject([
    { level: "error", job: "renew certificates" },
    { level: "error", job: "renew certificates" },
  ]);
});

test("start and end of a job are logged at debug, a run of a second or more at info", async () => {
  const waits = [999, 1_000];
  const { clock, logged } = start(
    () => new Promise((resolve) => clock.after(waits.shift() ?? 0, () => resolve(null))),
    "debug",
  );
  await clock.advance(2 * HOUR_MS);
  const job = "renew certificates";
  expect(logged().filter((line) => line.job === job)).toMatchObject([
    { level: "debug", message: "job started", job },
    { level: "debug", message: "job ended", job, ms: 999 },
    { level: "debug", message: "job started", job },
    { level: "info", message: "job ended", job, ms: 1_000 },
  ]);
});
