import { Recurring } from "../base/recurring.ts";
import type { Runtime } from "../db/runtime.ts";
import type { JobStore } from "./job-store.ts";
import type { BulkRunner } from "./runner.ts";

export interface JobFollowerOptions {
  readonly jobs: Pick<JobStore, "resetting" | "withStatus">;
  readonly runner: Pick<BulkRunner, "add" | "drop" | "jobNumbers">;
  /** Prepares the retry of a job; does nothing for one that is being prepared. */
  readonly reset: (number: number) => void;
}

const FOLLOW_EVERY_MS = 2_000;

/** Follows what another process, such as the command line, did to jobs: stops those that it ended, starts those that it queued. */
export class JobFollower {
  readonly #options: JobFollowerOptions;
  readonly #following: Recurring;

  constructor(runtime: Pick<Runtime, "clock" | "log">, options: JobFollowerOptions) {
    this.#options = options;
    const failure = "changes of lists by other processes could not be read, retrying";
    this.#following = new Recurring(runtime, { failure, run: () => this.#follow(), retryMs: FOLLOW_EVERY_MS });
  }

  start(): void {
    this.#following.within(FOLLOW_EVERY_MS);
  }

  stop(): void {
    this.#following.stop();
  }

  #follow(): number {
    const { jobs, runner, reset } = this.#options;
    for (const { number } of jobs.resetting()) reset(number);
    const unfinished = jobs.withStatus(["queued", "running"]);
    const numbers = new Set(unfinished.map(({ number }) => number));
    for (const number of runner.jobNumbers()) if (!numbers.has(number)) runner.drop(number);
    for (const job of unfinished) if (!job.isResetting) runner.add(job);
    return FOLLOW_EVERY_MS;
  }
}
