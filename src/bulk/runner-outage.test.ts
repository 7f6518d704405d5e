import { describe, expect, test } from "bun:test";
import type { PausedReason } from "../probe/outages.ts";
import {
  BULK_ACCOUNT,
  BULK_CREDITS,
  bulkOutcome,
  type BulkHarness,
  createBulkHarness,
} from "../testing/bulk-harness.ts";
import { settle } from "../testing/clock.ts";
import type { AttemptOutcome } from "./attempt.ts";
import type { OpenAddress } from "./list-store.ts";
import { UNWRITTEN_MAX } from "./result-batches.ts";
import type { JobRow } from "./job-store.ts";

const newWorld = createBulkHarness();
const oneADomain = (count: number): string[] => Array.from({ length: count }, (_, n) => `user@d${n}.example`);

const stateOf = (world: BulkHarness, { number }: JobRow): JobRow => {
  const job = world.jobs.get(number);
  if (job === undefined) throw new Error("the job is gone");
  return job;
};

const soon = (world: BulkHarness, afterMs = 5_000): AttemptOutcome => ({
  kind: "later",
  dueAtMs: world.clock.nowMs() + afterMs,
  evidence: null,
  group: null,
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
    const world = newWorld();
    const outages = outageOf();
    const job = await world.order(oneADomain(count));
    const asked: string[] = [];
    const attempt = async ({ email }: OpenAddress) => {
      asked.push(email);
      return outages.current() === null ? bulkOutcome("mailbox_exists") : soon(world);
    };
    outages.set("dns_unavailable");
    const process = world.start({ attempt, outages });
    await world.clock.advance(100);
    return { world, outages, job, asked, attempt, process };
  };

  test("a job stands still, says why, and tries one address at each turn, of another domain each time", async () => {
    const { world, outages, job, asked, process } = await paused();
    expect(asked).toEqual([]);
    expect(process.runner.pausedReason(stateOf(world, job))).toBe("dns_unavailable");
    expect(process.runner.forecast(stateOf(world, job))).toEqual({ secondsLeft: null, pollAfterMs: 5_000 });
    for (let turn = 0; turn < 3; turn++) {
      outages.turn();
      await world.clock.advance(1_000);
    }
    expect(new Set(asked).size).toBe(3);
    await world.clock.advance(600_000);
    expect([asked.length, stateOf(world, job).addressesFinished]).toEqual([3, 0]);
  });

  test("and after it the job goes on by itself, everything is checked once and charged once", async () => {
    const { world, outages, job, process } = await paused();
    outages.turn();
    await world.clock.advance(1_000);
    outages.set(null);
    await world.clock.advance(10_000);
    expect(stateOf(world, job)).toMatchObject({ status: "completed", addressesFinished: 40, creditsCharged: 40 });
    expect(process.runner.pausedReason(stateOf(world, job))).toBeNull();
    expect(world.ledger.balance(BULK_ACCOUNT)).toEqual({ available: BULK_CREDITS - 40, held: 0 });
  });

  test("a crash loses nothing: the next process pauses as well, and goes on", async () => {
    const { world, outages, job, attempt, process } = await paused();
    outages.turn();
    await world.clock.advance(1_000);
    process.kill();
    const next = outageOf();
    next.set("smtp_unreachable");
    world.start({ attempt, outages: next });
    await world.clock.advance(60_000);
    expect(stateOf(world, job)).toMatchObject({ status: "running", addressesFinished: 0 });
    outages.set(null);
    next.set(null);
    await world.clock.advance(1_000);
    expect(stateOf(world, job)).toMatchObject({ status: "completed", addressesFinished: 40, creditsCharged: 40 });
  });

  test("what was concluded before stays", async () => {
    const world = newWorld();
    const outages = outageOf();
    const job = await world.order(oneADomain(10));
    const attempt = async ({ position }: OpenAddress) =>
      position < 4 ? bulkOutcome("mailbox_not_found") : soon(world, 600_000);
    world.start({ attempt, outages });
    await world.clock.advance(1_000);
    outages.set("smtp_unreachable");
    await world.clock.advance(60_000);
    expect(stateOf(world, job)).toMatchObject({ status: "running", addressesFinished: 4, creditsCharged: 4 });
  });
});

describe("work that ends in a bug", () => {
  test("is tried again after growing waits, then ends as internal_error, free, without a restart", async () => {
    const world = newWorld();
    const job = await world.order(oneADomain(3));
    const asked: number[] = [];
    const attempt = async ({ position }: OpenAddress): Promise<AttemptOutcome> => {
      if (position !== 1) return bulkOutcome("mailbox_exists");
      asked.push(world.clock.monotonicMs());
      throw new Error("a bug");
    };
    world.start({ attempt });
    await world.clock.advance(154_000);
    expect([asked, stateOf(world, job).addressesFinished]).toEqual([[0, 5_000, 35_000], 2]);
    await world.clock.advance(2_000);
    expect(stateOf(world, job)).toMatchObject({ status: "completed", creditsCharged: 2, creditsReleased: 1 });
    expect(world.jobs.counts(job.number)).toContainEqual({ subStatus: "internal_error", rows: 1 });
    expect(world.lines.filter((line) => line.includes("bug while verifying")).length).toBe(3);
  });

  test("once costs nothing but the wait", async () => {
    const world = newWorld();
    const job = await world.order(oneADomain(1));
    let failures = 1;
    const attempt = async () => {
      if (failures-- > 0) throw new Error("a bug");
      return bulkOutcome("mailbox_exists");
    };
    world.start({ attempt });
    await world.clock.advance(6_000);
    expect(stateOf(world, job)).toMatchObject({ status: "completed", creditsCharged: 1 });
  });
});

for (const [way, stepMs] of [
  ["back", -86_400_000],
  ["forward", 86_400_000],
] as const)
  test(`a retry comes at its time although the wall clock was set ${way} by a day`, async () => {
    const world = newWorld();
    const job = await world.order(oneADomain(1));
    const attempt = async ({ dueAtMs }: OpenAddress) =>
      dueAtMs === 0 ? soon(world, 600_000) : bulkOutcome("mailbox_exists");
    world.start({ attempt });
    await world.clock.advance(1_000);
    world.step(stepMs);
    await world.clock.advance(598_000);
    expect(stateOf(world, job).status).toBe("running");
    await world.clock.advance(3_000);
    expect(stateOf(world, job).status).toBe("completed");
  });

test("a retry that was planned before the clock was set back is due at the start", async () => {
  const world = newWorld();
  const job = await world.order(oneADomain(2));
  world.db.transact((tx) => {
    for (const [position, days] of [0, 1].entries())
      world.lists.postpone(tx, job.number, { position, dueAtMs: world.clock.nowMs() + 600_000 + days * 86_400_000 });
  });
  world.start({ attempt: async () => bulkOutcome("mailbox_exists") });
  await world.clock.advance(1_000);
  expect(stateOf(world, job).addressesFinished).toBe(1);
});

test("no more is begun than may be unwritten", async () => {
  const world = newWorld();
  const job = await world.order(oneADomain(UNWRITTEN_MAX + 2_000));
  let [isFull, isMended]: [boolean, boolean] = [false, false];
  const commit: BulkHarness["db"]["commit"] = (work) =>
    isFull ? Promise.reject(Object.assign(new Error("full"), { code: "SQLITE_FULL" })) : world.db.commit(work);
  let asked = 0;
  const attempt = async () => {
    isFull = !isMended;
    asked++;
    return bulkOutcome("mailbox_exists");
  };
  const windowMax = 100;
  world.start({ attempt, commit, windowMax });
  for (let turn = 0; turn < 400; turn++) await settle();
  await world.clock.advance(1_000);
  expect(asked).toBeGreaterThan(UNWRITTEN_MAX - 1_000);
  expect(asked).toBeLessThan(UNWRITTEN_MAX + 1_000);
  [isFull, isMended] = [false, true];
  for (let turn = 0; turn < 100 && stateOf(world, job).status !== "completed"; turn++) await world.clock.advance(1_000);
  expect(stateOf(world, job).addressesFinished).toBe(UNWRITTEN_MAX + 2_000);
});
