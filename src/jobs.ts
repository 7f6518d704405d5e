import { type Clock, ClockWatch, isoTime } from "./base/clock.ts";
import type { Log } from "./base/log.ts";
import type { Service } from "./compose-service.ts";

/** A row of the cron table. A job that is still running when it is due again is skipped. */
type Job = Schedule & {
  readonly name: string;
  readonly run: () => Promise<unknown>;
  /** Whether it deletes what is old: with the clock set forward, that would be everything. */
  readonly expires?: true;
};

/** Every so many minutes (a divisor of 60), or at a time in UTC: `03:07` daily, `:07` hourly. */
type Schedule = { readonly every: number; readonly at?: never } | { readonly at: string; readonly every?: never };

/** A clock set further forward than this is believed only by the next start. */
const AHEAD_MS_MAX = 24 * 60 * 60 * 1000;

export interface JobsOptions {
  readonly service: Pick<
    Service,
    "idempotency" | "webhooks" | "blocklist" | "dmarc" | "purge" | "backups" | "correctPlannedTimes" | "doctor"
  >;
  readonly log: Log;
  readonly clock: Clock;
  readonly renewCertificates: () => Promise<unknown>;
}

const cronTable = ({ service, renewCertificates }: JobsOptions): readonly Job[] => {
  const { idempotency, webhooks, dmarc, backups } = service;
  const { scheduler, alerts, usability, mutes } = service.blocklist;
  return [
    { name: "purge idempotency keys", at: ":17", expires: true, run: async () => idempotency.purge() },
    {
      name: "purge expired verifications and lists",
      at: "03:07",
      expires: true,
      run: () => service.purge.run(),
    },
    { name: "purge webhook deliveries", at: ":27", expires: true, run: () => webhooks.purge() },
    {
      name: "check blocklist targets",
      every: 1,
      run: () => scheduler.checkDue().then(() => usability.observe()),
    },
    { name: "end mutes of blocklists", every: 1, run: () => mutes.endDue() },
    { name: "mail blocklist alerts", every: 1, run: async () => alerts?.send() },
    { name: "test blocklists", every: 1, run: () => scheduler.testLists().then(() => usability.observe()) },
    { name: "purge blocklist checks", at: ":37", expires: true, run: () => scheduler.purgeOldChecks() },
    { name: "check DMARC domains", every: 1, run: () => dmarc.jobs.checkDomains() },
    { name: "raise DMARC alerts", every: 5, run: () => dmarc.jobs.raiseDmarcAlerts() },
    { name: "mail DMARC alerts", every: 1, run: () => dmarc.jobs.mailDmarcAlerts() },
    { name: "mail DMARC digests", every: 5, run: () => dmarc.jobs.mailDigests() },
    { name: "authenticate report mails", every: 1, run: () => dmarc.jobs.authenticateReportMails() },
    { name: "look up reverse names and networks", every: 1, run: () => dmarc.jobs.findAddressFacts() },
    { name: "check the health of DMARC domains", every: 1, run: () => dmarc.jobs.checkDomainHealth() },
    { name: "sum up DMARC domains", every: 1, run: () => dmarc.jobs.sumUpDomains() },
    { name: "purge DMARC reports", at: ":47", expires: true, run: () => dmarc.jobs.expireReports() },
    { name: "purge deleted domains", every: 1, run: () => dmarc.jobs.purgeDeletedDomains() },
    { name: "rebuild DMARC sources", every: 1, run: () => dmarc.jobs.rebuildSources() },
    { name: "back up the database", every: 1, run: async () => backups?.run() },
    // Not at once: a service that starts again and again must not connect to a mail host each time.
    { name: "check this machine", at: ":13", run: () => service.doctor.runIfDue() },
    { name: "correct planned times", at: ":51", run: () => service.correctPlannedTimes() },
    { name: "renew certificates", at: ":57", run: renewCertificates },
  ];
};

/** Most jobs find nothing to do, every minute: their start and end are logged at debug, a long run at info. */
const LONG_RUN_MS = 1_000;

/** Runs a job between two lines of the log. A job that fails is logged, too, and runs again when it is next due. */
const runLogged = async ({ name, run }: Job, { log, clock }: JobsOptions): Promise<void> => {
  const begunMs = clock.monotonicMs();
  log.debug("job started", { job: name });
  try {
    await run();
  } catch (error) {
    log.error("job failed", { job: name, ms: Math.round(clock.monotonicMs() - begunMs), error });
    return;
  }
  const ms = Math.round(clock.monotonicMs() - begunMs);
  log[ms >= LONG_RUN_MS ? "info" : "debug"]("job ended", { job: name, ms });
};

/** Whether the clock is so far ahead that nothing may expire by it, which is logged. */
const isHeld = ({ name }: Job, aheadMs: number, log: Log): boolean => {
  if (aheadMs <= AHEAD_MS_MAX) return false;
  const message =
    "the system clock was set forward; nothing expires until it is corrected or, if right, until a restart";
  log.error(message, { job: name, days: Math.round(aheadMs / AHEAD_MS_MAX) });
  return true;
};

const MINUTE_MS = 60_000;
/** What was due while the machine was suspended runs once when it goes on; older than a day, it does not. */
const MISSED_MINUTES_MAX = 24 * 60;

/** Whether a job is due in a minute, counted since 1970. */
const isDue = ({ every, at }: Job, minute: number): boolean => {
  if (every !== undefined) return minute % every === 0;
  return isoTime(minute * MINUTE_MS)
    .slice(0, "2026-01-01T03:07".length)
    .endsWith(at);
};

/** The cron table while it runs. */
export class Jobs {
  readonly #options: JobsOptions;
  readonly #table: readonly Job[];
  readonly #watch: ClockWatch;
  readonly #running = new Set<string>();
  /** The last minute whose jobs were started. */
  #minute: number;
  #cancel: () => void = () => undefined;

  /** Starts the table: jobs run from the next full minute on. */
  constructor(options: JobsOptions) {
    this.#options = options;
    this.#table = cronTable(options);
    this.#watch = new ClockWatch(options.clock);
    this.#minute = this.#minuteNow();
    this.#wait();
  }

  /** Starts no more jobs. */
  stop(): void {
    this.#cancel();
  }

  #minuteNow(): number {
    return Math.floor(this.#options.clock.nowMs() / MINUTE_MS);
  }

  #wait(): void {
    const { clock } = this.#options;
    this.#cancel = clock.after(MINUTE_MS - (clock.nowMs() % MINUTE_MS), () => this.#tick());
  }

  /** Starts what became due since the last tick; in the same minute, which a timer that fires early meets, nothing. */
  #tick(): void {
    const minute = this.#minuteNow();
    const passed = minute < this.#minute ? 1 : Math.min(minute - this.#minute, MISSED_MINUTES_MAX);
    const minutes = Array.from({ length: passed }, (_, index) => minute - index);
    this.#minute = minute;
    this.#wait();
    for (const job of this.#table) if (minutes.some((one) => isDue(job, one))) void this.#run(job);
  }

  async #run(job: Job): Promise<void> {
    const { name, expires } = job;
    if (this.#running.has(name)) return;
    if (expires && isHeld(job, this.#watch.aheadMs(), this.#options.log)) return;
    this.#running.add(name);
    await runLogged(job, this.#options);
    this.#running.delete(name);
  }
}
