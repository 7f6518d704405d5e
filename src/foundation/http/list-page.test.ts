import { expect, test } from "bun:test";
import { z } from "zod";
import { PAGE_BYTES_MAX, readById } from "../base/walk.ts";
import { createTestClock } from "../../testing/clock.ts";
import { createBudgets, trackRequest } from "./request-memory.ts";
import { rowsById, sendPage } from "./list-page.ts";

interface Row {
  readonly id: string;
  readonly text: string;
}

const pageSchema = z.object({
  rows: z.array(z.object({ id: z.string(), text: z.string() })),
  next_cursor: z.string().nullable(),
});

const all = (): boolean => true;
const idOf = (number: number): string => String(number).padStart(8, "0");

/** Rows by ids that grow, newest first, and how many of them were looked at in one go at most. */
const tableOf = (
  count: number,
  { text = "", passes = all }: { readonly text?: string; readonly passes?: (number: number) => boolean } = {},
) => {
  const state = { most: 0, read: 0 };
  const source = readById<Row>(
    ({ before, from, limit }) => {
      const [top, bottom] = [before === null ? count : Number(before), Number(from ?? 0)];
      state.most = Math.max(state.most, top - bottom);
      const rows: Row[] = [];
      for (let number = top - 1; number >= bottom && rows.length < limit; number--) {
        if (passes(number)) rows.push({ id: idOf(number), text });
      }
      state.read += rows.length;
      return rows;
    },
    (before, places) => {
      const number = (before === null ? count : Number(before)) - 1 - places;
      return number < 0 ? null : idOf(number);
    },
  );
  const list = rowsById(source, (row: Row) => row);
  const page = async (after: string | null, limit: number) => {
    const answer = await sendPage(
      new Request("http://localhost/"),
      { name: "rows", page: { cursor: after, limit } },
      list,
    );
    const text = await answer.text();
    return { bytes: text.length, ...pageSchema.parse(JSON.parse(text)) };
  };
  /** Every page there is. */
  const pages = async (limit: number) => {
    const found = [await page(null, limit)];
    for (let next = found[0]?.next_cursor ?? null; next !== null; next = found.at(-1)?.next_cursor ?? null) {
      found.push(await page(Buffer.from(next, "base64url").toString(), limit));
    }
    return found;
  };
  return { state, page, pages };
};

const idsOf = (pages: ReadonlyArray<{ readonly rows: readonly Row[] }>): number[] =>
  pages.flatMap(({ rows }) => rows.map(({ id }) => Number(id)));
const downFrom = (count: number): number[] => Array.from({ length: count }, (_, at) => count - 1 - at);

test.each([0, 1, 99, 100, 101, 1_000, 1_001, 2_500])("of %d rows every page has each once, in order", async (count) => {
  for (const limit of [100, 1_000]) {
    const pages = await tableOf(count).pages(limit);
    expect(idsOf(pages)).toEqual(downFrom(count));
    expect(pages.slice(0, -1).every(({ rows }) => rows.length === limit)).toBe(true);
  }
});

test("a page ends before it has too many bytes, and the next one goes on behind it", async () => {
  const { pages, state } = tableOf(1_000, { text: "x".repeat(50_000) });
  const all = await pages(1_000);
  expect(idsOf(all)).toEqual(downFrom(1_000));
  expect(all.length).toBeGreaterThan(10);
  for (const { bytes } of all) expect(bytes).toBeLessThan(PAGE_BYTES_MAX + 10_000);
  // Not the whole table for each page.
  expect(state.read).toBeLessThan(1_000 + all.length * 260);
});

test("rows count for their account as they are read, and are given back when reading fails", async () => {
  const budgets = createBudgets(createTestClock());
  const request = new Request("http://localhost/");
  trackRequest(request, "a", budgets);
  const text = "x".repeat(1_000);
  const counted: number[] = [];
  const page = sendPage(
    request,
    { name: "rows", page: { cursor: null, limit: 1_000 } },
    rowsById<Row>(
      (behind) => {
        counted.push(budgets.answers.held);
        if (behind !== null) throw new Error("broken");
        return { rows: [{ id: idOf(1), text }], next: idOf(1) };
      },
      (row) => row,
    ),
  );
  await expect(page).rejects.toThrow("broken");
  expect(counted).toEqual([0, JSON.stringify({ id: idOf(1), text }).length]);
  expect(budgets.answers.held).toBe(0);
});

test("a single row that is larger than a page is a page", async () => {
  const all = await tableOf(3, { text: "x".repeat(PAGE_BYTES_MAX + 1) }).pages(100);
  expect(all.map(({ rows }) => rows.length)).toEqual([1, 1, 1]);
});

test("a filter that few rows pass looks at some thousands in one go", async () => {
  const { state, pages } = tableOf(300_000, { passes: (number) => number % 100_000 === 7 });
  expect(idsOf(await pages(2))).toEqual([200_007, 100_007, 7]);
  expect(state.most).toBeLessThanOrEqual(5_000);
});

test("many walks at once hold up others no longer than one: one step a turn", async () => {
  const { page } = tableOf(100_000, { passes: () => false });
  let turns = 0;
  const over = new AbortController();
  const count = () => {
    turns++;
    if (!over.signal.aborted) setImmediate(count);
  };
  setImmediate(count);
  await Promise.all(Array.from({ length: 20 }, () => page(null, 10)));
  over.abort();
  expect(turns).toBeGreaterThanOrEqual(20 * (100_000 / 5_000) - 20);
});
