import { afterEach, expect, test } from "bun:test";
import { createLog } from "./base/log.ts";
import { createJobs } from "./jobs.ts";
import { createTestClock } from "./testing/clock.ts";

interface Timer {
  trigger(): Promise<void>;
  nextRun(): Date | null;
  getPattern(): string | undefined;
}

const stops: Array<() => void> = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

const start = (forgetOldIdempotency: () => Promise<unknown>) => {
  const logged: string[] = [];
  const log = createLog("error", createTestClock(), (line) => logged.push(line));
  const nothing = async () => undefined;
  const jobs = createJobs({
    log,
    forgetOldIdempotency,
    forgetOldDeliveries: nothing,
    checkBlocklists: nothing,
    mailBlocklistAlerts: nothing,
    testBlocklists: nothing,
    forgetOldBlocklistChecks: nothing,
    checkDomains: nothing,
    raiseDmarcAlerts: nothing,
    mailDmarcAlerts: nothing,
    mailDigests: nothing,
    proveReportMails: nothing,
    findAddressFacts: nothing,
    checkDomainHealth: nothing,
    forgetOldReports: nothing,
    purgeDeletedDomains: nothing,
    rebuildSources: nothing,
    renewCertificates: nothing,
  });
  stops.push(jobs.stop);
  const { cron } = jobs.plugin.store as { cron: Record<string, Timer> };
  return { jobs, logged, timers: Object.entries(cron) };
};

test("every job is due within the hour, and none is due after the stop", () => {
  const { jobs, timers } = start(async () => undefined);
  const patterns = timers.map(([name, timer]) => [name, timer.getPattern()]);
  expect(patterns).toEqual([
    ["forget old idempotency keys", "17 * * * *"],
    ["forget old webhook deliveries", "27 * * * *"],
    ["check blocklist targets", "* * * * *"],
    ["mail blocklist alerts", "* * * * *"],
    ["test blocklists", "* * * * *"],
    ["forget old blocklist checks", "37 * * * *"],
    ["check DMARC domains", "* * * * *"],
    ["raise DMARC alerts", "*/5 * * * *"],
    ["mail DMARC alerts", "* * * * *"],
    ["mail DMARC digests", "*/5 * * * *"],
    ["prove report mails", "* * * * *"],
    ["find reverse names and networks", "* * * * *"],
    ["check the health of DMARC domains", "* * * * *"],
    ["forget old DMARC reports", "47 * * * *"],
    ["purge deleted domains", "* * * * *"],
    ["rebuild DMARC sources", "* * * * *"],
    ["renew certificates", "57 * * * *"],
  ]);
  for (const [, timer] of timers) expect(timer.nextRun()).not.toBeNull();
  jobs.stop();
  for (const [, timer] of timers) expect(timer.nextRun()).toBeNull();
});

test("a job that fails is logged by its name, and runs again", async () => {
  let runs = 0;
  const { logged, timers } = start(async () => {
    runs++;
    throw new Error("no disk");
  });
  const failing = timers.filter(([name]) => name === "forget old idempotency keys");
  for (let n = 0; n < 2; n++) for (const [, timer] of failing) await timer.trigger();
  expect(runs).toBe(2);
  expect(logged).toHaveLength(2);
  expect(logged[0]).toContain("forget old idempotency keys");
});
