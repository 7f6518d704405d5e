import type { JobRow } from "./job-store.ts";

interface OfJob {
  readonly job: JobRow;
}

/** Jobs verified at a time: each keeps a queue in memory (4 bytes per address and more). The others wait as rows. */
export const ACTIVE_JOBS_MAX = 50;
/** An account may have this many times as many jobs as places are free, so that a list of another account starts at once: at most 40. */
const TIMES_FREE = 4;

/** How many addresses of each job may be under way: the accounts share the window equally, and their jobs their part of it. */
export const windowShares = (jobs: readonly OfJob[], window: number): ((one: OfJob) => number) => {
  const ofAccount = Map.groupBy(jobs, ({ job }) => job.accountId);
  const accountMax = window / Math.max(1, ofAccount.size);
  return ({ job }) => Math.max(1, Math.floor(accountMax / (ofAccount.get(job.accountId)?.length ?? 1)));
};

/** The oldest waiting job of the account with the fewest active ones; undefined while that account has its share. */
export const nextToBegin = <T extends OfJob>(waiting: readonly T[], active: readonly OfJob[]): T | undefined => {
  const ofAccount = Map.groupBy(active, ({ job }) => job.accountId);
  const activeOf = ({ job }: OfJob): number => ofAccount.get(job.accountId)?.length ?? 0;
  const [first] = waiting.toSorted((a, b) => activeOf(a) - activeOf(b));
  const free = ACTIVE_JOBS_MAX - active.length;
  return first !== undefined && activeOf(first) < TIMES_FREE * free ? first : undefined;
};
