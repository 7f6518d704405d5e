import { wait } from "../../foundation/base/wait.ts";
import type { Tx } from "../../foundation/db/open.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import { isDatabaseState } from "../../foundation/base/errors.ts";
import { WRITE_AGAIN_MS } from "../../verify/attempts.ts";
import type { AttemptedAddress, JobWriter } from "./job-writer.ts";

/** One transaction writes this many results, or those of this time. */
export const RESULT_BATCH_MAX = 500;
export const RESULT_BATCH_MS = 50;
/** With this many unwritten results no further address is started. */
export const UNWRITTEN_MAX = 5_000;

/** `open`: the job has more addresses; `ended`: it has ended; `failed`: a bug prevents writing; `stopped`: nothing was written. */
export type WriteResult = "open" | "ended" | "failed" | "stopped";

interface PendingWrite {
  readonly job: number;
  readonly attempted: AttemptedAddress;
  readonly resolve: (result: WriteResult) => void;
}

/** Writes the results of all jobs in batches, one batch at a time. When the disk is full it waits and tries again. */
export class ResultBatches {
  readonly #pending: PendingWrite[] = [];
  #cancelTimer: (() => void) | null = null;
  #writing: Promise<void> | null = null;
  #isStopped: boolean = false;

  constructor(
    private readonly runtime: Runtime,
    private readonly writer: Pick<JobWriter, "writeAttempts">,
  ) {}

  /** Results that are not written yet. */
  get size(): number {
    return this.#pending.length;
  }

  /** Resolves when the result is durable, or cannot be written. */
  write(job: number, attempted: AttemptedAddress): Promise<WriteResult> {
    if (this.#isStopped) return Promise.resolve("stopped");
    const { promise, resolve } = Promise.withResolvers<WriteResult>();
    this.#pending.push({ job, attempted, resolve });
    this.#schedule();
    return promise;
  }

  /** Writes the pending results and accepts no more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#begin();
    // A batch under way continues with what arrived during it.
    await this.#writing;
  }

  #schedule(): void {
    if (this.#isStopped || this.#writing !== null || this.#pending.length === 0) return;
    if (this.#pending.length >= RESULT_BATCH_MAX) this.#begin();
    else this.#cancelTimer ??= this.runtime.clock.after(RESULT_BATCH_MS, () => this.#begin());
  }

  #begin(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    if (this.#writing !== null || this.#pending.length === 0) return;
    this.#writing = this.#writeAll().finally(() => {
      this.#writing = null;
      this.#schedule();
    });
  }

  async #writeAll(): Promise<void> {
    do await this.#writeJobs([...Map.groupBy(this.#pending.splice(0, RESULT_BATCH_MAX), ({ job }) => job)]);
    while (this.#pending.length >= RESULT_BATCH_MAX || (this.#isStopped && this.#pending.length > 0));
  }

  /** Writes the results of these jobs in one transaction; if a bug prevents that, each job in its own. */
  async #writeJobs(jobs: readonly JobWrites[]): Promise<void> {
    const { db, clock, log } = this.runtime;
    for (;;) {
      try {
        const results = await db.commit((tx) => jobs.map((one) => this.#writeJob(tx, one)));
        for (const [at, one] of jobs.entries()) settle(one, results[at] ?? "failed");
        return;
      } catch (error) {
        log.error("could not write results of lists", { error });
        if (isDatabaseState(error) && !this.#isStopped) {
          await wait(clock, WRITE_AGAIN_MS);
          continue;
        }
        if (isDatabaseState(error)) for (const one of jobs) settle(one, "stopped");
        else if (jobs.length > 1) for (const one of jobs) await this.#writeJobs([one]);
        else for (const one of jobs) settle(one, "failed");
        return;
      }
    }
  }

  #writeJob(tx: Tx, [job, writes]: JobWrites): WriteResult {
    const attempted = writes.map((write) => write.attempted);
    return this.writer.writeAttempts(tx, job, attempted) ? "open" : "ended";
  }
}

type JobWrites = readonly [job: number, writes: readonly PendingWrite[]];

const settle = ([, writes]: JobWrites, result: WriteResult): void => {
  for (const { resolve } of writes) resolve(result);
};
