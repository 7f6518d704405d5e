import { expect, test } from "bun:test";
import { forEachIsolated } from "./for-each-isolated.ts";

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
