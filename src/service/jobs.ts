import { cron } from "@elysiajs/cron";
import { Elysia } from "elysia";
import { type Clock, ClockWatch, nextTurn } from "../foundation/base/clock.ts";
import { Recurring } from "../foundation/base/recurring.ts";
import { drain, Gate } from "../foundation/base/wait.ts";
import type { Log } from "../foundation/base/log.ts";
import type { Service } from "./compose.ts";
import type { ScheduledBackups } from "../foundation/db/scheduled-backups.ts";

/** A row of the cron table; `pattern` is in UTC. A job that is still running when it is due again is skipped. */
interface Job {
  readonly name: string;
  readonly pattern: string;
  /** `isStopping`: whether the service stops, so that work in steps ends. */
  readonly run: (isStopping: () => boolean) => Promise<unknown>;
  /** Whether it deletes what is old: with the clock set forward, that would be everything. */
  readonly expires?: true;
  /** Whether it reads one state of the database for long: what is deleted meanwhile stays in the write-ahead log, so no purge runs beside it. */
  readonly readsAll?: true;
}

/** A clock set further forward than this is believed only by the next start. */
const AHEAD_MS_MAX = 24 * 60 * 60 * 1000;
const DRAIN_MS_MAX = 6_000;

/** The parts of the service that delete what is old. */
export type ExpiringParts = Pick<Service, "verification" | "notifications" | "blocklist" | "dmarc" | "purge">;

export interface JobsOptions {
  readonly service: ExpiringParts & Pick<Service, "correctPlannedTimes" | "doctor" | "activity" | "bulk">;
  readonly backups: Pick<ScheduledBackups, "run"> | null;
  readonly log: Log;
  readonly clock: Clock;
  readonly renewCertificates: () => Promise<unknown>;
}

/** The jobs that delete what is old. The last returns the space to the file system, and clears what all of them deleted. */
export const expiringJobs = ({
  verification,
  notifications,
  blocklist,
  dmarc,
  purge,
}: ExpiringParts): readonly Job[] => [
  {
    name: "purge idempotency keys",
    pattern: "17 * * * *",
    expires: true,
    run: (isStopping) => verification.idempotency.purge(isStopping),
  },
  {
    name: "purge webhook deliveries",
    pattern: "27 * * * *",
    expires: true,
    run: (isStopping) => notifications.webhooks.purge(isStopping),
  },
  {
    name: "purge blocklist checks",
    pattern: "37 * * * *",
    expires: true,
    run: () => blocklist.scheduler.purgeOldChecks(),
  },
  { name: "purge DMARC reports", pattern: "47 * * * *", expires: true, run: () => dmarc.jobs.expireReports() },
  { name: "purge expired verifications and lists", pattern: "7 3 * * *", expires: true, run: () => purge.run() },
];

const cronTable = ({ service, backups, renewCertificates }: JobsOptions): readonly Job[] => {
  const { dmarc } = service;
  const { scheduler, targets, alerts, usability, mutes } = service.blocklist;
  return [
    ...expiringJobs(service),
    {
      name: "check blocklist targets",
      pattern: "* * * * *",
      run: () => scheduler.checkDue().then(() => usability.observe()),
    },
    { name: "end mutes of blocklists", pattern: "* * * * *", run: () => mutes.endDue() },
    { name: "mail blocklist alerts", pattern: "* * * * *", run: async () => alerts?.send() },
    { name: "test blocklists", pattern: "* * * * *", run: () => scheduler.testLists().then(() => usability.observe()) },
    {
      name: "purge deleted targets",
      pattern: "* * * * *",
      run: (isStopping) => targets.finishRemovals(isStopping),
    },
    { name: "mail lists that ended", pattern: "* * * * *", run: async () => service.bulk.mails?.send() },
    { name: "check DMARC domains", pattern: "* * * * *", run: () => dmarc.jobs.checkDomains() },
    { name: "check MTA-STS policies", pattern: "* * * * *", run: () => dmarc.jobs.checkPolicies() },
    { name: "raise DMARC alerts", pattern: "*/5 * * * *", run: () => dmarc.jobs.raiseDmarcAlerts() },
    { name: "mail DMARC alerts", pattern: "* * * * *", run: () => dmarc.jobs.mailDmarcAlerts() },
    { name: "mail DMARC digests", pattern: "*/5 * * * *", run: () => dmarc.jobs.mailDigests() },
    { name: "authenticate report mails", pattern: "* * * * *", run: () => dmarc.jobs.authenticateReportMails() },
    { name: "look up reverse names and networks", pattern: "* * * * *", run: () => dmarc.jobs.findAddressFacts() },
    { name: "check the health of DMARC domains", pattern: "* * * * *", run: () => dmarc.jobs.checkDomainHealth() },
    { name: "sum up DMARC domains", pattern: "* * * * *", run: () => dmarc.jobs.sumUpDomains() },
    { name: "purge deleted domains", pattern: "* * * * *", run: () => dmarc.jobs.purgeDeletedDomains() },
    { name: "rebuild DMARC sources", pattern: "* * * * *", run: () => dmarc.jobs.rebuildSources() },
    { name: "back up the database", pattern: "* * * * *", readsAll: true, run: async () => backups?.run() },
    // Not at once: a service that starts again and again must not connect to a mail host each time.
    { name: "check this machine", pattern: "13 * * * *", run: () => service.doctor.runIfDue() },
    { name: "log the activity", pattern: "0 * * * *", run: async () => service.activity.write() },
    { name: "correct planned times", pattern: "51 * * * *", run: () => service.correctPlannedTimes() },
    { name: "renew certificates", pattern: "57 * * * *", run: renewCertificates },
  ];
};

/** Most jobs find nothing to do, every minute: their start and end are logged at debug, a long run at info. */
const LONG_RUN_MS = 1_000;

/** Runs a job between two lines of the log. */
const runLogged = async ({ name, run }: Job, { log, clock }: JobsOptions, isStopping: () => boolean): Promise<void> => {
  const begunMs = clock.monotonicMs();
  log.debug("job started", { job: name });
  await run(isStopping);
  const ms = Math.round(clock.monotonicMs() - begunMs);
  log[ms >= LONG_RUN_MS ? "info" : "debug"](isStopping() ? "job stopped" : "job ended", { job: name, ms });
};

/** Whether the clock is so far ahead that nothing may expire by it, which is logged. */
const isHeld = ({ name }: Job, aheadMs: number, log: Log): boolean => {
  if (aheadMs <= AHEAD_MS_MAX) return false;
  const message =
    "the system clock was set forward; nothing expires until it is corrected or, if right, until a restart";
  log.error(message, { job: name, days: Math.round(aheadMs / AHEAD_MS_MAX) });
  return true;
};

/** Starts the cron table; `stop` ends it, and waits for the jobs that run: those in steps end after the present one. */
export const createJobs = (options: JobsOptions) => {
  const { clock, log } = options;
  const watch = new ClockWatch(clock);
  /** Purges and backups wait for each other. */
  const turns = new Gate(1);
  /** Most jobs are due at the same moment: each begins in a turn of the event loop of its own. */
  const beginnings = new Gate(1);
  const runNow = async (job: Job, signal: AbortSignal): Promise<void> => {
    await beginnings.run(nextTurn);
    if (signal.aborted || (job.expires && isHeld(job, watch.aheadMs(), log))) return;
    await runLogged(job, options, () => signal.aborted);
  };
  const run = async (job: Job, signal: AbortSignal): Promise<null> => {
    await (job.expires || job.readsAll ? turns.run(() => runNow(job, signal)) : runNow(job, signal));
    return null;
  };
  const plugin = new Elysia({ name: "jobs" });
  const running = cronTable(options).map((job) => {
    const { name, pattern } = job;
    const work = { name: "job", fields: { job: name }, run: (signal: AbortSignal) => run(job, signal) };
    const recurring = new Recurring(options, work);
    plugin.use(cron({ name, pattern, utcOffset: 0, protect: true, run: () => recurring.run() }));
    return recurring;
  });
  const { cron: timersByName = {} } = plugin.store as { cron?: Record<string, { stop(): void }> };
  const timers = Object.values(timersByName);
  return {
    plugin,
    stop: async (): Promise<void> => {
      for (const timer of timers) timer.stop();
      const stopped = running.map((recurring) => recurring.stop());
      await drain(clock, DRAIN_MS_MAX, stopped);
    },
  };
};
