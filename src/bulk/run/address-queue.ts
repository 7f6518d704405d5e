import type { Clock } from "../../foundation/base/clock.ts";
import { forecast, type JobForecast, Throughput } from "../results/job-object.ts";
import type { ListStore } from "../results/list-store.ts";
import type { JobRow } from "../results/job-store.ts";

/** Domains are hashed into this many buckets: two large ones rarely share one. */
export const BUCKETS = 4096;
/** Concurrent addresses of a bucket: several connections' worth, and the most that a slow domain may occupy. */
export const PER_BUCKET_MAX = 64;
/** The same before the mail hosts of a bucket are known. */
export const FIRST_PER_BUCKET_MAX = 4;

/** The bucket of an address, by its domain. */
export const bucketOf = (normalizedEmail: string): number =>
  Number(Bun.hash.wyhash(normalizedEmail.slice(normalizedEmail.lastIndexOf("@") + 1)) & 0xfffn);

/** An address taken from the queue; must be returned with `release`. */
export interface Taken {
  readonly position: number;
  readonly bucket: number;
  /** The provider that it was counted for; null when that was unknown. */
  readonly group: string | null;
}

/** First in, first out, without moving the remaining entries. */
class Fifo {
  readonly #positions: number[] = [];
  #next: number = 0;

  get size(): number {
    return this.#positions.length - this.#next;
  }

  push(position: number): void {
    this.#positions.push(position);
  }

  shift(): number | undefined {
    const position = this.#positions[this.#next++];
    if (this.size <= 0) this.#positions.length = this.#next = 0;
    return position;
  }
}

/** The addresses of one or more domains. */
class Bucket {
  /** Not yet tried. */
  readonly fresh = new Fifo();
  /** Retries that are due. */
  readonly due = new Fifo();
  underWay: number = 0;
  group: string | null = null;
  hasFinishedOne: boolean = false;
  isQueued: boolean = false;

  constructor(readonly number: number) {}

  get isEmpty(): boolean {
    return this.due.size + this.fresh.size === 0;
  }

  get isFull(): boolean {
    return this.underWay >= (this.hasFinishedOne ? PER_BUCKET_MAX : FIRST_PER_BUCKET_MAX);
  }
}

/**
 * The order in which the addresses of a job are verified: round-robin over its domains, with a limit for each domain and,
 * once known, for each provider of mail hosts, so that a slow one does not block the others. Due retries precede the fresh
 * addresses of their domain. Kept in memory; rebuilt from the database after a restart.
 */
export class AddressQueue {
  readonly #buckets = new Map<number, Bucket>();
  readonly #retries = new RetryHeap();
  readonly #bucketOfRetry = new Map<number, number>();
  /** Addresses under way of each group. */
  readonly #groups = new Map<string, number>();
  /** Buckets that wait for a free slot of their group, in order of arrival. */
  readonly #waiting = new Map<string, Set<Bucket>>();
  #ring: Bucket[] = [];
  #ringAt: number = 0;
  #ready = 0;
  #underWay = 0;

  /** `perGroupMax`: concurrent addresses of one provider. */
  constructor(readonly perGroupMax: number) {}

  get underWay(): number {
    return this.#underWay;
  }

  /** Addresses that could start now, limits aside. */
  get ready(): number {
    return this.#ready;
  }

  /** Addresses whose retry is not due yet. */
  get retries(): number {
    return this.#retries.size;
  }

  get nextRetryMs(): number | null {
    return this.#retries.nextMs;
  }

  get latestRetryMs(): number | null {
    return this.#retries.latestMs;
  }

  /** Adds an address that has not been tried. */
  add(position: number, bucket: number): void {
    const into = this.#bucketAt(bucket);
    into.fresh.push(position);
    this.#ready++;
    this.#enqueue(into);
  }

  /** Adds an address that is to be tried again at a time. */
  addRetry(position: number, bucket: number, dueAtMs: number): void {
    this.#bucketOfRetry.set(position, bucket);
    this.#retries.add(dueAtMs, position);
  }

  /** The next address; null while nothing is due or every limit is reached. */
  take(nowMs: number): Taken | null {
    this.#queueDueRetries(nowMs);
    for (let bucket = this.#shift(); bucket !== undefined; bucket = this.#shift()) {
      bucket.isQueued = false;
      const taken = this.#takeFrom(bucket);
      if (taken !== null) return taken;
    }
    return null;
  }

  /** Frees the slot of an address. `group`: the provider of its domain's hosts, as found out; null when unknown. */
  release({ bucket: number, group: counted }: Taken, group: string | null): void {
    const bucket = this.#bucketAt(number);
    bucket.underWay--;
    this.#underWay--;
    bucket.hasFinishedOne = true;
    if (group !== null) this.#setGroup(bucket, group);
    if (counted !== null) {
      const left = (this.#groups.get(counted) ?? 1) - 1;
      if (left === 0) this.#groups.delete(counted);
      else this.#groups.set(counted, left);
      this.#resumeOne(counted);
    }
    this.#enqueue(bucket);
  }

  #bucketAt(number: number): Bucket {
    const bucket = this.#buckets.get(number) ?? new Bucket(number);
    this.#buckets.set(number, bucket);
    return bucket;
  }

  #enqueue(bucket: Bucket): void {
    if (bucket.isQueued || bucket.isEmpty) return;
    bucket.isQueued = true;
    this.#ring.push(bucket);
  }

  #shift(): Bucket | undefined {
    const bucket = this.#ring[this.#ringAt];
    if (bucket === undefined) return undefined;
    if (++this.#ringAt > BUCKETS) {
      this.#ring = this.#ring.slice(this.#ringAt);
      this.#ringAt = 0;
    }
    return bucket;
  }

  #queueDueRetries(nowMs: number): void {
    for (let position = this.#retries.take(nowMs); position !== null; position = this.#retries.take(nowMs)) {
      const bucket = this.#bucketAt(this.#bucketOfRetry.get(position) ?? 0);
      this.#bucketOfRetry.delete(position);
      bucket.due.push(position);
      this.#ready++;
      this.#enqueue(bucket);
    }
  }

  #takeFrom(bucket: Bucket): Taken | null {
    if (bucket.isFull || this.#waitsForGroup(bucket)) return null;
    const position = (bucket.due.size > 0 ? bucket.due : bucket.fresh).shift();
    if (position === undefined) return null;
    const { group, number } = bucket;
    this.#ready--;
    bucket.underWay++;
    this.#underWay++;
    if (group !== null) this.#groups.set(group, (this.#groups.get(group) ?? 0) + 1);
    this.#enqueue(bucket);
    return { position, bucket: number, group };
  }

  /** Whether the group of a bucket has no free slot; the bucket then waits for one. */
  #waitsForGroup(bucket: Bucket): boolean {
    const { group } = bucket;
    if (group === null || (this.#groups.get(group) ?? 0) < this.perGroupMax) return false;
    this.#waiting.set(group, (this.#waiting.get(group) ?? new Set()).add(bucket));
    return true;
  }

  /** Queues the first waiting bucket that can use a free slot of the group. Only one, so that the cost does not grow with the number that wait. */
  #resumeOne(group: string): void {
    const waiting = this.#waiting.get(group);
    if (waiting === undefined) return;
    for (const bucket of waiting) {
      waiting.delete(bucket);
      if (bucket.isFull || bucket.isEmpty) continue;
      this.#enqueue(bucket);
      break;
    }
    if (waiting.size === 0) this.#waiting.delete(group);
  }

  /** A bucket that changes its group passes the slot that it waited for to another one. */
  #setGroup(bucket: Bucket, group: string): void {
    if (bucket.group === group) return;
    if (bucket.group !== null) {
      this.#waiting.get(bucket.group)?.delete(bucket);
      this.#resumeOne(bucket.group);
    }
    bucket.group = group;
  }
}

/** Addresses by the time of their retry, the earliest first: a binary heap in two arrays of numbers. */
export class RetryHeap {
  readonly #times: number[] = [];
  readonly #positions: number[] = [];
  #latestMs = 0;

  get size(): number {
    return this.#times.length;
  }

  /** The earliest time; null when the heap is empty. */
  get nextMs(): number | null {
    return this.#times[0] ?? null;
  }

  /** The latest time added since the heap was last empty; null when it is empty. */
  get latestMs(): number | null {
    return this.size === 0 ? null : this.#latestMs;
  }

  add(dueAtMs: number, position: number): void {
    this.#latestMs = this.size === 0 ? dueAtMs : Math.max(this.#latestMs, dueAtMs);
    this.#times.push(dueAtMs);
    this.#positions.push(position);
    for (let at = this.size - 1, parent = (at - 1) >> 1; at > 0; at = parent, parent = (at - 1) >> 1) {
      if (this.#timeAt(at) >= this.#timeAt(parent)) return;
      this.#swap(at, parent);
    }
  }

  /** Removes and returns the earliest position that is due; null when none is. */
  take(nowMs: number): number | null {
    const position = this.#positions[0];
    if (position === undefined || this.#timeAt(0) > nowMs) return null;
    this.#swap(0, this.size - 1);
    this.#times.pop();
    this.#positions.pop();
    this.#sinkFirst();
    return position;
  }

  #sinkFirst(): void {
    for (let at = 0; ;) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      const smaller = this.#timeAt(right) < this.#timeAt(left) ? right : left;
      if (this.#timeAt(smaller) >= this.#timeAt(at)) return;
      this.#swap(at, smaller);
      at = smaller;
    }
  }

  #timeAt(at: number): number {
    return this.#times[at] ?? Number.POSITIVE_INFINITY;
  }

  #swap(a: number, b: number): void {
    [this.#times[a], this.#times[b]] = [this.#timeAt(b), this.#timeAt(a)];
    [this.#positions[a], this.#positions[b]] = [this.#positions[b] ?? 0, this.#positions[a] ?? 0];
  }
}

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
