import { describe, expect, test } from "bun:test";
import type { PausedReason } from "../../verify/smtp/outages.ts";
import {
  BULK_ACCOUNT,
  BULK_CREDITS,
  bulkOutcome,
  type BulkHarness,
  createBulkHarness,
} from "../../testing/bulk-harness.ts";
import { settle } from "../../testing/clock.ts";
import type { AttemptOutcome } from "./attempt.ts";
import type { OpenAddress } from "../results/list-store.ts";
import { UNWRITTEN_MAX } from "./job-writer.ts";
import type { JobRow } from "../results/job-store.ts";

const newHarness = createBulkHarness();
const oneADomain = (count: number): string[] => Array.from({ length: count }, (_, n) => `user@d${n}.example`);

const stateOf = (harness: BulkHarness, { number }: JobRow): JobRow => {
  const job = harness.jobs.get(number);
  if (job === undefined) throw new Error("the job is gone");
  return job;
};

const soon = (harness: BulkHarness, afterMs = 5_000): AttemptOutcome => ({
  kind: "later",
  dueAtMs: harness.clock.nowMs() + afterMs,
  evidence: null,
  group: null,
  trouble: null,
});

/** An outage that the test begins, ends, and gives turns in. */
const outageOf = () => {
  let reason: PausedReason | null = null;
  let turns = 0;
  let tell = (): void => undefined;
  return {
    current: () => reason,
    takeTurn: () => turns-- > 0,
    onChange: (listener: () => void): void => {
      tell = listener;
    },
    set(now: PausedReason | null): void {
      reason = now;
      turns = 0;
      tell();
    },
    turn(): void {
      turns = 1;
      tell();
    },
  };
};

describe("during an outage", () => {
  const paused = async (count = 40) => {
    const harness = newHarness();
    const outages = outageOf();
    const job = await harness.order(oneADomain(count));
    const attempted: string[] = [];
    const attempt = async ({ email }: OpenAddress) => {
      attempted.push(email);
      return outages.current() === null ? bulkOutcome("mailbox_exists") : soon(harness);
    };
    outages.set("dns_unavailable");
    const process = harness.start({ attempt, outages });
    await harness.clock.advance(100);
    return { harness, outages, job, attempted, attempt, process };
  };

  test("a job is paused with a reason, and tries one address of another domain at each interval", async () => {
    const { harness, outages, job, attempted, process } = await paused();
    expect(attempted).toEqual([]);
    expect(process.runner.pausedReason(stateOf(harness, job))).toBe("dns_unavailable");
    expect(process.runner.forecast(stateOf(harness, job))).toEqual({ secondsLeft: null, pollAfterMs: 5_000 });
    for (let turn = 0; turn < 3; turn++) {
      outages.turn();
      await harness.clock.advance(1_000);
    }
    expect(new Set(attempted).size).toBe(3);
    await harness.clock.advance(600_000);
    expect([attempted.length, stateOf(harness, job).addressesFinished]).toEqual([3, 0]);
  });

  test("and after it the job resumes, and every address is verified and charged once", async () => {
    const { harness, outages, job, process } = await paused();
    outages.turn();
    await harness.clock.advance(1_000);
    outages.set(null);
    await harness.clock.advance(10_000);
    expect(stateOf(harness, job)).toMatchObject({ status: "completed", addressesFinished: 40, creditsCharged: 40 });
    expect(process.runner.pausedReason(stateOf(harness, job))).toBeNull();
    expect(harness.ledger.balance(BULK_ACCOUNT)).toEqual({ available: BULK_CREDITS - 40, held: 0 });
  });

  test("a crash loses nothing: the next process is paused, too, and resumes", async () => {
    const { harness, outages, job, attempt, process } = await paused();
    outages.turn();
    await harness.clock.advance(1_000);
    process.kill();
    const next = outageOf();
    next.set("smtp_unreachable");
    harness.start({ attempt, outages: next });
    await harness.clock.advance(60_000);
    expect(stateOf(harness, job)).toMatchObject({ status: "running", addressesFinished: 0 });
    outages.set(null);
    next.set(null);
    await harness.clock.advance(1_000);
    expect(stateOf(harness, job)).toMatchObject({ status: "completed", addressesFinished: 40, creditsCharged: 40 });
  });

  test("earlier results are kept", async () => {
    const harness = newHarness();
    const outages = outageOf();
    const job = await harness.order(oneADomain(10));
    const attempt = async ({ position }: OpenAddress) =>
      position < 4 ? bulkOutcome("mailbox_not_found") : soon(harness, 600_000);
    harness.start({ attempt, outages });
    await harness.clock.advance(1_000);
    outages.set("smtp_unreachable");
    await harness.clock.advance(60_000);
    expect(stateOf(harness, job)).toMatchObject({ status: "running", addressesFinished: 4, creditsCharged: 4 });
  });
});

describe("an attempt that throws", () => {
  test("is repeated after increasing waits, then ends as internal_error without charge", async () => {
    const harness = newHarness();
    const job = await harness.order(oneADomain(3));
    const attempted: number[] = [];
    const attempt = async ({ position }: OpenAddress): Promise<AttemptOutcome> => {
      if (position !== 1) return bulkOutcome("mailbox_exists");
      attempted.push(harness.clock.monotonicMs());
      throw new Error("a bug");
    };
    harness.start({ attempt });
    await harness.clock.advance(154_000);
    expect([attempted, stateOf(harness, job).addressesFinished]).toEqual([[0, 5_000, 35_000], 2]);
    await harness.clock.advance(2_000);
    expect(stateOf(harness, job)).toMatchObject({ status: "completed", creditsCharged: 2, creditsReleased: 1 });
    expect(harness.jobs.counts(job.number)).toContainEqual({ subStatus: "internal_error", rows: 1 });
    expect(harness.lines.filter((line) => line.includes("bug while verifying")).length).toBe(3);
  });

  test("once is only delayed", async () => {
    const harness = newHarness();
    const job = await harness.order(oneADomain(1));
    let failures = 1;
    const attempt = async () => {
      if (failures-- > 0) throw new Error("a bug");
      return bulkOutcome("mailbox_exists");
    };
    harness.start({ attempt });
    await harness.clock.advance(6_000);
    expect(stateOf(harness, job)).toMatchObject({ status: "completed", creditsCharged: 1 });
  });
});

for (const [way, stepMs] of [
  ["back", -86_400_000],
  ["forward", 86_400_000],
] as const)
  test(`a retry is on time although the wall clock was set ${way} by a day`, async () => {
    const harness = newHarness();
    const job = await harness.order(oneADomain(1));
    const attempt = async ({ dueAtMs }: OpenAddress) =>
      dueAtMs === 0 ? soon(harness, 600_000) : bulkOutcome("mailbox_exists");
    harness.start({ attempt });
    await harness.clock.advance(1_000);
    harness.step(stepMs);
    await harness.clock.advance(598_000);
    expect(stateOf(harness, job).status).toBe("running");
    await harness.clock.advance(3_000);
    expect(stateOf(harness, job).status).toBe("completed");
  });

test("a retry that was planned before the clock was set back is due at the start", async () => {
  const harness = newHarness();
  const job = await harness.order(oneADomain(2));
  harness.db.transact((tx) => {
    for (const [position, days] of [0, 1].entries())
      harness.lists.postpone(tx, job.number, {
        position,
        dueAtMs: harness.clock.nowMs() + 600_000 + days * 86_400_000,
      });
  });
  harness.start({ attempt: async () => bulkOutcome("mailbox_exists") });
  await harness.clock.advance(1_000);
  expect(stateOf(harness, job).addressesFinished).toBe(1);
});

test("no address is started while too many results are unwritten", async () => {
  const harness = newHarness();
  const job = await harness.order(oneADomain(UNWRITTEN_MAX + 2_000));
  let [isFull, hasRecovered]: [boolean, boolean] = [false, false];
  const commit: BulkHarness["db"]["commit"] = (work) =>
    isFull ? Promise.reject(Object.assign(new Error("full"), { code: "SQLITE_FULL" })) : harness.db.commit(work);
  let attempted = 0;
  const attempt = async () => {
    isFull = !hasRecovered;
    attempted++;
    return bulkOutcome("mailbox_exists");
  };
  const windowMax = 100;
  harness.start({ attempt, commit, windowMax });
  for (let turn = 0; turn < 400; turn++) await settle();
  await harness.clock.advance(1_000);
  expect(attempted).toBeGreaterThan(UNWRITTEN_MAX - 1_000);
  expect(attempted).toBeLessThan(UNWRITTEN_MAX + 1_000);
  [isFull, hasRecovered] = [false, true];
  for (let turn = 0; turn < 100 && stateOf(harness, job).status !== "completed"; turn++)
    await harness.clock.advance(1_000);
  expect(stateOf(harness, job).addressesFinished).toBe(UNWRITTEN_MAX + 2_000);
});
