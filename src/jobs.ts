import { cron } from "@elysiajs/cron";
import { Elysia } from "elysia";
import type { Log } from "./base/log.ts";

/** One line of the table: what is done when. `pattern` is a cron expression in UTC; a run that is late is skipped, not doubled. */
interface Job {
  readonly name: string;
  readonly pattern: string;
  readonly run: () => Promise<unknown>;
}

export interface JobDeps {
  readonly log: Log;
  readonly forgetOldIdempotency: () => Promise<unknown>;
  readonly forgetOldDeliveries: () => Promise<unknown>;
  readonly checkBlocklists: () => Promise<unknown>;
  readonly mailBlocklistAlerts: () => Promise<unknown>;
  readonly testBlocklists: () => Promise<unknown>;
  readonly forgetOldBlocklistChecks: () => Promise<unknown>;
  readonly checkDomains: () => Promise<unknown>;
  readonly raiseDmarcAlerts: () => Promise<unknown>;
  readonly mailDmarcAlerts: () => Promise<unknown>;
  readonly mailDigests: () => Promise<unknown>;
  readonly proveReportMails: () => Promise<unknown>;
  readonly findAddressFacts: () => Promise<unknown>;
  readonly checkDomainHealth: () => Promise<unknown>;
  readonly forgetOldReports: () => Promise<unknown>;
  readonly purgeDeletedDomains: () => Promise<unknown>;
  readonly rebuildSources: () => Promise<unknown>;
  readonly renewCertificates: () => Promise<unknown>;
}

const jobsOf = (jobs: JobDeps): readonly Job[] => [
  { name: "forget old idempotency keys", pattern: "17 * * * *", run: jobs.forgetOldIdempotency },
  { name: "forget old webhook deliveries", pattern: "27 * * * *", run: jobs.forgetOldDeliveries },
  { name: "check blocklist targets", pattern: "* * * * *", run: jobs.checkBlocklists },
  { name: "mail blocklist alerts", pattern: "* * * * *", run: jobs.mailBlocklistAlerts },
  { name: "test blocklists", pattern: "* * * * *", run: jobs.testBlocklists },
  { name: "forget old blocklist checks", pattern: "37 * * * *", run: jobs.forgetOldBlocklistChecks },
  { name: "check DMARC domains", pattern: "* * * * *", run: jobs.checkDomains },
  { name: "raise DMARC alerts", pattern: "*/5 * * * *", run: jobs.raiseDmarcAlerts },
  { name: "mail DMARC alerts", pattern: "* * * * *", run: jobs.mailDmarcAlerts },
  { name: "mail DMARC digests", pattern: "*/5 * * * *", run: jobs.mailDigests },
  { name: "prove report mails", pattern: "* * * * *", run: jobs.proveReportMails },
  { name: "find reverse names and networks", pattern: "* * * * *", run: jobs.findAddressFacts },
  { name: "check the health of DMARC domains", pattern: "* * * * *", run: jobs.checkDomainHealth },
  { name: "forget old DMARC reports", pattern: "47 * * * *", run: jobs.forgetOldReports },
  { name: "purge deleted domains", pattern: "* * * * *", run: jobs.purgeDeletedDomains },
  { name: "rebuild DMARC sources", pattern: "* * * * *", run: jobs.rebuildSources },
  { name: "renew certificates", pattern: "57 * * * *", run: jobs.renewCertificates },
];

/** The cron table. The jobs tick from the moment the plugin is made; `stop` ends them. */
export const createJobs = (deps: JobDeps) => {
  const jobs = jobsOf(deps);
  const plugin = new Elysia({ name: "jobs" });
  for (const { name, pattern, run } of jobs) {
    plugin.use(
      cron({
        name,
        pattern,
        timezone: "UTC",
        protect: true,
        catch: (cause) => deps.log.error("a job failed", { job: name, cause }),
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
