import { createRetryHeap } from "./retry-heap.ts";

/** Domains share so many buckets by their hash: enough that two big ones seldom meet. */
export const BUCKETS = 4096;
/** Addresses of a bucket under way at a time: some connections' worth, and no more than a slow domain may hold up. */
export const PER_BUCKET_MAX = 64;
/** Before anything is known of a bucket's mail hosts. */
export const FIRST_PER_BUCKET_MAX = 4;

/** Which bucket an address falls into: that of its domain. */
export const bucketOf = (normalizedEmail: string): number =>
  Number(Bun.hash.wyhash(normalizedEmail.slice(normalizedEmail.lastIndexOf("@") + 1)) & 0xfffn);

/** An address that was taken to be worked on; to be given back with `release`. */
export interface Taken {
  readonly position: number;
  readonly bucket: number;
  /** Whose hosts it was counted for, as far as that was known when it was taken. */
  readonly group: string | null;
}

export interface AddressQueueOptions {
  /** Addresses whose mail hosts belong together (a provider) under way at a time. */
  readonly perGroupMax: number;
}

/** First in, first out; without the cost of moving all others at each step. */
interface Line {
  readonly positions: number[];
  next: number;
}

const leftIn = ({ positions, next }: Line): number => positions.length - next;

const takeFirst = (line: Line): number | undefined => {
  const position = line.positions[line.next++];
  if (leftIn(line) <= 0) line.positions.length = line.next = 0;
  return position;
};

interface Bucket {
  /** Not yet tried. */
  readonly fresh: Line;
  /** To be tried again by now. */
  readonly due: Line;
  underWay: number;
  group: string | null;
  isKnown: boolean;
  isQueued: boolean;
}

const isEmpty = ({ due, fresh }: Bucket): boolean => leftIn(due) + leftIn(fresh) === 0;

/**
 * In which order the addresses of a job are worked on: round and round its domains, with a ceiling for each domain and,
 * once it is known, for each provider of mail hosts, so that a slow one holds nobody up. Retries come at their time,
 * before what is fresh of their domain. Everything is in memory and can be made again from the database at any time.
 */
export const createAddressQueue = ({ perGroupMax }: AddressQueueOptions) => {
  const buckets = new Map<number, Bucket>();
  const bucketOfRetry = new Map<number, number>();
  const retries = createRetryHeap();
  const groups = new Map<string, number>();
  /** Buckets that wait for a place of their full group, in the order in which they came. */
  const full = new Map<string, Set<number>>();
  let ring: number[] = [];
  let ringAt = 0;
  let ready = 0;
  let underWay = 0;

  const bucketAt = (number: number): Bucket => {
    const known = buckets.get(number);
    if (known !== undefined) return known;
    const [fresh, due]: [Line, Line] = [
      { positions: [], next: 0 },
      { positions: [], next: 0 },
    ];
    const bucket = { fresh, due, underWay: 0, group: null, isKnown: false, isQueued: false };
    buckets.set(number, bucket);
    return bucket;
  };

  const queue = (number: number, bucket: Bucket): void => {
    if (bucket.isQueued || isEmpty(bucket)) return;
    bucket.isQueued = true;
    ring.push(number);
  };

  const shift = (): number | undefined => {
    const number = ring[ringAt];
    if (number === undefined) return undefined;
    ringAt++;
    if (ringAt > BUCKETS) {
      ring = ring.slice(ringAt);
      ringAt = 0;
    }
    return number;
  };

  const count = (number: number, position: number): Taken => {
    const bucket = bucketAt(number);
    const { group } = bucket;
    bucket.underWay++;
    underWay++;
    if (group !== null) groups.set(group, (groups.get(group) ?? 0) + 1);
    return { position, bucket: number, group };
  };

  const isFull = (bucket: Bucket): boolean =>
    bucket.underWay >= (bucket.isKnown ? PER_BUCKET_MAX : FIRST_PER_BUCKET_MAX);

  /** The bucket waits for its group; true when that is full. */
  const waitsForGroup = (number: number, { group }: Bucket): boolean => {
    if (group === null || (groups.get(group) ?? 0) < perGroupMax) return false;
    const waiting = full.get(group) ?? new Set();
    full.set(group, waiting.add(number));
    return true;
  };

  /**
   * A place of the group is free: of the buckets that wait for one, the first that can use it comes into the ring. Only
   * one, so that a release costs the same however many wait.
   */
  const callFor = (group: string): void => {
    const waiting = full.get(group);
    if (waiting === undefined) return;
    for (const number of waiting) {
      waiting.delete(number);
      const bucket = bucketAt(number);
      if (isFull(bucket) || isEmpty(bucket)) continue;
      queue(number, bucket);
      break;
    }
    if (waiting.size === 0) full.delete(group);
  };

  /** The bucket's hosts are those of the group from now on: what it was called for is for another of its former group. */
  const move = (number: number, bucket: Bucket, group: string): void => {
    if (bucket.group === group) return;
    if (bucket.group !== null) {
      full.get(bucket.group)?.delete(number);
      callFor(bucket.group);
    }
    bucket.group = group;
  };

  /** The bucket's next address, unless a ceiling forbids it. */
  const takeFrom = (number: number, bucket: Bucket): Taken | null => {
    if (isFull(bucket) || waitsForGroup(number, bucket)) return null;
    const position = takeFirst(leftIn(bucket.due) > 0 ? bucket.due : bucket.fresh);
    if (position === undefined) return null;
    ready--;
    const taken = count(number, position);
    queue(number, bucket);
    return taken;
  };

  /** Those whose time has come stand before the fresh addresses of their domain. */
  const queueDue = (nowMs: number): void => {
    for (let retry = retries.take(nowMs); retry !== null; retry = retries.take(nowMs)) {
      const number = bucketOfRetry.get(retry) ?? 0;
      bucketOfRetry.delete(retry);
      const bucket = bucketAt(number);
      bucket.due.positions.push(retry);
      ready++;
      queue(number, bucket);
    }
  };

  return {
    /** An address that nobody has tried yet. */
    add(position: number, bucket: number): void {
      const into = bucketAt(bucket);
      into.fresh.positions.push(position);
      ready++;
      queue(bucket, into);
    },
    /** An address to be tried again, then. */
    addRetry(position: number, bucket: number, dueAtMs: number): void {
      bucketOfRetry.set(position, bucket);
      retries.add(dueAtMs, position);
    },

    /** The next address, or null while nothing is due or all that is left would go beyond a ceiling. */
    take(nowMs: number): Taken | null {
      queueDue(nowMs);
      for (let number = shift(); number !== undefined; number = shift()) {
        const bucket = bucketAt(number);
        bucket.isQueued = false;
        const taken = takeFrom(number, bucket);
        if (taken !== null) return taken;
      }
      return null;
    },

    /** Nobody works on the address any more. `group` is whose hosts its domain turned out to have; null: unknown. */
    release({ bucket: number, group: counted }: Taken, group: string | null): void {
      const bucket = bucketAt(number);
      bucket.underWay--;
      underWay--;
      bucket.isKnown = true;
      if (group !== null) move(number, bucket, group);
      if (counted !== null) {
        const left = (groups.get(counted) ?? 1) - 1;
        if (left === 0) groups.delete(counted);
        else groups.set(counted, left);
        callFor(counted);
      }
      queue(number, bucket);
    },

    underWay: (): number => underWay,
    /** Addresses that could be begun but for the ceilings. */
    ready: (): number => ready,
    /** Addresses that wait for their time. */
    retries: (): number => retries.size(),
    nextRetryMs: (): number | null => retries.nextMs(),
    latestRetryMs: (): number | null => retries.latestMs(),
  };
};

export type AddressQueue = ReturnType<typeof createAddressQueue>;
