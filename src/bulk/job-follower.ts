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
  readonly #clock: Runtime["clock"];
  readonly #options: JobFollowerOptions;
  #cancelTimer: (() => void) | null = null;

  constructor(clock: Runtime["clock"], options: JobFollowerOptions) {
    this.#clock = clock;
    this.#options = options;
  }

  start(): void {
    this.#cancelTimer = this.#clock.after(FOLLOW_EVERY_MS, () => {
      this.#follow();
      this.start();
    });
  }

  stop(): void {
    this.#cancelTimer?.();
  }

  #follow(): void {
    const { jobs, runner, reset } = this.#options;
    for (const { number } of jobs.resetting()) reset(number);
    const unfinished = jobs.withStatus(["queued", "running"]);
    const numbers = new Set(unfinished.map(({ number }) => number));
    for (const number of runner.jobNumbers()) if (!numbers.has(number)) runner.drop(number);
    for (const job of unfinished) if (!job.isResetting) runner.add(job);
  }
}
