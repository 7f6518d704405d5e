import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { RetryHeap } from "./address-queue.ts";
import { bucketOf, AddressQueue, FIRST_PER_BUCKET_MAX, PER_BUCKET_MAX, type Taken } from "./address-queue.ts";
import { AddressIndex } from "./address-index.ts";

const NOW = 1_000;
const takeAll = (plan: AddressQueue, nowMs = NOW): Taken[] => {
  const all: Taken[] = [];
  for (let taken = plan.take(nowMs); taken !== null; taken = plan.take(nowMs)) all.push(taken);
  return all;
};

describe("the plan", () => {
  test("goes round the domains, whatever the order of the list", () => {
    const plan = new AddressQueue(100);
    for (let position = 0; position < 9; position++) plan.add(position, Math.floor(position / 3));
    expect(takeAll(plan).map(({ position }) => position)).toEqual([0, 3, 6, 1, 4, 7, 2, 5, 8]);
  });

  test("begins few addresses of a domain, and more once its first answer is there", () => {
    const plan = new AddressQueue(1_000);
    for (let position = 0; position < 200; position++) plan.add(position, 7);
    const first = takeAll(plan);
    expect(first).toHaveLength(FIRST_PER_BUCKET_MAX);
    for (const taken of first.slice(0, 1)) plan.release(taken, "provider");
    expect(takeAll(plan)).toHaveLength(PER_BUCKET_MAX - FIRST_PER_BUCKET_MAX + 1);
    expect(plan.underWay).toBe(PER_BUCKET_MAX);
  });

  test("bounds the domains of one provider together, and goes on when one of them is done", () => {
    const plan = new AddressQueue(10);
    for (let bucket = 0; bucket < 20; bucket++) for (let n = 0; n < 5; n++) plan.add(bucket * 5 + n, bucket);
    const known = Array.from({ length: 20 }, () => plan.take(NOW)).filter((taken) => taken !== null);
    for (const taken of known) plan.release(taken, "slow provider");
    const slow = takeAll(plan);
    expect(slow).toHaveLength(10);
    for (const taken of slow.slice(0, 2)) plan.release(taken, "slow provider");
    expect(takeAll(plan)).toHaveLength(2);
    plan.add(1_000, 900);
    expect(takeAll(plan).map(({ position }) => position)).toEqual([1_000]);
  });

  test("lets one more domain begin for each that ends, in the order in which they came to wait", () => {
    const plan = new AddressQueue(2);
    for (let bucket = 0; bucket < 6; bucket++) for (let n = 0; n < 2; n++) plan.add(bucket * 2 + n, bucket);
    const first = Array.from({ length: 6 }, () => plan.take(NOW)).filter((taken) => taken !== null);
    for (const taken of first) plan.release(taken, "provider");
    const order: number[] = [];
    const underWay = takeAll(plan);
    for (let taken = underWay.shift(); taken !== undefined; taken = underWay.shift()) {
      order.push(taken.bucket);
      plan.release(taken, "provider");
      underWay.push(...takeAll(plan));
      expect(underWay.length).toBeLessThanOrEqual(2);
    }
    expect(order).toEqual([0, 1, 2, 3, 4, 5]);
  });

  describe("gives a provider's free place to a domain that can use it", () => {
    const [X, C, Y, Z] = [0, 1, 2, 3];
    let serial = 0;
    /** A plan in which these domains are known to be the provider's. */
    const planOf = (perGroupMax: number) => {
      const plan = new AddressQueue(perGroupMax);
      const add = (...buckets: number[]) => {
        for (const bucket of buckets) plan.add(serial++, bucket);
      };
      const take = () => takeAll(plan).map(({ bucket }) => bucket);
      add(X, C, Y, Z);
      for (const taken of takeAll(plan)) plan.release(taken, "provider");
      return { plan, add, take };
    };

    test("not to one that has nothing left", () => {
      const { plan, add, take } = planOf(2);
      add(X, C);
      const underWay = takeAll(plan);
      add(Y, Z, X);
      expect(take()).toEqual([]);
      for (const taken of underWay) plan.release(taken, "provider");
      const [first, ...others] = takeAll(plan);
      expect([first?.bucket, ...others.map(({ bucket }) => bucket)]).toEqual([Y, X]);
      if (first !== undefined) plan.release(first, "provider");
      expect(take()).toEqual([Z]);
    });

    test("not to one that is at its own ceiling", () => {
      const { plan, add, take } = planOf(PER_BUCKET_MAX + 1);
      add(...Array<number>(PER_BUCKET_MAX - 1).fill(X));
      expect(take()).toHaveLength(PER_BUCKET_MAX - 1);
      add(C, C);
      const ofC = takeAll(plan);
      add(Y, Z, X);
      expect(take()).toEqual([]);
      add(X);
      for (const taken of ofC) plan.release(taken, "provider");
      const [ofX, ofY] = takeAll(plan);
      expect([ofX?.bucket, ofY?.bucket]).toEqual([X, Y]);
      if (ofY !== undefined) plan.release(ofY, "provider");
      expect(take()).toEqual([Z]);
    });

    test("not to one that turns out to be another provider's", () => {
      const { plan, add, take } = planOf(1);
      const moved = 9;
      add(moved, moved);
      const [first, second] = takeAll(plan);
      if (first !== undefined) plan.release(first, "provider");
      add(C);
      const [ofC] = takeAll(plan);
      add(moved, Z);
      expect(take()).toEqual([]);
      if (ofC !== undefined) plan.release(ofC, "provider");
      if (second !== undefined) plan.release(second, "other provider");
      expect(take()).toEqual([moved, Z]);
    });
  });

  test("takes a domain's retries first, at their time and not before", () => {
    const plan = new AddressQueue(10);
    plan.add(1, 2);
    plan.addRetry(2, 2, NOW + 10);
    plan.addRetry(3, 2, NOW - 10);
    expect(takeAll(plan).map(({ position }) => position)).toEqual([3, 1]);
    expect(plan.nextRetryMs).toBe(NOW + 10);
    expect(takeAll(plan, NOW + 10).map(({ position }) => position)).toEqual([2]);
    expect(plan.nextRetryMs).toBeNull();
  });

  test("keeps the ceiling of a domain for retries, too: a thousand at once hold nobody up", () => {
    const plan = new AddressQueue(10_000);
    for (let position = 0; position < 1_000; position++) plan.addRetry(position, 1, NOW);
    plan.add(1_000, 2);
    expect(takeAll(plan).map(({ bucket }) => bucket)).toEqual([2, ...Array(FIRST_PER_BUCKET_MAX).fill(1)]);
  });

  test("whatever comes and goes, gives every address out exactly once, never goes beyond its ceilings and leaves no place empty", () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 25 });
    fc.assert(
      fc.property(sizes, fc.array(fc.nat(), { maxLength: 400 }), (counts, picks) => {
        const buckets = counts.flatMap((count, bucket) => Array<number>(count).fill(bucket));
        const plan = new AddressQueue(3);
        for (const [position, bucket] of buckets.entries()) plan.add(position, bucket);
        const seen: number[] = [];
        const groupOf = new Map<number, string>();
        let underWay: Taken[] = [];
        const release = (taken: Taken, pick: number) => {
          underWay = underWay.filter((other) => other !== taken);
          // Now and then a domain moves to another provider.
          const group = (taken.bucket % 2 === 0) === pick % 7 > 0 ? "one" : "other";
          groupOf.set(taken.bucket, group);
          plan.release(taken, group);
        };
        const mayBegin = (bucket: number): boolean => {
          const group = groupOf.get(bucket);
          const max = group === undefined ? FIRST_PER_BUCKET_MAX : PER_BUCKET_MAX;
          if (underWay.filter((taken) => taken.bucket === bucket).length >= max) return false;
          return group === undefined || underWay.filter((taken) => taken.group === group).length < 3;
        };
        const take = () => {
          for (const taken of takeAll(plan)) {
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
        expect([plan.ready, plan.underWay]).toEqual([0, 0]);
      }),
    );
  });

  test("a bucket is that of the domain", () => {
    expect(bucketOf("a@x.example")).toBe(bucketOf("b@x.example"));
    expect(bucketOf('"a@y"@x.example')).toBe(bucketOf("b@x.example"));
  });
});

test("the queue of retries gives back what is due, earliest first", () => {
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

test("positions number texts as they first come, as a map would", () => {
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
