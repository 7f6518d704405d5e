import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  BULK_ACCOUNT,
  BULK_CREDITS,
  OTHER_ACCOUNT,
  bulkOutcome,
  type BulkHarness,
  createBulkHarness,
} from "../../testing/bulk-harness.ts";
import { settle } from "../../testing/clock.ts";
import { type AttemptOutcome, createAttempt } from "./attempt.ts";
import { OwnAttempts } from "../../verify/attempts.ts";
import type { OpenAddress } from "../results/list-store.ts";
import { ACTIVE_JOBS_MAX } from "./address-queue.ts";
import type { JobRow } from "../results/job-store.ts";

const newHarness = createBulkHarness();
const addresses = (count: number, domain = "x.example"): string[] =>
  Array.from({ length: count }, (_, n) => `user${n}@${domain}`);

const later = (harness: BulkHarness, afterMs: number): AttemptOutcome => ({
  kind: "later",
  dueAtMs: harness.clock.nowMs() + afterMs,
  evidence: Buffer.from("{}"),
  group: null,
  trouble: null,
});

const stateOf = (harness: BulkHarness, { number }: JobRow): JobRow => {
  const job = harness.jobs.get(number);
  if (job === undefined) throw new Error("the job is gone");
  return job;
};

const untilEnded = async (harness: BulkHarness, job: JobRow, stepMs = 100): Promise<JobRow> => {
  for (let turn = 0; turn < 500 && stateOf(harness, job).completedAtMs === null; turn++)
    await harness.clock.advance(stepMs);
  return stateOf(harness, job);
};

describe("a job", () => {
  test("ends with its last address, with counts, credits and one event in the same transaction", async () => {
    const harness = newHarness();
    const job = await harness.order([...addresses(3), "User1@x.example"]);
    expect(harness.ledger.balance(BULK_ACCOUNT)).toEqual({ available: BULK_CREDITS - 3, held: 3 });
    const attempt = async ({ email }: OpenAddress) =>
      email === "user0@x.example" ? bulkOutcome("smtp_timeout", false) : bulkOutcome("mailbox_exists");
    harness.start({ attempt });
    expect(await untilEnded(harness, job)).toMatchObject({
      status: "completed",
      rowsFinished: 4,
      addressesFinished: 3,
      creditsCharged: 2,
      creditsReleased: 1,
    });
    expect(harness.jobs.counts(job.number).toSorted((a, b) => a.rows - b.rows)).toEqual([
      { subStatus: "smtp_timeout", rows: 1 },
      { subStatus: "mailbox_exists", rows: 3 },
    ]);
    expect(harness.ledger.balance(BULK_ACCOUNT)).toEqual({ available: BULK_CREDITS - 2, held: 0 });
    expect(harness.events()).toEqual(["bulk.completed"]);
    const logged = harness.lines.map((line): Record<string, unknown> => JSON.parse(line));
    expect(logged.filter(({ id }) => id === job.id)).toMatchObject([
      { level: "info", message: "list started", addresses: 3 },
      { level: "info", message: "list ended", status: "completed", addresses: 3 },
    ]);
  });

  test("retries at the planned time, while its other addresses continue", async () => {
    const harness = newHarness();
    const job = await harness.order(addresses(5));
    const attempt = async ({ email, dueAtMs }: OpenAddress) =>
      email.startsWith("user0") && dueAtMs === 0 ? later(harness, 60_000) : bulkOutcome("mailbox_exists");
    const { runner } = harness.start({ attempt });
    await harness.clock.advance(1_000);
    expect(stateOf(harness, job)).toMatchObject({ status: "running", addressesFinished: 4 });
    expect(runner.forecast(stateOf(harness, job)).secondsLeft).toBeGreaterThanOrEqual(59);
    await harness.clock.advance(58_000);
    expect(stateOf(harness, job).addressesFinished).toBe(4);
    await harness.clock.advance(2_000);
    expect(stateOf(harness, job)).toMatchObject({ status: "completed", addressesFinished: 5 });
    expect(harness.lists.findEvidence(job.number, 0)).toBeUndefined();
  });

  test("of which another process finishes the last address ends here, too", async () => {
    const harness = newHarness();
    const job = await harness.order(["user@x.example"]);
    const { runner } = harness.start({ attempt: async () => later(harness, 60_000) });
    await harness.clock.advance(1_000);
    const outcome = bulkOutcome("internal_error", false);
    const erased = [{ position: 0, rows: 1, isRetry: true, outcome }];
    harness.db.transact((tx) => harness.writer.writeAttempts(tx, job.number, erased));
    let hasEnded = false;
    void runner.untilEnded(job.number).then(() => (hasEnded = true));
    await harness.clock.advance(1_000);
    expect(hasEnded).toBe(false);
    await harness.clock.advance(60_000);
    expect(hasEnded).toBe(true);
  });

  test("is not blocked by a domain that never responds", async () => {
    const harness = newHarness();
    const job = await harness.order([...addresses(500, "stuck.example"), ...addresses(50, "quick.example")]);
    const attempt = async ({ email }: OpenAddress) =>
      email.endsWith("@stuck.example") ? Promise.withResolvers<never>().promise : bulkOutcome("mailbox_exists");
    harness.start({ attempt, windowMax: 100 });
    await harness.clock.advance(1_000);
    expect(stateOf(harness, job).addressesFinished).toBe(50);
  });

  test("never exceeds the window", async () => {
    const harness = newHarness();
    const job = await harness.order(Array.from({ length: 300 }, (_, n) => `a@d${n}.example`));
    let [underWay, most] = [0, 0];
    const attempt = () => {
      most = Math.max(most, ++underWay);
      return new Promise<AttemptOutcome>((resolve) => {
        harness.clock.after(10, () => {
          underWay--;
          resolve(bulkOutcome("mailbox_exists"));
        });
      });
    };
    harness.start({ attempt, windowMax: 20 });
    await untilEnded(harness, job);
    expect(most).toBe(20);
  });

  test("that is dropped ignores later results", async () => {
    const harness = newHarness();
    const job = await harness.order(addresses(2));
    const answers: Array<() => void> = [];
    const attempt = () =>
      new Promise<AttemptOutcome>((resolve) => answers.push(() => resolve(bulkOutcome("catch_all"))));
    const { runner } = harness.start({ attempt });
    await settle();
    harness.db.transact((tx) => harness.writer.abort(tx, job, "cancelled"));
    runner.drop(job.number);
    for (const answer of answers) answer();
    await harness.clock.advance(1_000);
    expect(answers).toHaveLength(2);
    expect(stateOf(harness, job)).toMatchObject({ status: "cancelled", addressesFinished: 0, creditsReleased: 2 });
    expect(harness.events()).toEqual(["bulk.cancelled"]);
  });

  test("waits while the disk is full, and loses nothing", async () => {
    const harness = newHarness();
    const job = await harness.order(addresses(3));
    let full = false;
    const commit: BulkHarness["db"]["commit"] = (work) =>
      full ? Promise.reject(Object.assign(new Error("full"), { code: "SQLITE_FULL" })) : harness.db.commit(work);
    const attempt = async () => {
      full = true;
      return bulkOutcome("mailbox_exists");
    };
    harness.start({ attempt, commit });
    await harness.clock.advance(10_000);
    expect(stateOf(harness, job)).toMatchObject({ status: "running", addressesFinished: 0 });
    full = false;
    await harness.clock.advance(3_000);
    expect(stateOf(harness, job)).toMatchObject({ status: "completed", addressesFinished: 3 });
  });

  test("stays unfinished when the process stops while the disk is full", async () => {
    const harness = newHarness();
    const job = await harness.order(addresses(2));
    let failures = 0;
    const commit: BulkHarness["db"]["commit"] = (work) =>
      failures-- > 0
        ? Promise.reject(Object.assign(new Error("full"), { code: "SQLITE_FULL" }))
        : harness.db.commit(work);
    const attempt = async () => {
      failures = Number.POSITIVE_INFINITY;
      return bulkOutcome("mailbox_exists");
    };
    const { runner } = harness.start({ attempt, commit });
    await harness.clock.advance(1_000);
    // The last attempt to write fails as well; what follows could be written.
    failures = 1;
    const stopped = runner.stop();
    await harness.clock.advance(10_000);
    await stopped;
    expect(stateOf(harness, job)).toMatchObject({ status: "running", addressesFinished: 0, creditsReleased: 0 });
    harness.start({ attempt: async () => bulkOutcome("mailbox_exists") });
    expect((await untilEnded(harness, job)).status).toBe("completed");
  });

  test("that cannot start while the disk is full starts later", async () => {
    const harness = newHarness();
    const job = await harness.order(addresses(2));
    const failures = [Object.assign(new Error("full"), { code: "SQLITE_FULL" })];
    const commit: BulkHarness["db"]["commit"] = (work) => {
      const failure = failures.shift();
      return failure === undefined ? harness.db.commit(work) : Promise.reject(failure);
    };
    harness.start({ attempt: async () => bulkOutcome("mailbox_exists"), commit });
    await harness.clock.advance(4_000);
    expect(stateOf(harness, job).status).toBe("queued");
    await harness.clock.advance(2_000);
    expect(stateOf(harness, job).status).toBe("completed");
  });

  test("whose results cannot be written because of a bug fails and releases its credits, without affecting other jobs", async () => {
    const harness = newHarness();
    const bad = await harness.order(["bad@x.example"]);
    const good = await harness.order(["good@x.example"]);
    const broken = { ...bulkOutcome("mailbox_exists"), columns: { subStatus: "catch_all", signals: {} } };
    const attempt = async ({ email }: OpenAddress) =>
      email === "bad@x.example" ? (broken as unknown as AttemptOutcome) : bulkOutcome("mailbox_exists");
    harness.start({ attempt });
    await untilEnded(harness, good);
    expect([stateOf(harness, bad).status, stateOf(harness, good).status]).toEqual(["failed", "completed"]);
    expect(harness.ledger.balance(BULK_ACCOUNT)).toEqual({ available: BULK_CREDITS - 1, held: 0 });
    expect(harness.events().toSorted()).toEqual(["bulk.completed", "bulk.failed"]);
  });
});

describe("several jobs", () => {
  test("share the window: a small job does not wait for a big one", async () => {
    const harness = newHarness();
    const big = await harness.order(Array.from({ length: 2_000 }, (_, n) => `a@d${n}.example`));
    const small = await harness.order(Array.from({ length: 20 }, (_, n) => `b@d${n}.example`));
    const attempt = () =>
      new Promise<AttemptOutcome>((resolve) => {
        harness.clock.after(100, () => resolve(bulkOutcome("mailbox_exists")));
      });
    harness.start({ attempt, windowMax: 20 });
    await untilEnded(harness, small);
    expect(stateOf(harness, small).status).toBe("completed");
    expect(stateOf(harness, big).addressesFinished).toBeLessThan(100);
  });

  test("of one account share the window of one account", async () => {
    const harness = newHarness();
    const underWay = new Map<string, number>();
    const attempt = ({ email }: { readonly email: string }) => {
      const whose = email.slice(0, 1);
      underWay.set(whose, (underWay.get(whose) ?? 0) + 1);
      return Promise.withResolvers<never>().promise;
    };
    for (let n = 0; n < 9; n++) await harness.order(Array.from({ length: 50 }, (_, at) => `x${n}@d${at}.example`));
    await harness.order(
      Array.from({ length: 50 }, (_, at) => `y@d${at}.example`),
      OTHER_ACCOUNT,
    );
    harness.start({ attempt, windowMax: 20 });
    await settle();
    expect(Object.fromEntries(underWay)).toEqual({ x: 9, y: 10 });
  });

  test("of one account never take all places: a job of another account starts at once", async () => {
    const harness = newHarness();
    const begun = new Set<string>();
    const attempt = ({ email }: { readonly email: string }) => {
      begun.add(email);
      return Promise.withResolvers<never>().promise;
    };
    for (let n = 0; n <= ACTIVE_JOBS_MAX; n++) await harness.order([`x${n}@d.example`]);
    await harness.order(["y@d.example"], OTHER_ACCOUNT);
    harness.start({ attempt });
    await settle();
    expect(begun).toContain("y@d.example");
    expect(begun.size).toBe(41);
  });
});

test("however often the process is killed, every address finishes once and is charged once", async () => {
  const life = fc.record({
    /** For each address: how many attempts are put off, how long each takes, whether it costs. */
    plan: fc.array(
      fc.record({ puts: fc.integer({ min: 0, max: 2 }), ms: fc.integer({ min: 0, max: 400 }), costs: fc.boolean() }),
      { minLength: 1, maxLength: 40 },
    ),
    deaths: fc.array(fc.integer({ min: 0, max: 700 }), { maxLength: 8 }),
    windowMax: fc.integer({ min: 1, max: 50 }),
  });
  await fc.assert(
    fc.asyncProperty(life, async ({ plan, deaths, windowMax }) => {
      const harness = newHarness();
      const emails = plan.flatMap((_, n) => [`u${n}@d${n % 5}.example`, `U${n}@d${n % 5}.example`]);
      const job = await harness.order(emails);
      const puts = plan.map((address) => address.puts);
      const attempt = ({ position }: OpenAddress) =>
        new Promise<AttemptOutcome>((resolve) => {
          const { ms = 0, costs = true } = plan[position] ?? {};
          harness.clock.after(ms, () => {
            const left = puts[position] ?? 0;
            puts[position] = left - 1;
            resolve(left > 0 ? later(harness, 300) : bulkOutcome(costs ? "mailbox_exists" : "smtp_timeout", costs));
          });
        });
      for (const livedMs of deaths) {
        const { kill } = harness.start({ attempt, windowMax });
        await harness.clock.advance(livedMs);
        kill();
      }
      harness.start({ attempt, windowMax });
      const ended = await untilEnded(harness, job);
      const charged = plan.filter(({ costs }) => costs).length;
      expect(ended).toMatchObject({
        status: "completed",
        rowsFinished: emails.length,
        addressesFinished: plan.length,
        creditsCharged: charged,
        creditsReleased: plan.length - charged,
      });
      expect(harness.jobs.counts(job.number).reduce((sum, { rows }) => sum + rows, 0)).toBe(emails.length);
      expect(harness.ledger.balance(BULK_ACCOUNT)).toEqual({ available: BULK_CREDITS - charged, held: 0 });
      expect(harness.ledger.sum(BULK_ACCOUNT)).toEqual(harness.ledger.balance(BULK_ACCOUNT));
      expect(harness.events()).toEqual(["bulk.completed"]);
    }),
    { numRuns: 25 },
  );
}, 30_000);

test("an attempt with a test key has no provider to spare, and its evidence is not stored", async () => {
  const { runtime, engines, lists } = newHarness();
  const attempts = { live: new OwnAttempts(engines.live), test: new OwnAttempts(engines.test) };
  const attempt = createAttempt(runtime, { engines, attempts, lists, dueNowMs: () => 0, isShared: true });
  const address = { position: 0, email: "ada@x.example", rows: 1, dueAtMs: 0 };
  const outcome = await attempt(address, { number: 1, accountId: BULK_ACCOUNT, mode: "test" });
  expect(outcome).toMatchObject({ kind: "done", chargeable: true, group: null, trouble: null, evidence: null });
});
