import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import {
  RetryHeap,
  bucketOf,
  AddressQueue,
  FIRST_PER_BUCKET_MAX,
  PER_BUCKET_MAX,
  type Taken,
} from "./address-queue.ts";
import { AddressIndex } from "../arrival/intake.ts";

const NOW = 1_000;
const takeAll = (queue: AddressQueue, nowMs = NOW): Taken[] => {
  const all: Taken[] = [];
  for (let taken = queue.take(nowMs); taken !== null; taken = queue.take(nowMs)) all.push(taken);
  return all;
};

describe("the address queue", () => {
  test("serves the domains round-robin, whatever the order of the list", () => {
    const queue = new AddressQueue(100);
    for (let position = 0; position < 9; position++) queue.add(position, Math.floor(position / 3));
    expect(takeAll(queue).map(({ position }) => position)).toEqual([0, 3, 6, 1, 4, 7, 2, 5, 8]);
  });

  test("starts few addresses of a domain, and more after its first result", () => {
    const queue = new AddressQueue(1_000);
    for (let position = 0; position < 200; position++) queue.add(position, 7);
    const first = takeAll(queue);
    expect(first).toHaveLength(FIRST_PER_BUCKET_MAX);
    for (const taken of first.slice(0, 1)) queue.release(taken, "provider");
    expect(takeAll(queue)).toHaveLength(PER_BUCKET_MAX - FIRST_PER_BUCKET_MAX + 1);
    expect(queue.underWay).toBe(PER_BUCKET_MAX);
  });

  test("limits the domains of one provider together, and continues when one of them finishes", () => {
    const queue = new AddressQueue(10);
    for (let bucket = 0; bucket < 20; bucket++) for (let n = 0; n < 5; n++) queue.add(bucket * 5 + n, bucket);
    const known = Array.from({ length: 20 }, () => queue.take(NOW)).filter((taken) => taken !== null);
    for (const taken of known) queue.release(taken, "slow provider");
    const slow = takeAll(queue);
    expect(slow).toHaveLength(10);
    for (const taken of slow.slice(0, 2)) queue.release(taken, "slow provider");
    expect(takeAll(queue)).toHaveLength(2);
    queue.add(1_000, 900);
    expect(takeAll(queue).map(({ position }) => position)).toEqual([1_000]);
  });

  test("starts one waiting domain for each that finishes, in order of arrival", () => {
    const queue = new AddressQueue(2);
    for (let bucket = 0; bucket < 6; bucket++) for (let n = 0; n < 2; n++) queue.add(bucket * 2 + n, bucket);
    const first = Array.from({ length: 6 }, () => queue.take(NOW)).filter((taken) => taken !== null);
    for (const taken of first) queue.release(taken, "provider");
    const order: number[] = [];
    const underWay = takeAll(queue);
    for (let taken = underWay.shift(); taken !== undefined; taken = underWay.shift()) {
      order.push(taken.bucket);
      queue.release(taken, "provider");
      underWay.push(...takeAll(queue));
      expect(underWay.length).toBeLessThanOrEqual(2);
    }
    expect(order).toEqual([0, 1, 2, 3, 4, 5]);
  });

  describe("gives the free slot of a provider to a domain that can use it", () => {
    const [X, C, Y, Z] = [0, 1, 2, 3];
    let serial = 0;
    /** A queue in which these domains are known to be the provider's. */
    const planOf = (perGroupMax: number) => {
      const queue = new AddressQueue(perGroupMax);
      const add = (...buckets: number[]) => {
        for (const bucket of buckets) queue.add(serial++, bucket);
      };
      const take = () => takeAll(queue).map(({ bucket }) => bucket);
      add(X, C, Y, Z);
      for (const taken of takeAll(queue)) queue.release(taken, "provider");
      return { queue, add, take };
    };

    test("not to one without addresses", () => {
      const { queue, add, take } = planOf(2);
      add(X, C);
      const underWay = takeAll(queue);
      add(Y, Z, X);
      expect(take()).toEqual([]);
      for (const taken of underWay) queue.release(taken, "provider");
      const [first, ...others] = takeAll(queue);
      expect([first?.bucket, ...others.map(({ bucket }) => bucket)]).toEqual([Y, X]);
      if (first !== undefined) queue.release(first, "provider");
      expect(take()).toEqual([Z]);
    });

    test("not to one at its own limit", () => {
      const { queue, add, take } = planOf(PER_BUCKET_MAX + 1);
      add(...Array<number>(PER_BUCKET_MAX - 1).fill(X));
      expect(take()).toHaveLength(PER_BUCKET_MAX - 1);
      add(C, C);
      const ofC = takeAll(queue);
      add(Y, Z, X);
      expect(take()).toEqual([]);
      add(X);
      for (const taken of ofC) queue.release(taken, "provider");
      const [ofX, ofY] = takeAll(queue);
      expect([ofX?.bucket, ofY?.bucket]).toEqual([X, Y]);
      if (ofY !== undefined) queue.release(ofY, "provider");
      expect(take()).toEqual([Z]);
    });

    test("not to one that turns out to belong to another provider", () => {
      const { queue, add, take } = planOf(1);
      const moved = 9;
      add(moved, moved);
      const [first, second] = takeAll(queue);
      if (first !== undefined) queue.release(first, "provider");
      add(C);
      const [ofC] = takeAll(queue);
      add(moved, Z);
      expect(take()).toEqual([]);
      if (ofC !== undefined) queue.release(ofC, "provider");
      if (second !== undefined) queue.release(second, "other provider");
      expect(take()).toEqual([moved, Z]);
    });
  });

  test("returns due retries of a domain before its fresh addresses", () => {
    const queue = new AddressQueue(10);
    queue.add(1, 2);
    queue.addRetry(2, 2, NOW + 10);
    queue.addRetry(3, 2, NOW - 10);
    expect(takeAll(queue).map(({ position }) => position)).toEqual([3, 1]);
    expect(queue.nextRetryMs).toBe(NOW + 10);
    expect(takeAll(queue, NOW + 10).map(({ position }) => position)).toEqual([2]);
    expect(queue.nextRetryMs).toBeNull();
  });

  test("applies the limit of a domain to retries, too", () => {
    const queue = new AddressQueue(10_000);
    for (let position = 0; position < 1_000; position++) queue.addRetry(position, 1, NOW);
    queue.add(1_000, 2);
    expect(takeAll(queue).map(({ bucket }) => bucket)).toEqual([2, ...Array(FIRST_PER_BUCKET_MAX).fill(1)]);
  });

  test("in any sequence of calls, returns every address exactly once, respects the limits and leaves no slot unused", () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 25 });
    fc.assert(
      fc.property(sizes, fc.array(fc.nat(), { maxLength: 400 }), (counts, picks) => {
        const buckets = counts.flatMap((count, bucket) => Array<number>(count).fill(bucket));
        const queue = new AddressQueue(3);
        for (const [position, bucket] of buckets.entries()) queue.add(position, bucket);
        const seen: number[] = [];
        const groupOf = new Map<number, string>();
        let underWay: Taken[] = [];
        const release = (taken: Taken, pick: number) => {
          underWay = underWay.filter((other) => other !== taken);
          // Now and then a domain moves to another provider.
          const group = (taken.bucket % 2 === 0) === pick % 7 > 0 ? "one" : "other";
          groupOf.set(taken.bucket, group);
          queue.release(taken, group);
        };
        const mayBegin = (bucket: number): boolean => {
          const group = groupOf.get(bucket);
          const max = group === undefined ? FIRST_PER_BUCKET_MAX : PER_BUCKET_MAX;
          if (underWay.filter((taken) => taken.bucket === bucket).length >= max) return false;
          return group === undefined || underWay.filter((taken) => taken.group === group).length < 3;
        };
        const take = () => {
          for (const taken of takeAll(queue)) {
            seen.push(taken.position);
            underWay.push(taken);
          }
          const counted = Map.groupBy(underWay, ({ group }) => group);
          for (const [group, all] of counted) if (group !== null) expect(all.length).toBeLessThanOrEqual(3);
          const left = new Set(buckets.filter((_, position) => !seen.includes(position)));
          expect([...left].filter(mayBegin)).toEqual([]);
        };
        take();
        for (const pick of picks) {
          const taken = underWay[pick % Math.max(1, underWay.length)];
          if (taken !== undefined) release(taken, pick);
          if (pick % 3 === 0) take();
        }
        take();
        for (let left = underWay[0]; left !== undefined; left = underWay[0]) {
          release(left, seen.length);
          take();
        }
        expect(seen.toSorted((a, b) => a - b)).toEqual(buckets.map((_, position) => position));
        expect([queue.ready, queue.underWay]).toEqual([0, 0]);
      }),
    );
  });

  test("addresses of a domain have the same bucket", () => {
    expect(bucketOf("a@x.example")).toBe(bucketOf("b@x.example"));
    expect(bucketOf('"a@y"@x.example')).toBe(bucketOf("b@x.example"));
  });
});

test("the retry heap returns what is due, earliest first", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 50 })), fc.integer({ min: 0, max: 60 }), (times, nowMs) => {
      const queue = new RetryHeap();
      for (const [position, dueAtMs] of times.entries()) queue.add(dueAtMs, position);
      const taken: number[] = [];
      for (let position = queue.take(nowMs); position !== null; position = queue.take(nowMs))
        taken.push(times[position] ?? -1);
      expect(taken).toEqual(times.filter((time) => time <= nowMs).toSorted((a, b) => a - b));
      const left = times.filter((time) => time > nowMs);
      expect(queue.nextMs).toBe(left.length === 0 ? null : Math.min(...left));
      expect(queue.latestMs).toBe(left.length === 0 ? null : Math.max(...left));
    }),
  );
});

test("the latest time of the retry heap is that of the retries since it was last empty", () => {
  const heap = new RetryHeap();
  heap.add(50, 1);
  heap.add(40, 2);
  expect(heap.latestMs).toBe(50);
  while (heap.take(60) !== null);
  expect([heap.size, heap.nextMs, heap.latestMs]).toEqual([0, null, null]);
  heap.add(45, 3);
  expect(heap.latestMs).toBe(45);
});

test("an address index numbers addresses by first occurrence, like a map", () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ maxLength: 3 }), { maxLength: 3_000 }),
      fc.bigInt({ min: 0n, max: 2n ** 60n }),
      (texts, seed) => {
        const positions = new AddressIndex(texts.length, seed);
        const known = new Map<string, number>();
        for (const text of texts) {
          const isNew = !known.has(text);
          if (isNew) known.set(text, known.size);
          expect(positions.add(text)).toEqual({ position: known.get(text) ?? -1, isNew });
        }
        expect(positions.totals.addresses).toBe(known.size - (known.has("") ? 1 : 0));
      },
    ),
  );
  const full = new AddressIndex(1, 1n);
  full.add("a");
  expect(() => full.add("b")).toThrow("more than 1 addresses");
});
