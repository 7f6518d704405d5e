import { expect, test } from "bun:test";
import { inSteps, pagesOf, forEachIsolated } from "./in-steps.ts";

/** Counts the turns of the event loop until `end`. */
const countTurns = () => {
  const seen: { turns: number; isOver: boolean } = { turns: 0, isOver: false };
  const turn = (): void => {
    if (seen.isOver) return;
    seen.turns += 1;
    setImmediate(turn);
  };
  setImmediate(turn);
  return seen;
};

test("a step repeats until it changes nothing, and everything else has its turn after each", async () => {
  const left = [3, 2, 5];
  const seen = countTurns();
  const turnsBefore: number[] = [];
  const done = await inSteps(() => {
    turnsBefore.push(seen.turns);
    return left.shift() ?? 0;
  });
  seen.isOver = true;
  expect(done).toEqual({ count: 10, isComplete: true });
  expect(turnsBefore).toHaveLength(4);
  expect(new Set(turnsBefore).size).toBe(4);
});

test("work ends before its next step when it is stopped, after its last one by number, or with the error of a step", async () => {
  let steps = 0;
  const step = (): number => ++steps;
  expect(await inSteps(step, { isStopping: () => steps === 2 })).toEqual({ count: 3, isComplete: false });
  expect(await inSteps(step, { stepsMax: 1 })).toEqual({ count: 3, isComplete: false });
  expect(await inSteps(step, { isStopping: () => true })).toEqual({ count: 0, isComplete: false });
  const failing = inSteps(() => Promise.reject(new Error("disk full")));
  expect(failing).rejects.toThrow("disk full");
  const stopping = inSteps(step, {
    isStopping: () => {
      throw new Error("the service stops");
    },
  });
  expect(stopping).rejects.toThrow("the service stops");
});

const NUMBERS = [1, 2, 3, 4, 5];
const numbers = {
  start: 0,
  read: (after: number) => NUMBERS.filter((number) => number > after).slice(0, 2),
  positionOf: (number: number) => number,
};

test("pages follow one another to the end, also when rows vanish meanwhile; every page begins in another turn", async () => {
  const kept = [...NUMBERS];
  const seen = countTurns();
  const pages: Array<{ readonly rows: readonly number[]; readonly turns: number }> = [];
  const read = (after: number) => kept.filter((number) => number > after).slice(0, 2);
  for await (const rows of pagesOf({ ...numbers, read })) {
    pages.push({ rows, turns: seen.turns });
    kept.splice(0, 2);
  }
  seen.isOver = true;
  expect(pages.map(({ rows }) => rows)).toEqual([[1, 2], [3, 4], [5]]);
  expect(new Set(pages.map(({ turns }) => turns)).size).toBe(3);
});

test("pages end when they are stopped, and by their number", async () => {
  const seen: number[] = [];
  for await (const rows of pagesOf(numbers, { isStopping: () => seen.length >= 4 })) seen.push(...rows);
  expect(seen).toEqual([1, 2, 3, 4]);
  for await (const rows of pagesOf(numbers, { stepsMax: 1 })) seen.push(...rows);
  expect(seen).toEqual([1, 2, 3, 4, 1, 2]);
});

test("a failure for one item is reported, and does not stop the others", async () => {
  const done: number[] = [];
  const failed: [number, string][] = [];
  const work = async (item: number) => {
    if (item === 1) throw new Error("broken");
    done.push(item);
  };
  const onFailure = (item: number, cause: unknown) => void failed.push([item, String(cause)]);
  await forEachIsolated([1, 2, 3], work, { onFailure });
  expect(done).toEqual([2, 3]);
  expect(failed).toEqual([[1, "Error: broken"]]);
});

test("nothing is begun any more when the service stops", async () => {
  const done: number[] = [];
  const isStopping = () => done.length === 1;
  await forEachIsolated([1, 2, 3], (item) => void done.push(item), { onFailure: () => undefined, isStopping });
  expect(done).toEqual([1]);
});
