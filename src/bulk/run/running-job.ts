import type { Clock } from "../../foundation/base/clock.ts";
import { AddressQueue, bucketOf } from "./address-queue.ts";
import { forecast, type JobForecast, Throughput } from "../results/job-object.ts";
import type { ListStore } from "../results/list-store.ts";
import type { JobRow } from "../results/job-store.ts";

/** The hosts of one provider get at most this share of a job's window. */
const GROUP_SHARE = 4;
const LOADED_AT_ONCE = 2_000;

/** A job that waits or is being verified in this process. */
export class RunningJob {
  readonly job: JobRow;
  readonly throughput: Throughput;
  readonly ended = Promise.withResolvers<void>();
  readonly #perGroupMax: number;
  #queue: AddressQueue;

  constructor(job: JobRow, clock: Clock, windowMax: number) {
    this.job = job;
    this.throughput = new Throughput(clock);
    this.#perGroupMax = Math.max(1, Math.floor(windowMax / GROUP_SHARE));
    this.#queue = new AddressQueue(this.#perGroupMax);
  }

  get queue(): AddressQueue {
    return this.#queue;
  }

  /** Starts over with an empty queue; results for addresses of the old one are dropped. */
  reset(): void {
    this.#queue = new AddressQueue(this.#perGroupMax);
  }

  /** Loads some unfinished addresses behind a position. Returns where to continue; null at the end of the list. */
  load(lists: ListStore, after: number, latestRetryMs: number): number | null {
    const addresses = lists.addressesBehind(this.job.number, after, LOADED_AT_ONCE);
    for (const { position, normalizedEmail, dueAtMs, done } of addresses) {
      if (done) continue;
      const bucket = bucketOf(normalizedEmail);
      // Later than any planned retry: the system clock was set back.
      if (dueAtMs === 0 || dueAtMs > latestRetryMs) this.#queue.add(position, bucket);
      else this.#queue.addRetry(position, bucket, dueAtMs);
    }
    return addresses.length < LOADED_AT_ONCE ? null : (addresses.at(-1)?.position ?? null);
  }

  /** Whether addresses are under way or could start at this time. */
  hasWork(nowMs: number): boolean {
    const { ready, underWay, nextRetryMs } = this.#queue;
    return ready > 0 || underWay > 0 || (nextRetryMs !== null && nextRetryMs <= nowMs);
  }
}

/** Addresses of all these jobs that are being verified. */
export const addressesUnderWay = (jobs: readonly RunningJob[]): number =>
  jobs.reduce((sum, { queue }) => sum + queue.underWay, 0);

/** The forecast of an unfinished job; `running`: undefined while it waits. */
export const forecastJob = (
  { addressesTotal, addressesFinished }: JobRow,
  running: RunningJob | undefined,
  { assumedPerSecond, nowMs }: { readonly assumedPerSecond: number; readonly nowMs: number },
): JobForecast => {
  const latestMs = running?.queue.latestRetryMs ?? null;
  return forecast({
    fresh: Math.max(0, addressesTotal - addressesFinished - (running?.queue.retries ?? 0)),
    perSecond: running?.throughput.perSecond ?? null,
    assumedPerSecond,
    latestRetryMs: latestMs === null ? null : latestMs - nowMs,
  });
};

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
