import { VerificationWriter } from "../verify/verification-writer.ts";
import { afterEach, expect } from "bun:test";
import type { Clock } from "../foundation/base/clock.ts";
import { createLog } from "../foundation/base/log.ts";
import { newId, systemRandom } from "../foundation/base/secrets.ts";
import { FREE_OF_CHARGE, Ledger } from "../accounts/billing/store.ts";
import { IdempotencyStore } from "../foundation/db/idempotency.ts";
import { type Db, openDb } from "../foundation/db/open.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import type { Caller } from "../foundation/http/guard.ts";
import { classifyAddress } from "../verify/address-evidence.ts";
import { OwnAttempts } from "../verify/attempts.ts";
import { Checks } from "../verify/checks.ts";
import { VerificationEngine } from "../verify/engine.ts";
import { TEST_PLATFORM } from "../verify/test-platform.ts";
import type { OutageJudgement } from "../verify/smtp/outages.ts";
import type { DomainEvidence, Evidence, ProbeFinding } from "../verify/evidence.ts";
import type { MailboxProbe } from "../verify/domain-evidence.ts";
import { Runner } from "../verify/runner.ts";
import { VerificationStore, type VerificationRow } from "../verify/store.ts";
import { createTestClock } from "./clock.ts";
import { domainWith, findingWith } from "./evidence.ts";

const ACCOUNT = "account-1";
/** With a live key of that account. */
export const LIVE_CALLER: Caller = {
  ...{ keyId: "key-1", accountId: ACCOUNT, mode: "live", scopes: [] },
  rate: { perSecond: 1, burst: 1 },
};
/** A finding after which a retry is planned. */
export const GREYLISTED_FINDING: Partial<ProbeFinding> = {
  reading: "greylisted",
  retryable: true,
  reply: "450 4.2.0 Greylisted",
};

/** A database with one account of 1,000,000 credits. */
const databaseOf = (opened: Db[]) => {
  const result = openDb(":memory:");
  if (!result.ok) throw new Error("no database");
  const db = result.value;
  opened.push(db);
  db.sqlite.run("INSERT INTO accounts (id, name, plan, created_at_ms) VALUES (?, 'one', 'free', 0)", [ACCOUNT]);
  const ledger = new Ledger(db);
  db.transact((tx) => ledger.grant(tx, { accountId: ACCOUNT, credits: 1_000_000, note: "test", atMs: 0 }));
  const store = new VerificationStore(db);
  return { db, ledger, store };
};

/** The finding of the mail host, by the probe. */
export type Ask = (question: MailboxProbe) => Promise<Partial<ProbeFinding>>;

interface ProcessOptions {
  readonly ask?: Ask;
  readonly retryWaitsS?: readonly number[];
  readonly runningMax?: number;
  /** The domain by DNS; default: it has a mail host. */
  readonly domain?: () => Partial<DomainEvidence>;
  /** Whether there is an outage. */
  readonly judged?: OutageJudgement;
  /** What the database's `commit` is replaced by. */
  readonly commit?: Db["commit"];
}

/** Makes databases for the tests of one file, with processes on them; closes them after each test. */
export const createRunnerFixtures = () => {
  const opened: Db[] = [];
  afterEach(() => {
    for (const db of opened.splice(0)) db.close();
  });
  return () => fixtureOf(opened);
};

const engineOf = (
  clock: Clock,
  { ask = async () => ({}), retryWaitsS = [60], domain: dns = () => ({}), judged = "believed" }: ProcessOptions,
) =>
  new VerificationEngine(
    {
      ...{ classify: classifyAddress, matchSuppression: null, checkBlocklists: null, retryWaitsS, simulation: null },
      lookUpDomain: async ({ domain }) => domainWith({ name: domain, ...dns() }),
      async probeMailbox(probe) {
        const at = new Date(clock.nowMs()).toISOString();
        const finding = findingWith(await ask(probe));
        const attempt = { number: probe.number, started_at: at, finished_at: at, sessions: [], finding };
        return { attempt, randomRecipient: probe.randomRecipient ?? `random@${probe.address.domain}` };
      },
      judgeOutage: async () => judged,
    },
    clock,
  );

/** A pending verification with a live key. */
const rowOf = (email: string): VerificationRow => ({
  ...{ id: newId(), accountId: ACCOUNT, keyId: "key-1", mode: "live", email, normalizedEmail: email, source: null },
  ...{ status: "pending", verdict: null, subStatus: null, result: null, createdAtMs: 0, completedAtMs: null },
  ...{ dueAtMs: 0, attempts: 0 },
});

interface Process {
  readonly checks: Checks;
  readonly runner: Runner;
}

/** Each item is committed alone. */
const commitsBy =
  (commit: Db["commit"]): Db["commitsOf"] =>
  (work) =>
  async (item) => {
    const [value] = await commit((tx) => work(tx, [item]));
    if (value === undefined) throw new Error("the item came to nothing");
    return value;
  };

const startProcess = (
  { db, ...runtime }: Runtime,
  { store, live }: { readonly store: VerificationStore; readonly live: Ledger },
  { runningMax, commit, ...options }: ProcessOptions,
): Process => {
  const onDatabase = { ...runtime, db: commit === undefined ? db : { ...db, commit, commitsOf: commitsBy(commit) } };
  const { clock } = runtime;
  const credits = { live, test: FREE_OF_CHARGE };
  const idempotency = new IdempotencyStore(onDatabase);
  const engines = { live: engineOf(clock, options), test: new VerificationEngine(TEST_PLATFORM, clock) };
  const deps = {
    store,
    engines,
    attempts: { live: new OwnAttempts(engines.live), test: new OwnAttempts(engines.test) },
    credits,
    writer: new VerificationWriter(onDatabase, { store, credits, idempotency }),
  };
  const runner = new Runner(onDatabase, { ...deps, ...(runningMax === undefined ? {} : { runningMax }) });
  return { runner, checks: new Checks(onDatabase, { ...deps, runner, idempotency }) };
};

const fixtureOf = (opened: Db[]) => {
  const { db, ledger, store } = databaseOf(opened);
  const clock = createTestClock();
  const lines: string[] = [];
  const log = createLog("info", clock, (line) => lines.push(line));
  let stepMs = 0;
  /** The wall clock can be set; durations do not notice. */
  const steppable = { ...clock, nowMs: () => clock.nowMs() + stepMs };

  /** A new process with its use cases; of an earlier one it has only the rows. */
  const checksOf = (options: ProcessOptions = {}): Process => {
    const runtime = { db, clock: steppable, log, random: systemRandom };
    return startProcess(runtime, { store, live: ledger }, options);
  };
  const processOf = (options?: ProcessOptions): Runner => checksOf(options).runner;

  const order = async (email = "ada@x.example", parts: Partial<VerificationRow> = {}): Promise<VerificationRow> => {
    const row = { ...rowOf(email), createdAtMs: steppable.nowMs(), dueAtMs: clock.nowMs(), ...parts };
    db.transact((tx) => {
      if (row.mode === "live") ledger.hold(tx, { accountId: ACCOUNT, reference: row.id, atMs: row.createdAtMs });
      store.insert(tx, row);
    });
    return row;
  };

  return {
    ...{ db, ledger, store, clock, lines, processOf, checksOf, order },
    step(ms: number): void {
      stepMs += ms;
    },
    statusOf: ({ id }: VerificationRow) => {
      const row = store.find(id);
      return row?.status === "completed" ? row.subStatus : row?.status;
    },
    evidenceOf: ({ id }: VerificationRow): Evidence => {
      const evidence = store.findEvidence(id);
      if (evidence === undefined) throw new Error(`no evidence of ${id}`);
      return evidence;
    },
    spent: () => ledger.totals(ACCOUNT).spent,
    /** The stored balance, when it equals the sum of the ledger. */
    held: () => {
      expect(ledger.sum(ACCOUNT)).toEqual(ledger.balance(ACCOUNT));
      return ledger.balance(ACCOUNT).held;
    },
    ends: () => db.sqlite.query("SELECT count(*) AS n FROM ledger WHERE kind IN ('settle', 'release')").get(),
  };
};

/** Findings that the test gives one by one. */
export const heldAnswers = () => {
  const waiting: Array<{ question: MailboxProbe; answer: (finding: Partial<ProbeFinding>) => void }> = [];
  const ask: Ask = (question) => new Promise((answer) => waiting.push({ question, answer }));
  return { ask, waiting };
};
