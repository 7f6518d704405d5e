import { afterEach } from "bun:test";
import { steadyTime } from "../base/clock.ts";
import type { Outages } from "../probe/outages.ts";
import { createLog } from "../base/log.ts";
import { Ledger } from "../billing/store.ts";
import type { AttemptAddress, AttemptOutcome } from "../bulk/attempt.ts";
import type { ListRow } from "../bulk/csv.ts";
import { BulkIntake } from "../bulk/intake.ts";
import type { OpenAddress } from "../bulk/list-store.ts";
import { ListStore } from "../bulk/list-store.ts";
import { JobWriter } from "../bulk/job-writer.ts";
import { JSON_LIST_FORMAT } from "../bulk/results-csv.ts";
import { BulkRunner } from "../bulk/runner.ts";
import { JobStore, type JobRow } from "../bulk/job-store.ts";
import { type Db, openDb } from "../db/open.ts";
import type { SubStatus } from "../verify/result.ts";
import { testEngine } from "./evidence.ts";
import { createTestClock } from "./clock.ts";

export const BULK_ACCOUNT = "account-1";
export const OTHER_ACCOUNT = "account-2";
export const BULK_CREDITS = 1_000_000;

/** What an attempt at an address comes to. */
export const bulkOutcome = (subStatus: SubStatus, chargeable = true, group: string | null = null): AttemptOutcome => ({
  kind: "done",
  columns: { subStatus, qualityScore: 1, confidence: 1, signals: "pppppppppp", verifiedAtMs: 0 },
  chargeable,
  group,
  evidence: null,
});

const NO_OUTAGES = { current: () => null, takeTurn: () => false, onChange: () => undefined };
/** What is due later than this was planned by another clock. */
export const LONGEST_WAIT_MS = 3_600_000;

interface ProcessOptions {
  readonly attempt: (address: OpenAddress) => Promise<AttemptOutcome>;
  readonly windowMax?: number;
  readonly outages?: Pick<Outages, "current" | "takeTurn" | "onChange">;
  /** What the database's `commit` is replaced by. */
  readonly commit?: Db["commit"];
}

async function* batchesOf(emails: readonly string[]): AsyncGenerator<readonly ListRow[], void> {
  yield emails.map((email, rowIndex) => ({ rowIndex, cells: [email], email }));
}

const openOrThrow = (): Db => {
  const opened = openDb(":memory:");
  if (!opened.ok) throw new Error("no database");
  return opened.value;
};

/** Makes databases for lists, for the tests of one file, with processes on them; closes them after each test. */
export const createBulkHarness = () => {
  const opened: Db[] = [];
  afterEach(() => {
    for (const db of opened.splice(0)) db.close();
  });
  return () => {
    const db = openOrThrow();
    opened.push(db);
    return harnessOf(db);
  };
};

const harnessOf = (db: Db) => {
  const clock = createTestClock();
  let stepMs = 0;
  /** The wall clock can be set; durations do not notice. */
  const steppable = { ...clock, nowMs: () => clock.nowMs() + stepMs };
  const lines: string[] = [];
  const log = createLog("info", clock, (line) => lines.push(line));
  const runtime = { db, clock, log, random: { integer: () => 7 } };
  const [ledger, jobs, lists] = [new Ledger(db), new JobStore(db), new ListStore(db)];
  const writer = new JobWriter(runtime, { jobs, lists, ledger });
  const engines = { live: testEngine, test: testEngine };
  const intake = new BulkIntake(runtime, { engines, jobs, lists, writer, ledger });
  db.sqlite.run("INSERT INTO accounts (id, name, plan, created_at_ms) VALUES (?, 'one', 'free', 0)", [BULK_ACCOUNT]);
  db.sqlite.run("INSERT INTO accounts (id, name, plan, created_at_ms) VALUES (?, 'two', 'free', 0)", [OTHER_ACCOUNT]);
  for (const accountId of [BULK_ACCOUNT, OTHER_ACCOUNT])
    db.transact((tx) => ledger.grant(tx, { accountId, credits: BULK_CREDITS, note: "test", atMs: 0 }));

  return {
    runtime,
    db,
    clock,
    jobs,
    lists,
    ledger,
    writer,
    intake,
    lines,

    /** A process of its own: nothing of an earlier one is known to it but the rows. `kill` ends it as a crash would. */
    start({ attempt, windowMax = 100, commit = db.commit, outages = NO_OUTAGES }: ProcessOptions) {
      let alive = true;
      const never = () => Promise.withResolvers<never>().promise;
      const mortal: Db = { ...db, commit: (work) => (alive ? commit(work) : never()) };
      const tried: AttemptAddress = (address) => attempt(address);
      const runner = new BulkRunner(
        { ...runtime, db: mortal, clock: steppable },
        {
          ...{ jobs, lists, writer, outages, windowMax, attempt: tried },
          dueNowMs: steadyTime(steppable),
          longestWaitMs: LONGEST_WAIT_MS,
          load: { runningChecks: () => 0, checkMs: () => 0, lastShortageMs: () => Number.NEGATIVE_INFINITY },
        },
      );
      runner.start();
      const kill = (): void => {
        alive = false;
      };
      return { runner, kill };
    },

    step(ms: number): void {
      stepMs += ms;
    },

    /** A queued job of these addresses. */
    order: (emails: readonly string[], accountId = BULK_ACCOUNT): Promise<JobRow> =>
      intake.receive(
        { accountId, keyId: "key-1", mode: "live" },
        {
          name: null,
          source: null,
          webhookUrl: null,
          format: JSON_LIST_FORMAT,
          reading: null,
          rowsMax: emails.length,
          batches: batchesOf(emails),
        },
      ),
    events: (): string[] =>
      db.sqlite
        .query<{ type: string }, []>("SELECT type FROM outbox ORDER BY id")
        .all()
        .map(({ type }) => type),
  };
};

export type BulkHarness = ReturnType<typeof harnessOf>;
