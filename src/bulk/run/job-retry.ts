import { nextTurn } from "../../foundation/base/clock.ts";
import { AppError } from "../../foundation/base/errors.ts";
import { insufficientCredits } from "../../accounts/billing/store.ts";
import type { Tx } from "../../foundation/db/open.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import { UsageStore } from "../../accounts/usage/usage-store.ts";
import { UNSETTLED, VERDICT_OF } from "../../verify/result.ts";
import { holdReference, type JobRow } from "../results/job-store.ts";
import { type BulkStores, isCountedBefore } from "./job-writer.ts";
import type { ListStore } from "../results/list-store.ts";

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
