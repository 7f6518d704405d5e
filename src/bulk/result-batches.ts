import type { Clock } from "../base/clock.ts";
import { wait } from "../base/wait.ts";
import type { Log } from "../base/log.ts";
import type { Db, Tx } from "../db/open.ts";
import { isStorageTrouble, WRITE_AGAIN_MS } from "../verify/carry-out.ts";
import type { AttemptedAddress, JobWriter } from "./job-writer.ts";

export interface ResultBatchesDeps {
  readonly db: Db;
  readonly record: JobWriter;
  readonly clock: Clock;
  readonly log: Log;
  /** Told after the commit, for each job of the batch. */
  readonly onWritten: (job: number, written: readonly AttemptedAddress[]) => void;
  /** Told of a job whose results cannot be written for a bug, not for the disk. */
  readonly onUnwritable: (job: number) => Promise<void>;
}

/** So many results, or those of so long, are written in one transaction. */
const BATCH_MAX = 500;
const BATCH_MS = 50;
/** With so many unwritten the work stops until the disk keeps up. */
export const UNWRITTEN_MAX = 5_000;

interface Unwritten {
  readonly job: number;
  readonly attempted: AttemptedAddress;
}

const byJob = (batch: readonly Unwritten[]): Map<number, AttemptedAddress[]> => {
  const groups = new Map<number, AttemptedAddress[]>();
  for (const { job, attempted } of batch) {
    const group = groups.get(job);
    if (group === undefined) groups.set(job, [attempted]);
    else group.push(attempted);
  }
  return groups;
};

/** Writes the results of all jobs, batch by batch, one batch at a time; a full disk makes it wait and try again. */
export const createResultBatches = (deps: ResultBatchesDeps) => {
  const { db, record, clock, log, onWritten, onUnwritable } = deps;
  const unwritten: Unwritten[] = [];
  let cancelTimer: (() => void) | null = null;
  let writing: Promise<void> | null = null;
  let stopped = false;

  /** False when these cannot be written for a bug. */
  const commit = async (work: (tx: Tx) => void): Promise<boolean> => {
    for (;;) {
      try {
        await db.commit(work);
        return true;
      } catch (error) {
        if (!isStorageTrouble(error)) {
          log.error("results of a list cannot be written", { cause: error });
          return false;
        }
        if (stopped) throw error;
        log.error("results of lists could not be written; trying again", { cause: error });
        await wait(clock, WRITE_AGAIN_MS);
      }
    }
  };

  const writeJob = async (job: number, all: readonly AttemptedAddress[]): Promise<void> => {
    if (await commit((tx) => record.attempted(tx, job, all))) onWritten(job, all);
    else await onUnwritable(job);
  };

  const writeBatch = async (groups: Map<number, AttemptedAddress[]>): Promise<void> => {
    const isWritten = await commit((tx) => {
      for (const [job, all] of groups) record.attempted(tx, job, all);
    });
    // One job's results may be at fault: the others' are not lost with them.
    if (isWritten) for (const [job, all] of groups) onWritten(job, all);
    else for (const [job, all] of groups) await writeJob(job, all);
  };

  const writeAll = async (): Promise<void> => {
    do await writeBatch(byJob(unwritten.splice(0, BATCH_MAX)));
    while (unwritten.length >= BATCH_MAX || (stopped && unwritten.length > 0));
  };

  const begin = (): void => {
    cancelTimer?.();
    cancelTimer = null;
    if (writing !== null || unwritten.length === 0) return;
    writing = writeAll()
      .catch((error: unknown) => log.error("results of lists were not written", { cause: error }))
      .finally(() => {
        writing = null;
        schedule();
      });
  };

  const schedule = (): void => {
    if (stopped || writing !== null || unwritten.length === 0) return;
    if (unwritten.length >= BATCH_MAX) begin();
    else cancelTimer ??= clock.after(BATCH_MS, begin);
  };

  return {
    add(job: number, attempted: AttemptedAddress): void {
      if (stopped) return;
      unwritten.push({ job, attempted });
      schedule();
    },
    size: (): number => unwritten.length,
    /** Writes what there is, and takes nothing more. */
    async stop(): Promise<void> {
      stopped = true;
      if (writing !== null) await writing;
      begin();
      if (writing !== null) await writing;
    },
  };
};
