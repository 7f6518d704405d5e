import { cron } from "@elysiajs/cron";
import { Elysia } from "elysia";
import type { Log } from "./base/log.ts";
import type { Service } from "./compose.ts";

/** A row of the cron table; `pattern` is in UTC. A job that is still running when it is due again is skipped. */
interface Job {
  readonly name: string;
  readonly pattern: string;
  readonly run: () => Promise<unknown>;
}

export interface JobsOptions {
  readonly service: Pick<Service, "idempotency" | "webhooks" | "blocklist" | "dmarc" | "purge">;
  readonly log: Log;
  readonly renewCertificates: () => Promise<unknown>;
}

const cronTable = ({ service, renewCertificates }: JobsOptions): readonly Job[] => {
  const { idempotency, webhooks, dmarc } = service;
  const { scheduler, alerts, usability } = service.blocklist;
  return [
    { name: "purge idempotency keys", pattern: "17 * * * *", run: async () => idempotency.purge() },
    { name: "purge expired verifications and lists", pattern: "7 3 * * *", run: () => service.purge.run() },
    { name: "purge webhook deliveries", pattern: "27 * * * *", run: () => webhooks.purge() },
    {
      name: "check blocklist targets",
      pattern: "* * * * *",
      run: () => scheduler.checkDue().then(() => usability.observe()),
    },
    { name: "mail blocklist alerts", pattern: "* * * * *", run: async () => alerts?.send() },
    { name: "test blocklists", pattern: "* * * * *", run: () => scheduler.testLists().then(() => usability.observe()) },
    { name: "purge blocklist checks", pattern: "37 * * * *", run: () => scheduler.purgeOldChecks() },
    { name: "check DMARC domains", pattern: "* * * * *", run: () => dmarc.jobs.checkDomains() },
    { name: "raise DMARC alerts", pattern: "*/5 * * * *", run: () => dmarc.jobs.raiseDmarcAlerts() },
    { name: "mail DMARC alerts", pattern: "* * * * *", run: () => dmarc.jobs.mailDmarcAlerts() },
    { name: "mail DMARC digests", pattern: "*/5 * * * *", run: () => dmarc.jobs.mailDigests() },
    { name: "authenticate report mails", pattern: "* * * * *", run: () => dmarc.jobs.authenticateReportMails() },
    { name: "look up reverse names and networks", pattern: "* * * * *", run: () => dmarc.jobs.findAddressFacts() },
    { name: "check the health of DMARC domains", pattern: "* * * * *", run: () => dmarc.jobs.checkDomainHealth() },
    { name: "purge DMARC reports", pattern: "47 * * * *", run: () => dmarc.jobs.expireReports() },
    { name: "purge deleted domains", pattern: "* * * * *", run: () => dmarc.jobs.purgeDeletedDomains() },
    { name: "rebuild DMARC sources", pattern: "* * * * *", run: () => dmarc.jobs.rebuildSources() },
    { name: "renew certificates", pattern: "57 * * * *", run: renewCertificates },
  ];
};

/** Starts the cron table; `stop` ends it. A job that fails is logged and runs again when it is next due. */
export const createJobs = (options: JobsOptions) => {
  const plugin = new Elysia({ name: "jobs" });
  for (const { name, pattern, run } of cronTable(options)) {
    plugin.use(
      cron({
        name,
        pattern,
        timezone: "UTC",
        protect: true,
        catch: (error) => options.log.error("job failed", { job: name, error }),
        run: async () => void (await run()),
      }),
    );
  }
  const { cron: timersByName = {} } = plugin.store as { cron?: Record<string, { stop(): void }> };
  const timers = Object.values(timersByName);
  return {
    plugin,
    stop: () => {
      for (const timer of timers) timer.stop();
    },
  };
};
