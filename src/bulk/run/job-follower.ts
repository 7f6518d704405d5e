import { Recurring } from "../../foundation/base/recurring.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import type { JobStore } from "../results/job-store.ts";
import type { BulkRunner } from "./runner.ts";

export interface JobFollowerOptions {
  readonly jobs: Pick<JobStore, "resetting" | "withStatus">;
  readonly runner: Pick<BulkRunner, "add" | "drop" | "jobNumbers">;
  /** Prepares the retries of the jobs that are marked for it. */
  readonly prepareRetries: () => void;
}

const FOLLOW_EVERY_MS = 2_000;

/** Follows what another process, such as the command line, did to jobs: stops those that it ended, starts those that it queued. */
export class JobFollower {
  readonly #options: JobFollowerOptions;
  readonly #following: Recurring;

  constructor(runtime: Pick<Runtime, "clock" | "log">, options: JobFollowerOptions) {
    this.#options = options;
    const name = "reading of lists that other processes changed";
    this.#following = new Recurring(runtime, { name, run: () => this.#follow(), retryMs: FOLLOW_EVERY_MS });
  }

  start(): void {
    this.#following.within(FOLLOW_EVERY_MS);
  }

  stop(): Promise<void> {
    return this.#following.stop();
  }

  #follow(): number {
    const { jobs, runner, prepareRetries } = this.#options;
    if (jobs.resetting().length > 0) prepareRetries();
    const unfinished = jobs.withStatus(["queued", "running"]);
    const numbers = new Set(unfinished.map(({ number }) => number));
    for (const number of runner.jobNumbers()) if (!numbers.has(number)) runner.drop(number);
    for (const job of unfinished) if (!job.isResetting) runner.add(job);
    return FOLLOW_EVERY_MS;
  }
}
