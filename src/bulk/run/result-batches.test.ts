import { describe, expect, test } from "bun:test";
import { bulkOutcome, createBulkHarness } from "../../testing/bulk-harness.ts";
import { settle } from "../../testing/clock.ts";
import { WRITE_AGAIN_MS } from "../../verify/runner.ts";
import { type AttemptedAddress, RESULT_BATCH_MAX, RESULT_BATCH_MS, ResultBatches } from "./job-writer.ts";

const newHarness = createBulkHarness();

const result = (position: number): AttemptedAddress => ({
  position,
  rows: 1,
  isRetry: false,
  outcome: bulkOutcome("mailbox_exists"),
});

const storageError = () => Object.assign(new Error("full"), { code: "SQLITE_FULL" });

/** Batches over a database whose transactions the test counts, holds back and lets fail. */
const start = () => {
  const { runtime, clock, lines } = newHarness();
  const commits: Array<{ readonly job: number; readonly positions: number[] }[]> = [];
  const state: { gate: Promise<void>; fail: ((jobs: readonly number[]) => Error | null) | null } = {
    gate: Promise.resolve(),
    fail: null,
  };
  let written: Array<{ readonly job: number; readonly positions: number[] }> = [];
  const commit: typeof runtime.db.commit = async (work) => {
    await state.gate;
    written = [];
    const returned = await runtime.db.commit(work);
    const error = state.fail?.(written.map(({ job }) => job)) ?? null;
    if (error !== null) throw error;
    commits.push(written);
    return returned;
  };
  const batches = new ResultBatches(
    { ...runtime, db: { ...runtime.db, commit } },
    {
      /** Job 9 ends with each batch. */
      writeAttempts(_tx, job, attempted) {
        written.push({ job, positions: attempted.map(({ position }) => position) });
        return job !== 9;
      },
    },
  );
  const writeMany = (count: number) => Array.from({ length: count }, (_, at) => batches.write(1, result(at)));
  return { batches, clock, commits, lines, state, writeMany };
};

describe("results are written", () => {
  test("together, shortly after the first of them", async () => {
    const { batches, clock, commits } = start();
    const ends = [batches.write(1, result(0)), batches.write(9, result(5)), batches.write(1, result(1))];
    await clock.advance(RESULT_BATCH_MS - 1);
    expect([commits, batches.size]).toEqual([[], 3]);
    await clock.advance(1);
    expect(await Promise.all(ends)).toEqual(["open", "ended", "open"]);
    expect(commits).toEqual([
      [
        { job: 1, positions: [0, 1] },
        { job: 9, positions: [5] },
      ],
    ]);
    expect([batches.size, clock.pending()]).toEqual([0, 0]);
  });

  test("at once when a batch is full, the rest after the usual time", async () => {
    const { clock, commits, writeMany } = start();
    const ends = writeMany(RESULT_BATCH_MAX - 1);
    await settle();
    expect(commits).toEqual([]);
    ends.push(...writeMany(2));
    await settle();
    expect(commits.map(([one]) => one?.positions.length)).toEqual([RESULT_BATCH_MAX]);
    await clock.advance(RESULT_BATCH_MS);
    expect(commits.map(([one]) => one?.positions.length)).toEqual([RESULT_BATCH_MAX, 1]);
    expect(new Set(await Promise.all(ends))).toEqual(new Set(["open"]));
  });

  test("in order, one transaction at a time: what arrives during one is in the next", async () => {
    const { batches, clock, commits, state } = start();
    const gate = Promise.withResolvers<void>();
    state.gate = gate.promise;
    const first = batches.write(1, result(0));
    await clock.advance(RESULT_BATCH_MS);
    const second = batches.write(1, result(1));
    await clock.advance(10 * RESULT_BATCH_MS);
    expect([commits, clock.pending()]).toEqual([[], 0]);
    gate.resolve();
    expect(await first).toBe("open");
    await settle();
    expect(commits).toEqual([[{ job: 1, positions: [0] }]]);
    await clock.advance(RESULT_BATCH_MS);
    expect(await second).toBe("open");
    expect(commits).toEqual([[{ job: 1, positions: [0] }], [{ job: 1, positions: [1] }]]);
  });

  test("again after a while when the disk is full", async () => {
    const { batches, clock, commits, lines, state } = start();
    let failures = 2;
    state.fail = () => (failures-- > 0 ? storageError() : null);
    const end = batches.write(1, result(0));
    await clock.advance(RESULT_BATCH_MS);
    await clock.advance(WRITE_AGAIN_MS - 1);
    expect([lines.length, commits]).toEqual([1, []]);
    await clock.advance(WRITE_AGAIN_MS + 1);
    expect(await end).toBe("open");
    expect(lines.map((line) => line.includes("could not write results of lists"))).toEqual([true, true]);
  });
});

test("a bug with one job fails its results, and those of other jobs are written", async () => {
  const { batches, clock, commits, state } = start();
  state.fail = (jobs) => (jobs.includes(7) ? new TypeError("bug") : null);
  const ends = [batches.write(1, result(0)), batches.write(7, result(1)), batches.write(2, result(2))];
  await clock.advance(RESULT_BATCH_MS);
  expect(await Promise.all(ends)).toEqual(["open", "failed", "open"]);
  expect(commits.map(([one]) => one?.job)).toEqual([1, 2]);
});

describe("a stop", () => {
  test("writes what is pending at once, and accepts no more", async () => {
    const { batches, clock, commits, writeMany } = start();
    const ends = writeMany(3);
    await batches.stop();
    expect(await Promise.all(ends)).toEqual(["open", "open", "open"]);
    expect(await batches.write(1, result(9))).toBe("stopped");
    expect([commits.length, batches.size, clock.pending()]).toEqual([1, 0, 0]);
  });

  test("waits for the batch under way, and for what arrived during it", async () => {
    const { batches, clock, commits, state, writeMany } = start();
    const gate = Promise.withResolvers<void>();
    state.gate = gate.promise;
    const ends = writeMany(1);
    await clock.advance(RESULT_BATCH_MS);
    ends.push(...writeMany(1));
    let isStopped = false;
    const stopped = batches.stop().then(() => (isStopped = true));
    await settle();
    expect(isStopped).toBe(false);
    gate.resolve();
    await stopped;
    expect(await Promise.all(ends)).toEqual(["open", "open"]);
    expect([commits.length, clock.pending()]).toEqual([2, 0]);
  });

  test("does not wait for a full disk: the results stay unwritten", async () => {
    const { batches, commits, state, writeMany } = start();
    state.fail = storageError;
    const ends = writeMany(2);
    await batches.stop();
    expect(await Promise.all(ends)).toEqual(["stopped", "stopped"]);
    expect(commits).toEqual([]);
  });
});
