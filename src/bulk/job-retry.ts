import { type Clock, nextTurn } from "../base/clock.ts";
import { AppError } from "../base/errors.ts";
import { insufficientCredits } from "../billing/insufficient-credits.ts";
import type { Ledger } from "../billing/store.ts";
import type { Db, Tx } from "../db/open.ts";
import { UNSETTLED } from "../verify/result.ts";
import type { ListStore } from "./list-store.ts";
import { holdReference, type JobRow, type JobStore } from "./job-store.ts";

export interface JobRetryDeps {
  readonly db: Db;
  readonly jobs: JobStore;
  readonly lists: ListStore;
  readonly ledger: Ledger;
  readonly clock: Clock;
}

/** Addresses counted, and opened again, at one go: a list of a million holds nobody up. */
const COUNTED_AT_ONCE = 20_000;
const REOPENED_AT_ONCE = 2_000;

const isUnsettled = (subStatus: string): boolean => UNSETTLED.some((one) => one === subStatus);

/**
 * Checks again what a finished job left unsettled. One transaction holds the credits and queues the job; the results of
 * the addresses are then removed in steps, before the job is worked on. A crash in between leaves a mark at the job.
 */
export const createJobRetry = ({ db, jobs, lists, ledger, clock }: JobRetryDeps) => ({
  /** How many addresses of a job are not settled. */
  async count({ number, addressesTotal }: JobRow): Promise<number> {
    let count = 0;
    for (let from = 0; from < addressesTotal; from += COUNTED_AT_ONCE) {
      count += lists.countUnsettled(number, from, from + COUNTED_AT_ONCE);
      await nextTurn();
    }
    return count;
  },

  /** Queues a job again for so many addresses; a refusal comes back as a value, with nothing written. */
  begin(tx: Tx, number: number, addresses: number): AppError | null {
    const job = jobs.get(number);
    if (job?.status !== "completed")
      return new AppError("conflict", { message: `Only a completed job can be retried: it is ${job?.status}.` });
    if (addresses === 0) return new AppError("conflict", { message: "Every address of the job is settled." });
    const next = { ...job, round: job.round + 1 };
    const move = { accountId: job.accountId, reference: holdReference(next), atMs: clock.nowMs() };
    const held = job.mode === "live" ? ledger.hold(tx, move, addresses) : null;
    if (held !== null && !held.ok) return insufficientCredits(held.error);
    const counts = jobs.counts(number).filter(({ subStatus }) => isUnsettled(subStatus));
    const rows = counts.reduce((sum, one) => sum + one.rows, 0);
    jobs.queueAgain(tx, number, { subStatuses: UNSETTLED, rows, addresses });
    return null;
  },

  /** Opens the addresses again; begins anew after a crash, which changes nothing. False when the job was deleted. */
  async reset(number: number, isStopping: () => boolean): Promise<boolean> {
    const total = jobs.get(number)?.addressesTotal ?? 0;
    for (let from = 0; from < total; from += REOPENED_AT_ONCE) {
      if (isStopping() || jobs.get(number)?.isResetting !== true) return false;
      await db.commit((tx) => lists.reopen(tx, number, from, from + REOPENED_AT_ONCE));
      await nextTurn();
    }
    await db.commit((tx) => jobs.endReset(tx, number));
    return true;
  },
});
