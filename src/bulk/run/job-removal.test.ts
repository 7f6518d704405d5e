import { expect, test } from "bun:test";
import { settle } from "../../testing/clock.ts";
import { type BulkHarness, createBulkHarness } from "../../testing/bulk-harness.ts";
import { JobRemoval } from "./job-changes.ts";

const newHarness = createBulkHarness();

const rowsLeft = ({ db }: BulkHarness) =>
  db.sqlite.query("SELECT (SELECT count(*) FROM bulk_jobs) AS jobs, (SELECT count(*) FROM bulk_rows) AS rows").get();

/** Two lists, and their removal over a database whose writes fail while `state.isFull`. */
const setUp = async () => {
  const harness = newHarness();
  const first = await harness.order(Array.from({ length: 2_500 }, (_, n) => `user${n}@x.example`));
  const second = await harness.order(["a@x.example"]);
  const state: { isFull: boolean } = { isFull: false };
  const commit: BulkHarness["db"]["commit"] = (work) =>
    state.isFull ? Promise.reject(new Error("full")) : harness.db.commit(work);
  const runtime = { ...harness.runtime, db: { ...harness.db, commit } };
  return { harness, first, second, state, removal: new JobRemoval(runtime, harness.jobs, harness.lists) };
};

test("a job is hidden at once, and removed with its rows in small transactions", async () => {
  const { harness, first, second, removal } = await setUp();
  removal.discard(first.number);
  await removal.done();
  expect(harness.jobs.get(first.number)).toBeUndefined();
  expect(harness.jobs.get(second.number)).toBeDefined();
  expect(rowsLeft(harness)).toEqual({ jobs: 1, rows: 1 });
  expect(harness.lines).toEqual([]);
});

test("a removal that fails is logged, and does not stop the next one", async () => {
  const { harness, first, second, removal, state } = await setUp();
  state.isFull = true;
  removal.remove(first.number);
  await removal.done();
  expect(harness.lines.map((line) => line.includes("could not remove a list"))).toEqual([true]);
  state.isFull = false;
  removal.remove(second.number);
  await removal.done();
  expect(rowsLeft(harness)).toEqual({ jobs: 1, rows: 2_500 });
});

test("a stop ends the removal after its transaction; the next start continues", async () => {
  const { harness, first, removal, state } = await setUp();
  removal.remove(first.number);
  await removal.stop();
  expect(rowsLeft(harness)).toEqual({ jobs: 2, rows: 2_501 });
  state.isFull = true;
  removal.discard(first.number);
  await removal.done();
  expect(harness.lines).toEqual([]);
});

test("a list whose removal the disk refuses is removed when the disk takes writes again", async () => {
  const { harness, first, removal } = await setUp();
  harness.db.sqlite.run("PRAGMA query_only = ON");
  removal.discard(first.number);
  await settle();
  expect(rowsLeft(harness)).toEqual({ jobs: 2, rows: 2_501 });
  expect(harness.lines.map((line) => line.includes("trying again in 10 seconds"))).toEqual([true]);
  harness.db.sqlite.run("PRAGMA query_only = OFF");
  await harness.clock.advance(10_000);
  await removal.done();
  expect(rowsLeft(harness)).toEqual({ jobs: 1, rows: 1 });
});

test("a stop does not wait for the disk; the list is left for the next start", async () => {
  const { harness, first, removal } = await setUp();
  harness.db.sqlite.run("PRAGMA query_only = ON");
  removal.discard(first.number);
  await settle();
  await removal.stop();
  expect(rowsLeft(harness)).toEqual({ jobs: 2, rows: 2_501 });
});
