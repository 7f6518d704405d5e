import { join } from "node:path";
import { type Clock, steadyTime } from "./base/clock.ts";
import type { Log } from "./base/log.ts";
import type { Random } from "./base/secrets.ts";
import type { Ledger } from "./billing/store.ts";
import { createAttempt } from "./bulk/attempt.ts";
import { createBulkIntake } from "./bulk/intake.ts";
import { createListStore } from "./bulk/list-store.ts";
import { createJobWriter } from "./bulk/job-writer.ts";
import { createBulkRunner } from "./bulk/runner.ts";
import { createJobStore } from "./bulk/job-store.ts";
import type { Config } from "./config.ts";
import type { Db } from "./db/open.ts";
import type { Outages } from "./probe/outages.ts";
import type { VerificationEngine } from "./verify/engine.ts";

export interface BulkDeps {
  readonly config: Config;
  readonly db: Db;
  readonly ledger: Ledger;
  readonly engine: VerificationEngine;
  readonly outages: Outages;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Those who wait for a single check while lists are worked off; null where there are none. */
  readonly checks: { running(): number; attemptMs(): number } | null;
}

/** Addresses of lists under way: enough that no connection rests, and no more than can be in memory. */
const WINDOW_PER_CONNECTION = 4;
const WINDOW_MAX = 5_000;

/** Where lists lie while they are taken in. */
export const uploadsFolderOf = (config: Config): string => join(config.dataDir, "uploads");

/** What takes lists in and works them off, on a database of its own or the service's. */
export const composeBulk = ({ config, db, ledger, engine, outages, clock, random, log, checks }: BulkDeps) => {
  const jobs = createJobStore(db);
  const lists = createListStore(db);
  const record = createJobWriter({ db, jobs, lists, ledger, clock });
  const dueNowMs = steadyTime(clock);
  const attempt = createAttempt({ engine, lists, outages, clock, dueNowMs, log, isShared: checks !== null });
  const windowMax = Math.min(WINDOW_MAX, config.connectionsMax * WINDOW_PER_CONNECTION);
  const runner = createBulkRunner({
    ...{ db, jobs, lists, record, attempt, outages, clock, dueNowMs, log, windowMax },
    longestWaitMs: engine.longestWaitMs,
    lastShortageMs: () => outages.lastShortageMs(),
    isSomebodyWaiting: () => checks !== null && checks.running() > 0,
    checkMs: () => checks?.attemptMs() ?? 0,
  });
  const intake = createBulkIntake({ db, jobs, lists, record, ledger, clock, random });
  return { jobs, lists, record, runner, intake };
};
