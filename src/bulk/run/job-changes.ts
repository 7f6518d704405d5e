import { inSteps } from "../../foundation/base/in-steps.ts";
import { wait } from "../../foundation/base/wait.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import { isDatabaseState, AppError } from "../../foundation/base/errors.ts";
import { type JobStore, holdReference, type JobRow } from "../results/job-store.ts";
import type { ListStore } from "../results/list-store.ts";
import { nextTurn } from "../../foundation/base/clock.ts";
import { DAY_MS } from "../../foundation/base/days.ts";
import type { Tx } from "../../foundation/db/open.ts";
import type { ResultsFormat } from "../results/results-csv.ts";
import { insufficientCredits } from "../../accounts/billing/store.ts";
import { UsageStore } from "../../accounts/usage/usage-store.ts";
import { UNSETTLED, VERDICT_OF } from "../../verify/result.ts";
import { type BulkStores, isCountedBefore } from "./job-writer.ts";

const REMOVED_AT_ONCE = 1_000;
const AGAIN_MS = 10_000;

/**
 * Removes jobs in the background, one after another and in small transactions. While the disk takes no writes it waits and
 * tries again; what a crash leaves is removed after the next start.
 */
export class JobRemoval {
  #work: Promise<void> = Promise.resolve();
  readonly #stopping = new AbortController();

  constructor(
    private readonly runtime: Runtime,
    private readonly jobs: JobStore,
    private readonly lists: ListStore,
  ) {}

  /** Removes a job that is hidden. */
  remove(number: number): void {
    this.#enqueue(number, () => this.#removeRows(number));
  }

  /** Removes a job that was being received; it is hidden already. */
  discard(number: number): void {
    this.#enqueue(number, () => this.runtime.db.commit((tx) => this.jobs.hide(tx, number)));
    this.remove(number);
  }

  /** Resolves when nothing is left to remove. */
  done(): Promise<void> {
    return this.#work;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#work;
  }

  #enqueue(number: number, step: () => Promise<void>): void {
    this.#work = this.#work.then(() => this.runtime.db.apart(() => this.#untilDone(number, step)));
  }

  async #untilDone(number: number, step: () => Promise<void>): Promise<void> {
    const { clock, log } = this.runtime;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        return await step();
      } catch (error) {
        if (signal.aborted) return;
        const isTemporary = isDatabaseState(error);
        const when = isTemporary ? "in 10 seconds" : "after the next start";
        log.error(`could not remove a list; trying again ${when}`, { number, error });
        if (!isTemporary) return;
        await wait(clock, AGAIN_MS, signal);
      }
    }
  }

  async #removeRows(number: number): Promise<void> {
    const { db } = this.runtime;
    const step = () => db.commit((tx) => Number(this.lists.removeSome(tx, number, REMOVED_AT_ONCE)));
    const { isComplete } = await inSteps(step, { isStopping: () => this.#stopping.signal.aborted });
    if (isComplete) await db.commit((tx) => this.jobs.remove(tx, number));
  }
}

/** For how many days after the end of a job something is kept; null: for ever. */
interface ListRetention {
  /** The job with its results. */
  readonly resultDays: number | null;
  readonly evidenceDays: number | null;
  /** The columns of the uploaded file other than the address. */
  readonly fileDays: number | null;
}

/** How many jobs a run changed. */
export interface ExpiredLists {
  readonly lists: number;
  readonly files: number;
  readonly listEvidence: number;
}

/** Rows changed in one transaction: it holds the event loop for a few milliseconds. */
const ROWS_AT_ONCE = 250;
/** A retry may be repeated with its Idempotency-Key for a day. */
const SLACK_MS = 60 * 60 * 1000;

/** Removes what has expired of jobs that have ended. Unfinished jobs are never touched. */
export class ListExpiry {
  readonly #removal: JobRemoval;

  constructor(
    private readonly runtime: Runtime,
    private readonly stores: { readonly jobs: JobStore; readonly lists: ListStore },
    private readonly retention: ListRetention,
  ) {
    this.#removal = new JobRemoval(runtime, stores.jobs, stores.lists);
  }

  /** Removes what has expired, in short transactions, until nothing is left or `isStopping`. The next run resumes. */
  async run(isStopping: () => boolean): Promise<ExpiredLists> {
    const { resultDays, evidenceDays, fileDays } = this.retention;
    const remove = (days: number | null, work: (job: number, beforeMs: number) => Promise<boolean>): Promise<number> =>
      this.#eachEnded(days, isStopping, work);
    const lists = await remove(resultDays, (job, beforeMs) => this.#removeJob(job, beforeMs));
    const files = await remove(fileDays, (job, beforeMs) => this.#removeFile(job, beforeMs, isStopping));
    const listEvidence = await remove(evidenceDays, (job, beforeMs) =>
      this.#whileEnded(isStopping, { job, beforeMs }, (tx) =>
        this.stores.lists.removeSomeEvidence(tx, job, ROWS_AT_ONCE),
      ),
    );
    return { lists, files, listEvidence };
  }

  /** Stops the removal of a job after its present step; it continues after the next start. */
  stop(): Promise<void> {
    return this.#removal.stop();
  }

  /** Calls `work` for every job that ended more than `days` ago, and returns for how many it did something. */
  async #eachEnded(
    days: number | null,
    isStopping: () => boolean,
    work: (job: number, beforeMs: number) => Promise<boolean>,
  ): Promise<number> {
    if (days === null) return 0;
    const beforeMs = this.runtime.clock.nowMs() - days * DAY_MS - SLACK_MS;
    let changed = 0;
    for (const job of this.stores.jobs.endedBefore(beforeMs)) {
      if (isStopping()) break;
      if (await work(job, beforeMs)) changed += 1;
      await nextTurn();
    }
    return changed;
  }

  async #removeJob(job: number, beforeMs: number): Promise<boolean> {
    const { jobs } = this.stores;
    const isHidden = await this.runtime.db.commit((tx) => {
      if (!jobs.hasEndedBefore(job, beforeMs)) return false;
      jobs.hide(tx, job);
      return true;
    });
    if (!isHidden) return false;
    this.#removal.remove(job);
    await this.#removal.done();
    return true;
  }

  /** Removes the cells of the rows, then the names of their columns: the mark that nothing is left. */
  async #removeFile(job: number, beforeMs: number, isStopping: () => boolean): Promise<boolean> {
    const { jobs, lists } = this.stores;
    const format = jobs.formatOf(job);
    if (format.width <= 1 && format.titles.length === 0) return false;
    let after = -1;
    const isDone = await this.#whileEnded(isStopping, { job, beforeMs }, (tx) => {
      const last = lists.removeCells(tx, job, { after, limit: ROWS_AT_ONCE });
      if (last === null) jobs.setFormat(tx, job, addressColumnOf(format));
      else after = last;
      return last !== null;
    });
    return isDone;
  }

  /** Repeats `step` until it returns false. Returns whether it returned true before, that is, did something. */
  async #whileEnded(
    isStopping: () => boolean,
    { job, beforeMs }: { readonly job: number; readonly beforeMs: number },
    step: (tx: Tx) => boolean,
  ): Promise<boolean> {
    // Checked in each step: a completed job may be retried at any time.
    const work = (tx: Tx): number => Number(this.stores.jobs.hasEndedBefore(job, beforeMs) && step(tx));
    const { count } = await inSteps(() => this.runtime.db.commit(work), { isStopping });
    return count > 0;
  }
}

/** The format of an export that has the address as its only uploaded column. */
const addressColumnOf = (format: ResultsFormat): ResultsFormat => {
  const name = format.header?.[format.column];
  return { ...format, header: name === undefined ? null : [name], column: 0, width: 1, titles: [] };
};

/** Addresses counted, and reset, at once, so that a long list does not block other work. */
const COUNTED_AT_ONCE = 20_000;
const RESET_AT_ONCE = 2_000;

const isUnsettled = (subStatus: string): boolean => UNSETTLED.some((one) => one === subStatus);

/** Counts the unsettled addresses of a job. */
export const countUnsettled = async (
  lists: Pick<ListStore, "countUnsettled">,
  { number, addressesTotal }: Pick<JobRow, "number" | "addressesTotal">,
): Promise<number> => {
  let count = 0;
  for (let from = 0; from < addressesTotal; from += COUNTED_AT_ONCE) {
    count += lists.countUnsettled(number, from, from + COUNTED_AT_ONCE);
    await nextTurn();
  }
  return count;
};

/**
 * Verifies the unsettled addresses of a completed job again. One transaction holds the credits, queues the job and marks it
 * as resetting; the old results are then removed in steps, and a crash in between continues from the mark.
 */
export const createJobRetry = (
  { db, clock }: Runtime,
  { jobs, lists, credits }: BulkStores,
  usage = new UsageStore(db),
) => ({
  /** Queues a job again. A refusal is returned, with nothing written. `addresses`: as counted in the round of `counted`. */
  begin(tx: Tx, counted: JobRow, addresses: number): AppError | null {
    const job = jobs.get(counted.number);
    if (job?.round !== counted.round) return conflict("Another request is retrying this job.");
    if (job.status !== "completed") return conflict(`Only a completed job can be retried; this one is ${job.status}.`);
    if (addresses === 0) return conflict("There is nothing to retry: every address of this job has a settled result.");
    const reference = holdReference({ ...job, round: job.round + 1 });
    const move = { accountId: job.accountId, reference, atMs: clock.nowMs() };
    const held = credits[job.mode].hold(tx, move, addresses);
    if (!held.ok) return insufficientCredits(held.error);
    const counts = jobs.counts(job.number).filter(({ subStatus }) => isUnsettled(subStatus));
    const rows = counts.reduce((sum, one) => sum + one.rows, 0);
    jobs.queueAgain(tx, job.number, { subStatuses: UNSETTLED, rows, addresses });
    return null;
  },

  /** Removes the old results; safe to repeat after a crash. False when the job was deleted. */
  async reset(number: number, isStopping: () => boolean): Promise<boolean> {
    const total = jobs.get(number)?.addressesTotal ?? 0;
    for (let from = 0; from < total; from += RESET_AT_ONCE) {
      const job = jobs.get(number);
      if (isStopping() || job?.isResetting !== true) return false;
      await db.commit((tx) => reopenSome(tx, { lists, usage }, job, from));
      await nextTurn();
    }
    await db.commit((tx) => jobs.endReset(tx, number));
    return true;
  },
});

interface Reopening {
  readonly lists: ListStore;
  readonly usage: UsageStore;
}

/** In the usage an address counts once, with its latest result. Earlier charges stay. */
const reopenSome = (tx: Tx, { lists, usage }: Reopening, job: JobRow, from: number): void => {
  const { number, accountId, keyId, mode } = job;
  for (const { subStatus, day, addresses } of lists.reopen(tx, number, from, from + RESET_AT_ONCE)) {
    if (isCountedBefore(job)) continue;
    const removed = { subStatus, verdict: VERDICT_OF[subStatus], verifications: -addresses, credits: 0 };
    usage.add(tx, { accountId, keyId, mode, source: "list", day, ...removed });
  }
};

const conflict = (message: string): AppError => new AppError("conflict", { message });
