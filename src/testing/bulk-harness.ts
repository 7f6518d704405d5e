import { afterEach } from "bun:test";
import { steadyTime } from "../foundation/base/clock.ts";
import type { Outages } from "../verify/smtp/outages.ts";
import { createLog } from "../foundation/base/log.ts";
import { FREE_OF_CHARGE, Ledger } from "../accounts/billing/store.ts";
import type { AttemptOutcome } from "../bulk/run/attempt.ts";
import type { ListRow } from "../bulk/reading/csv.ts";
import { BulkIntake, type IncomingList } from "../bulk/arrival/intake.ts";
import { ListStore, type OpenAddress } from "../bulk/results/list-store.ts";
import { type BulkStores, JobWriter } from "../bulk/run/job-writer.ts";
import { JSON_LIST_FORMAT } from "../bulk/results/results-csv.ts";
import { BulkRunner } from "../bulk/run/runner.ts";
import { JobStore, type JobRow } from "../bulk/results/job-store.ts";
import { type Db, openDb } from "../foundation/db/open.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import type { SubStatus } from "../verify/result.ts";
import { createTestClock } from "./clock.ts";
import { testEngine } from "./evidence.ts";

export const BULK_ACCOUNT = "account-1";
export const OTHER_ACCOUNT = "account-2";
export const BULK_CREDITS = 1_000_000;

/** The outcome of an attempt. */
export const bulkOutcome = (subStatus: SubStatus, chargeable = true, group: string | null = null): AttemptOutcome => ({
  kind: "done",
  columns: { subStatus, qualityScore: 1, confidence: 1, signals: "pppppppppp", verifiedAtMs: 0 },
  chargeable,
  group,
  trouble: null,
  evidence: null,
});

const NO_OUTAGES = { current: () => null, takeTurn: () => false, onChange: () => undefined };
/** No retry is planned later than this. */
export const LONGEST_WAIT_MS = 3_600_000;

interface ProcessOptions {
  readonly attempt: (address: OpenAddress) => Promise<AttemptOutcome>;
  readonly windowMax?: number;
  readonly outages?: Pick<Outages, "current" | "takeTurn" | "onChange">;
  /** Replaces the `commit` of the database. */
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

/** Creates databases with lists for the tests of one file; closes them after each test. */
export const createBulkHarness = () => {
  const opened: Db[] = [];
  afterEach(() => {
    for (const db of opened.splice(0)) db.close();
  });
  return () => {
    const db = openOrThrow();
    opened.push(db);
    return new BulkHarness(db);
  };
};

/** A database with two accounts, and the parts of bulk verification on it. */
export class BulkHarness {
  readonly clock = createTestClock();
  readonly lines: string[] = [];
  readonly engines = { live: testEngine, test: testEngine };
  readonly runtime: Runtime;
  readonly jobs: JobStore;
  readonly lists: ListStore;
  readonly ledger: Ledger;
  readonly credits: BulkStores["credits"];
  readonly writer: JobWriter;
  readonly intake: BulkIntake;
  #wallStepMs = 0;

  constructor(readonly db: Db) {
    const log = createLog("info", this.clock, (line) => this.lines.push(line));
    this.runtime = { db, clock: this.clock, log, random: { integer: () => 7 } };
    this.jobs = new JobStore(db);
    this.lists = new ListStore(db);
    this.ledger = new Ledger(db);
    this.credits = { live: this.ledger, test: FREE_OF_CHARGE };
    this.writer = new JobWriter(this.runtime, this);
    this.intake = new BulkIntake(this.runtime, this);
    for (const id of [BULK_ACCOUNT, OTHER_ACCOUNT]) {
      db.sqlite.run("INSERT INTO accounts (id, name, plan, created_at_ms) VALUES (?, ?, 'free', 0)", [id, id]);
      db.transact((tx) => this.ledger.grant(tx, { accountId: id, credits: BULK_CREDITS, note: "test", atMs: 0 }));
    }
  }

  /** Starts a process, which has only the rows of an earlier one. `kill` ends it like a crash. */
  start({ attempt, windowMax = 100, commit = this.db.commit, outages = NO_OUTAGES }: ProcessOptions) {
    let isAlive = true;
    const never = () => Promise.withResolvers<never>().promise;
    const db: Db = { ...this.db, commit: (work) => (isAlive ? commit(work) : never()) };
    const clock = { ...this.clock, nowMs: () => this.clock.nowMs() + this.#wallStepMs };
    const runner = new BulkRunner(
      { ...this.runtime, db, clock },
      {
        ...{ jobs: this.jobs, lists: this.lists, writer: this.writer, outages, windowMax, attempt },
        dueNowMs: steadyTime(clock),
        longestWaitMs: LONGEST_WAIT_MS,
        load: {
          runningChecks: () => 0,
          checkMs: () => 0,
          processorMs: () => 0,
          lastShortageMs: () => Number.NEGATIVE_INFINITY,
          loopDelay: () => null,
        },
      },
    );
    runner.start();
    const kill = (): void => {
      isAlive = false;
    };
    return { runner, kill };
  }

  /** Sets the wall clock; durations are not affected. */
  step(ms: number): void {
    this.#wallStepMs += ms;
  }

  /** Creates a queued job. */
  order(
    emails: readonly string[],
    accountId = BULK_ACCOUNT,
    about: Partial<Pick<IncomingList, "name" | "notifyEmail">> = {},
  ): Promise<JobRow> {
    const list = {
      name: null,
      source: null,
      webhookUrl: null,
      notifyEmail: null,
      format: JSON_LIST_FORMAT,
      reading: null,
      ...about,
    };
    return this.intake.receive(
      { accountId, keyId: "key-1", mode: "live" },
      { ...list, rowsMax: emails.length, batches: batchesOf(emails) },
    );
  }

  /** The types of all events, oldest first. */
  events(): string[] {
    const rows = this.db.sqlite.query<{ type: string }, []>("SELECT type FROM outbox ORDER BY id").all();
    return rows.map(({ type }) => type);
  }
}
