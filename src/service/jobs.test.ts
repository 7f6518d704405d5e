import { afterEach, expect, spyOn, test } from "bun:test";
import { nextTurn } from "../foundation/base/clock.ts";
import { createLog, type LogLevel } from "../foundation/base/log.ts";
import { createJobs } from "./jobs.ts";
import { createApps } from "../testing/app.ts";
import { createTestClock, settle } from "../testing/clock.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

interface Timer {
  trigger(): Promise<void>;
  nextRun(): Date | null;
  getPattern(): string | undefined;
}

const stops: Array<() => Promise<void>> = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

const startApp = createApps();

const start = (renewCertificates: () => Promise<unknown>, level: LogLevel = "error", backUp?: () => Promise<void>) => {
  const logged: string[] = [];
  const clock = createTestClock();
  const log = createLog(level, clock, (line) => logged.push(line));
  const { service, db } = startApp();
  const backups = backUp === undefined ? null : { run: backUp };
  const jobs = createJobs({ service, backups, log, clock, renewCertificates });
  stops.push(jobs.stop);
  const { cron } = jobs.plugin.store as { cron: Record<string, Timer> };
  return { jobs, clock, logged, service, db, timers: Object.entries(cron) };
};

test("every job has its pattern, and none is due after the stop", async () => {
  const { jobs, timers } = start(async () => undefined);
  const patterns = timers.map(([name, timer]) => [name, timer.getPattern()]);
  expect(patterns).toEqual([
    ["purge idempotency keys", "17 * * * *"],
    ["purge webhook deliveries", "27 * * * *"],
    ["purge blocklist checks", "37 * * * *"],
    ["purge DMARC reports", "47 * * * *"],
    ["purge expired verifications and lists", "7 3 * * *"],
    ["check blocklist targets", "* * * * *"],
    ["end mutes of blocklists", "* * * * *"],
    ["mail blocklist alerts", "* * * * *"],
    ["test blocklists", "* * * * *"],
    ["purge deleted targets", "* * * * *"],
    ["mail lists that ended", "* * * * *"],
    ["check DMARC domains", "* * * * *"],
    ["check MTA-STS policies", "* * * * *"],
    ["raise DMARC alerts", "*/5 * * * *"],
    ["mail DMARC alerts", "* * * * *"],
    ["mail DMARC digests", "*/5 * * * *"],
    ["authenticate report mails", "* * * * *"],
    ["look up reverse names and networks", "* * * * *"],
    ["check the health of DMARC domains", "* * * * *"],
    ["sum up DMARC domains", "* * * * *"],
    ["purge deleted domains", "* * * * *"],
    ["rebuild DMARC sources", "* * * * *"],
    ["back up the database", "* * * * *"],
    ["check this machine", "13 * * * *"],
    ["log the activity", "0 * * * *"],
    ["correct planned times", "51 * * * *"],
    ["renew certificates", "57 * * * *"],
  ]);
  for (const [, timer] of timers) expect(timer.nextRun()).not.toBeNull();
  await jobs.stop();
  for (const [, timer] of timers) expect(timer.nextRun()).toBeNull();
});

test("nothing expires while the clock is set forward by more than a day", async () => {
  const { service, clock, logged, timers } = start(async () => undefined);
  const purges = [
    spyOn(service.verification.idempotency, "purge"),
    spyOn(service.purge, "run"),
    spyOn(service.notifications.webhooks, "purge"),
    spyOn(service.blocklist.scheduler, "purgeOldChecks"),
    spyOn(service.dmarc.jobs, "expireReports"),
  ];
  const expiring = timers.filter(([name]) => /^purge (?!deleted)/.test(name));
  const runAll = async () => {
    for (const [, timer] of expiring) await timer.trigger();
    return purges.map(({ mock }) => mock.calls.length);
  };
  clock.setWall(DAY_MS + 1_000);
  expect(await runAll()).toEqual([0, 0, 0, 0, 0]);
  expect(logged.filter((line) => line.includes("nothing expires"))).toHaveLength(purges.length);
  clock.setWall(-2_000);
  expect(await runAll()).toEqual([1, 1, 1, 1, 1]);
  clock.setWall(-400 * DAY_MS);
  expect(await runAll()).toEqual([2, 2, 2, 2, 2]);
});

test("a purge ends after its present step when the jobs are stopped, and the stop waits for it", async () => {
  const { jobs, db, timers } = start(async () => undefined);
  const fill = db.sqlite.query(
    "INSERT INTO idempotency_keys WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT 'k', i, '', '', 0 FROM n",
  );
  fill.run();
  const count = () =>
    db.sqlite.query<{ left: number }, []>("SELECT count(*) AS left FROM idempotency_keys").get()?.left;
  for (const [name, timer] of timers) if (name === "purge idempotency keys") void timer.trigger();
  while (count() === 2_000) await nextTurn();
  await jobs.stop();
  const left = count() ?? 0;
  expect(left).toBeGreaterThanOrEqual(1_700);
  await db.commit(() => undefined);
  expect(count()).toBe(left);
});

test("jobs that are due at the same moment begin in turns of their own", async () => {
  const { logged, timers } = start(async () => undefined, "debug");
  const due = timers.filter(([name]) => /^(?:raise DMARC|mail DMARC|purge deleted|rebuild DMARC)/.test(name));
  expect(due.length).toBeGreaterThan(4);
  const begun = () => logged.filter((line) => line.includes("job started")).length;
  const ended = due.map(([, timer]) => timer.trigger());
  for (let turns = 0; turns <= due.length; turns += 1) {
    expect(begun()).toBeLessThanOrEqual(turns);
    await nextTurn();
  }
  await Promise.all(ended);
  expect(begun()).toBe(due.length);
});

test("a job that fails is logged once by its name, runs again when it is next due, and its recovery is logged", async () => {
  let runs = 0;
  const { clock, logged, timers } = start(async () => {
    if (++runs < 3) throw new Error("no disk");
  }, "info");
  const failing = timers.filter(([name]) => name === "renew certificates");
  for (let n = 0; n < 3; n++) {
    for (const [, timer] of failing) await timer.trigger();
    await clock.advance(60_000);
  }
  expect(runs).toBe(3);
  const job = "renew certificates";
  expect(logged.map((line): unknown => JSON.parse(line))).toMatchObject([
    { level: "error", message: "job failed", job, error: { message: "no disk" } },
    { level: "info", message: "job works again", job, failed_for_s: 120 },
  ]);
});

test("start and end of a job are logged at debug, a run of a second or more at info", async () => {
  const waits: number[] = [];
  const { clock, logged, timers } = start(async () => clock.advance(waits.shift() ?? 0), "debug");
  const renewal = timers.filter(([name]) => name === "renew certificates");
  waits.push(999, 1_000);
  for (let n = 0; n < 2; n++) for (const [, timer] of renewal) await timer.trigger();
  const job = "renew certificates";
  expect(logged.map((line): unknown => JSON.parse(line))).toMatchObject([
    { level: "debug", message: "job started", job },
    { level: "debug", message: "job ended", job, ms: 999 },
    { level: "debug", message: "job started", job },
    { level: "info", message: "job ended", job, ms: 1_000 },
  ]);
});

/** Work that ends when the test says so. */
const holdable = () => {
  const begun: string[] = [];
  const ends: Array<() => void> = [];
  const hold = (name: string) => () => {
    begun.push(name);
    return new Promise<void>((resolve) => ends.push(resolve));
  };
  return { begun, hold, end: () => ends.shift()?.() };
};

test("a backup and the purges wait for each other, and a stop does not wait for what has not begun", async () => {
  const { begun, hold, end } = holdable();
  const { jobs, service, timers } = start(async () => undefined, "debug", hold("backup"));
  spyOn(service.notifications.webhooks, "purge").mockImplementation(hold("purge") as never);
  const trigger = (name: string) => timers.find(([job]) => job === name)?.[1].trigger();
  const purge = "purge webhook deliveries";
  const backup = "back up the database";
  const first = trigger(backup);
  await settle();
  const second = trigger(purge);
  await settle();
  expect(begun).toEqual(["backup"]);
  end();
  await first;
  await settle();
  expect(begun).toEqual(["backup", "purge"]);
  const third = trigger(backup);
  await settle();
  expect(begun).toEqual(["backup", "purge"]);
  const stopped = jobs.stop();
  end();
  await Promise.all([stopped, second, third]);
  expect(begun).toEqual(["backup", "purge"]);
});

test("a stop waits for a job that runs, which is not logged as ended", async () => {
  const { hold, end } = holdable();
  const { jobs, logged, timers } = start(async () => undefined, "debug", hold("backup"));
  const backup = timers.find(([job]) => job === "back up the database")?.[1].trigger();
  await settle();
  let isStopped = false;
  const stopping = jobs.stop().then(() => {
    isStopped = true;
  });
  await settle();
  expect(isStopped).toBe(false);
  end();
  await Promise.all([stopping, backup]);
  const messages = logged.map((line): unknown => JSON.parse(line).message);
  expect(messages).toEqual(["job started", "job stopped"]);
});
