import type { JobRow } from "./job-store.ts";

interface OfJob {
  readonly job: JobRow;
}

/** Jobs worked on at a time: each has its plan in memory (4 bytes an address and more). The others wait as rows. */
export const ACTIVE_JOBS_MAX = 50;
/** An account may have so many times the places that it leaves free, 40 alone: a list of another account begins at once. */
const TIMES_FREE = 4;

/** How many addresses of each job may be under way: the accounts have equal parts of the window, and their jobs equal parts of those. */
export const windowShares = (busy: readonly OfJob[], window: number): ((one: OfJob) => number) => {
  const ofAccount = Map.groupBy(busy, ({ job }) => job.accountId);
  const accountMax = window / Math.max(1, ofAccount.size);
  return ({ job }) => Math.max(1, Math.floor(accountMax / (ofAccount.get(job.accountId)?.length ?? 1)));
};

/** The oldest waiting job of the account that has the fewest under way; undefined while that has its share of the places. */
export const nextToBegin = (waiting: readonly JobRow[], active: readonly OfJob[]): JobRow | undefined => {
  const ofAccount = Map.groupBy(active, ({ job }) => job.accountId);
  const underWay = ({ accountId }: JobRow): number => ofAccount.get(accountId)?.length ?? 0;
  const [first] = waiting.toSorted((a, b) => underWay(a) - underWay(b));
  const free = ACTIVE_JOBS_MAX - active.length;
  return first !== undefined && underWay(first) < TIMES_FREE * free ? first : undefined;
};
