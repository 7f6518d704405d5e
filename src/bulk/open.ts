import { join } from "node:path";
import { steadyTime } from "../foundation/base/clock.ts";
import type { ByMode } from "../foundation/base/secrets.ts";
import type { IdempotencyStore } from "../foundation/db/idempotency.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import type { CreditHolds } from "../accounts/billing/store.ts";
import { NO_MAIL_PROBLEM, type RecipientDomains, recipientsProblem } from "../foundation/mail/recipients.ts";
import type { Mailing } from "../notifications/mail/mail-batcher.ts";
import type { WebhookUrls } from "../notifications/webhooks/url-store.ts";
import type { ServiceEngine } from "../verify/open.ts";
import { BulkIntake } from "./arrival/intake.ts";
import { JobQueries } from "./job-queries.ts";
import { ListComparisons, type ListComparisonsDeps } from "./comparisons.ts";
import { BulkJobs } from "./jobs.ts";
import { createListMails } from "./list-mails.ts";
import { TroubleStore } from "./results/host-troubles.ts";
import { JobStore } from "./results/job-store.ts";
import { ListStore } from "./results/list-store.ts";
import { RowStore } from "./results/row-store.ts";
import { createAttempt } from "./run/attempt.ts";
import { JobWriter } from "./run/job-writer.ts";
import { BulkRunner } from "./run/runner.ts";

export interface BulkSettings {
  readonly dataDir: string;
  readonly connectionsMax: number;
  /** Domains that mail may be sent to; none: any. */
  readonly notifyDomains: RecipientDomains;
}

export interface BulkRunDeps {
  readonly credits: ByMode<CreditHolds>;
  readonly engine: ServiceEngine;
  /** The attempts of the engine, with what else is known of an address. */
  readonly attempts: ServiceEngine["attempts"];
  /** The single checks of the same process; null on the command line. */
  readonly checks: { running(): number; attemptMs(): number } | null;
}

/** Addresses of lists under way: enough to keep every connection busy, limited by memory. */
const WINDOW_PER_CONNECTION = 4;
const WINDOW_MAX = 5_000;

/** Where uploads are stored while they are received. */
export const uploadsFolderOf = ({ dataDir }: Pick<BulkSettings, "dataDir">): string => join(dataDir, "uploads");

const processorMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

/** Receives and verifies lists, on the database of the service or one of its own. */
export class BulkRun {
  readonly jobs: JobStore;
  readonly lists: ListStore;
  readonly rows: RowStore;
  readonly writer: JobWriter;
  readonly runner: BulkRunner;
  readonly intake: BulkIntake;

  constructor(
    runtime: Runtime,
    { connectionsMax }: Pick<BulkSettings, "connectionsMax">,
    { credits, engine, attempts, checks }: BulkRunDeps,
  ) {
    const { engines, smtp } = engine;
    const [jobs, lists] = [new JobStore(runtime.db), new ListStore(runtime.db)];
    const writer = new JobWriter(runtime, { jobs, lists, credits });
    const dueNowMs = steadyTime(runtime.clock);
    this.jobs = jobs;
    this.lists = lists;
    this.rows = new RowStore(runtime.db);
    this.writer = writer;
    this.intake = new BulkIntake(runtime, { jobs, lists, credits, engines, writer });
    this.runner = new BulkRunner(runtime, {
      jobs,
      lists,
      writer,
      outages: smtp.outages,
      dueNowMs,
      attempt: createAttempt(runtime, { engines, attempts, lists, dueNowMs, isShared: checks !== null }),
      windowMax: Math.min(WINDOW_MAX, connectionsMax * WINDOW_PER_CONNECTION),
      longestWaitMs: engines.live.longestWaitMs,
      load: {
        runningChecks: () => checks?.running() ?? 0,
        checkMs: () => checks?.attemptMs() ?? 0,
        lastShortageMs: () => smtp.outages.lastShortageMs(),
        processorMs,
        loopDelay: () => engine.loopDelay(),
      },
    });
  }
}

export interface BulkDeps extends BulkRunDeps {
  readonly urls: WebhookUrls;
  readonly idempotency: IdempotencyStore;
  /** Null where the service sends no mail. */
  readonly mailing: Mailing | null;
}

/** Lists of the service: what is done with them, and what pages read. */
export class BulkSlice {
  readonly run: BulkRun;
  readonly jobs: BulkJobs;
  readonly queries: JobQueries;
  readonly comparisons: ListComparisons;
  /** Null where the service sends no mail. */
  readonly mails: ReturnType<typeof createListMails> | null;

  constructor(runtime: Runtime, settings: BulkSettings, deps: BulkDeps) {
    const { credits, urls, idempotency, mailing } = deps;
    this.run = new BulkRun(runtime, settings, deps);
    const { jobs, lists, rows, writer, runner, intake } = this.run;
    this.jobs = new BulkJobs(runtime, {
      jobs,
      lists,
      writer,
      runner,
      intake,
      engines: deps.engine.engines,
      credits,
      urls,
      idempotency,
      mailProblem: (address) =>
        mailing === null ? NO_MAIL_PROBLEM : recipientsProblem([address], settings.notifyDomains),
      uploadsFolder: uploadsFolderOf(settings),
    });
    this.mails = mailing === null ? null : createListMails(runtime, { mailing, jobs });
    const { drafts } = this.jobs;
    const find: ListComparisonsDeps["find"] = (caller, id) => this.jobs.find(caller, id);
    this.comparisons = new ListComparisons({ jobs, lists, random: runtime.random, find });
    this.queries = new JobQueries(runtime, {
      jobs,
      lists,
      rows,
      runner,
      drafts,
      troubles: new TroubleStore(runtime.db),
      credits: credits.live,
    });
  }
}
