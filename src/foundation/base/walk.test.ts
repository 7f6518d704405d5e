import { expect, test } from "bun:test";
import { WALKED_MAX, type Walk, walk } from "./walk.ts";

/** The numbers below `top`, counted down. */
const countdown = (top: number, passes: (row: number) => boolean, step = 10) => {
  const looked: number[] = [];
  const made: Walk<number, number> = {
    read: (before, looks) => {
      looked.push(looks);
      const from = Math.min(before, top);
      const rows = Array.from({ length: Math.min(looks, from) }, (_, index) => from - 1 - index);
      return { rows: rows.filter(passes), next: rows.length < looks ? null : (rows.at(-1) ?? null) };
    },
    keyOf: (row) => row,
    step,
  };
  return { made, looked };
};

test("a page without filters is one look, and knows whether there is another", async () => {
  const { made, looked } = countdown(5, () => true);
  const page = { limit: 3 };
  expect(await walk(made, { ...page, before: 99 })).toEqual({ rows: [4, 3, 2], next: 2 });
  expect(looked).toEqual([4]);
  expect(await walk(made, { ...page, before: 2 })).toEqual({ rows: [1, 0], next: null });
  expect(await walk(made, { ...page, before: 3 })).toEqual({ rows: [2, 1, 0], next: null });
});

test("a page with a filter is walked in steps until it is full", async () => {
  const { made, looked } = countdown(100, (row) => row % 30 === 0);
  expect(await walk(made, { before: 999, limit: 2 })).toEqual({ rows: [90, 60], next: 60 });
  expect(looked[0]).toBe(3);
  expect(new Set(looked.slice(1))).toEqual(new Set([10]));
  expect(await walk(made, { before: 60, limit: 2 })).toEqual({ rows: [30, 0], next: null });
});

test("a filter that nothing passes ends the page at the ceiling, with a next one", async () => {
  const { made } = countdown(WALKED_MAX * 2, () => false, 100_000);
  const { rows, next } = await walk(made, { before: Number.MAX_SAFE_INTEGER, limit: 1 });
  expect(rows).toEqual([]);
  expect(next).toBeLessThanOrEqual(WALKED_MAX);
  expect(next).toBeGreaterThan(WALKED_MAX / 2);
});
