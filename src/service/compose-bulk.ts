import { join } from "node:path";
import { steadyTime } from "../foundation/base/clock.ts";
import type { ByMode } from "../foundation/base/secrets.ts";
import type { CreditHolds } from "../accounts/billing/store.ts";
import { createAttempt } from "../bulk/run/attempt.ts";
import { BulkIntake } from "../bulk/arrival/intake.ts";
import { JobStore } from "../bulk/results/job-store.ts";
import { JobWriter } from "../bulk/run/job-writer.ts";
import { ListStore } from "../bulk/results/list-store.ts";
import { RowStore } from "../bulk/results/row-store.ts";
import { BulkRunner } from "../bulk/run/runner.ts";
import type { Config } from "./config.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import type { Outages } from "../verify/smtp/outages.ts";
import type { VerificationEngine } from "../verify/engine.ts";

export interface BulkParts {
  readonly runtime: Runtime;
  readonly config: Config;
  readonly credits: ByMode<CreditHolds>;
  readonly engines: ByMode<VerificationEngine>;
  readonly outages: Outages;
  /** The single checks of the same process; null on the command line. */
  readonly checks: { running(): number; attemptMs(): number } | null;
}

/** Addresses of lists under way: enough to keep every connection busy, limited by memory. */
const WINDOW_PER_CONNECTION = 4;
const WINDOW_MAX = 5_000;

/** Where uploads are stored while they are received. */
export const uploadsFolderOf = (config: Config): string => join(config.dataDir, "uploads");

const processorMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

/** Receives and verifies lists, on the database of the service or one of its own. */
export const composeBulk = ({ runtime, config, credits, engines, outages, checks }: BulkParts) => {
  const jobs = new JobStore(runtime.db);
  const lists = new ListStore(runtime.db);
  const stores = { jobs, lists, credits };
  const writer = new JobWriter(runtime, stores);
  const intake = new BulkIntake(runtime, { ...stores, engines, writer });
  const dueNowMs = steadyTime(runtime.clock);
  const runner = new BulkRunner(runtime, {
    ...{ jobs, lists, writer, outages, dueNowMs },
    attempt: createAttempt(runtime, { engines, lists, dueNowMs, isShared: checks !== null }),
    windowMax: Math.min(WINDOW_MAX, config.connectionsMax * WINDOW_PER_CONNECTION),
    longestWaitMs: engines.live.longestWaitMs,
    load: {
      runningChecks: () => checks?.running() ?? 0,
      checkMs: () => checks?.attemptMs() ?? 0,
      lastShortageMs: () => outages.lastShortageMs(),
      processorMs,
    },
  });
  return { jobs, lists, rows: new RowStore(runtime.db), writer, runner, intake };
};
