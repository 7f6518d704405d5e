import { expect, test } from "bun:test";
import { PoolClosed } from "../../verify/smtp/pool.ts";
import { bulkOutcome, type BulkHarness, createBulkHarness } from "../../testing/bulk-harness.ts";
import { settle } from "../../testing/clock.ts";
import type { AttemptOutcome } from "./attempt.ts";
import type { OpenAddress } from "../results/list-store.ts";

const newHarness = createBulkHarness();

/** The messages in the log, oldest first. */
const messagesOf = ({ lines }: BulkHarness): string[] =>
  lines.map((line) => (JSON.parse(line) as { message: string }).message);

const storageError = () => Object.assign(new Error("full"), { code: "SQLITE_FULL" });

test("a job that is added twice is verified once", async () => {
  const harness = newHarness();
  const job = await harness.order(["a@x.example", "b@y.example"]);
  const attempted: string[] = [];
  const attempt = async ({ email }: OpenAddress) => {
    attempted.push(email);
    return bulkOutcome("mailbox_exists");
  };
  const { runner } = harness.start({ attempt });
  runner.add(job);
  await harness.clock.advance(1_000);
  runner.drop(job.number);
  expect(attempted.toSorted()).toEqual(["a@x.example", "b@y.example"]);
  expect(messagesOf(harness)).toEqual(["list started", "list ended"]);
});

test("addresses are started until the window has grown and is full, though none has ended", async () => {
  const harness = newHarness();
  await harness.order(Array.from({ length: 300 }, (_, n) => `user@d${n}.example`));
  let started = 0;
  const attempt = () => {
    started++;
    return Promise.withResolvers<AttemptOutcome>().promise;
  };
  harness.start({ attempt, windowMax: 1_000 });
  // Some start in each turn of the event loop, until the first window is full.
  for (let before = -1; before < started;) {
    before = started;
    await settle();
  }
  expect(started).toBe(100);
  await harness.clock.advance(1_000);
  expect(started).toBe(300);
});

test("a job that is dropped before its end is not logged as ended", async () => {
  const harness = newHarness();
  const job = await harness.order(["a@x.example"]);
  const { runner } = harness.start({ attempt: () => Promise.withResolvers<AttemptOutcome>().promise });
  await harness.clock.advance(1_000);
  runner.drop(job.number);
  await settle();
  expect(messagesOf(harness)).toEqual(["list started"]);
});

test("an address whose session the stopping pool closed stays pending, and is no bug", async () => {
  const harness = newHarness();
  const job = await harness.order(["a@x.example"]);
  harness.start({ attempt: () => Promise.reject(new PoolClosed()) });
  await harness.clock.advance(10_000);
  expect(messagesOf(harness)).toEqual(["list started"]);
  expect(harness.jobs.getExisting(job.number)).toMatchObject({ status: "running", addressesFinished: 0 });
});

test("a list that cannot be loaded while the process stops is no error", async () => {
  const harness = newHarness();
  await harness.order(["a@x.example"]);
  const gate = Promise.withResolvers<never>();
  const { runner } = harness.start({
    attempt: async () => bulkOutcome("mailbox_exists"),
    commit: () => gate.promise,
  });
  const stopped = runner.stop();
  gate.reject(storageError());
  await stopped;
  await settle();
  expect(messagesOf(harness)).toEqual(["list started"]);
  expect(harness.clock.pending()).toBe(0);
});

test("a list that cannot even be ended after a bug is logged", async () => {
  const harness = newHarness();
  await harness.order(["a@x.example"]);
  let isBroken = false;
  const attempt = async () => {
    isBroken = true;
    return bulkOutcome("mailbox_exists");
  };
  const commit: BulkHarness["db"]["commit"] = (work) =>
    isBroken ? Promise.reject(new TypeError("bug")) : harness.db.commit(work);
  harness.start({ attempt, commit });
  await harness.clock.advance(1_000);
  expect(messagesOf(harness)).toEqual([
    "list started",
    "could not write results of lists",
    "could not end a list that failed",
  ]);
});
