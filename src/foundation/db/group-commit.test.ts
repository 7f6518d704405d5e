import { Database } from "bun:sqlite";
import { afterEach, describe, expect, test } from "bun:test";
import { nextTurn, systemClock } from "../base/clock.ts";
import { GroupCommit } from "./group-commit.ts";

const opened: Database[] = [];
afterEach(() => {
  for (const sqlite of opened.splice(0)) sqlite.close();
});

/** A group of writes to a table, on a clock that stands still or advances by `stepMs` at each look. */
const groupOf = (stepMs: number) => {
  const sqlite = new Database(":memory:");
  opened.push(sqlite);
  sqlite.run("CREATE TABLE written (n INTEGER)");
  let nowMs = 0;
  const monotonicMs = () => (nowMs += stepMs);
  const group = new GroupCommit(sqlite, { monotonicMs, after: systemClock.after });
  const insert = sqlite.prepare("INSERT INTO written VALUES (1)");
  const count = () => sqlite.query<{ n: number }, []>("SELECT count(*) AS n FROM written").get()?.n;
  return { write: () => group.enqueue(() => insert.run()), count, group, insert };
};

describe("a transaction", () => {
  test("of one write does not wait for others", async () => {
    const { write, count } = groupOf(0);
    const first = write();
    const later = nextTurn().then(write);
    await first;
    expect(count()).toBe(1);
    await later;
    expect(count()).toBe(2);
  });

  test("also takes what the next turns bring, as long as each brings more", async () => {
    const { write, count } = groupOf(0);
    const first = write();
    void write();
    const later = nextTurn().then(write);
    await first;
    expect(count()).toBe(3);
    await later;
  });

  test("takes a limited number of writes, and the next one continues with what is left, in order", async () => {
    const { write, count } = groupOf(0);
    const counts: (number | undefined)[] = [];
    const order: number[] = [];
    await Promise.all(
      Array.from({ length: 300 }, (_, n) =>
        write().then(() => {
          order.push(n);
          counts.push(count());
        }),
      ),
    );
    expect(order).toEqual(Array.from({ length: 300 }, (_, n) => n));
    expect(count()).toBe(300);
    expect(new Set(counts).size).toBeGreaterThan(2);
    expect(counts.every((seen, n) => (seen ?? 0) > n)).toBe(true);
  });

  test("does not wait for more than a moment", async () => {
    const { write, count } = groupOf(1);
    let turns = 0;
    let isWritten: boolean = false;
    const first = write().then(() => {
      isWritten = true;
    });
    for (; !isWritten && turns < 100; turns++) {
      void write();
      await nextTurn();
    }
    await first;
    expect(turns).toBeLessThan(10);
    expect(count()).toBeGreaterThan(1);
  });
});

describe("writes of one kind", () => {
  /** Writes numbers, each call of which is noted; 13 throws after it was written. */
  const numbersOf = () => {
    const { write, count, group, insert } = groupOf(0);
    const calls: Array<readonly number[]> = [];
    const work = (numbers: readonly number[]) => {
      calls.push(numbers);
      return numbers.map((number) => {
        insert.run();
        if (number === 13) throw new Error("13 is refused");
        return number * 2;
      });
    };
    return { write, count, calls, writeNumber: (number: number) => group.enqueueItem(work, number) };
  };

  test("that follow each other are made by one call, and each has its own value", async () => {
    const { calls, writeNumber, count } = numbersOf();
    expect(await Promise.all([1, 2, 3].map(writeNumber))).toEqual([2, 4, 6]);
    expect(calls).toEqual([[1, 2, 3]]);
    expect(count()).toBe(3);
  });

  test("keep their place among other writes", async () => {
    const { calls, writeNumber, write } = numbersOf();
    await Promise.all([writeNumber(1), writeNumber(2), write(), writeNumber(3)]);
    expect(calls).toEqual([[1, 2], [3]]);
  });

  test("are made alone when one of them throws, which fails alone", async () => {
    const { calls, writeNumber, count } = numbersOf();
    const ends = await Promise.allSettled([1, 13, 3].map(writeNumber));
    expect(ends.map((end) => (end.status === "fulfilled" ? end.value : String(end.reason)))).toEqual([
      2,
      "Error: 13 is refused",
      6,
    ]);
    expect(calls).toEqual([[1, 13, 3], [1], [13], [3]]);
    expect(count()).toBe(2);
  });
});
