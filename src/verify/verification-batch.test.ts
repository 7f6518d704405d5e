import { afterEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { FREE_OF_CHARGE, Ledger } from "../accounts/billing/store.ts";
import { AppError, errorCode } from "../foundation/base/errors.ts";
import type { Fact } from "../foundation/db/facts.ts";
import { IdempotencyStore } from "../foundation/db/idempotency.ts";
import { type Db, openDb } from "../foundation/db/open.ts";
import { createTestClock } from "../testing/clock.ts";
import { evidenceWith } from "../testing/evidence.ts";
import { watchOthers } from "../testing/other-account.ts";
import { INTERNAL_ERROR, RESULT_EXAMPLE } from "./result.ts";
import { packEvidence, VerificationStore, type VerificationRow } from "./store.ts";
import { type VerificationOutcome, VerificationWriter } from "./verification-writer.ts";

const opened: Db[] = [];
afterEach(() => {
  for (const db of opened.splice(0)) db.close();
});

/** Accounts with their credits: one has too few for long sequences. */
const CREDITS = { rich: 1_000, poor: 3, other: 50 };
type Account = keyof typeof CREDITS;

const writerOf = () => {
  const result = openDb(":memory:");
  if (!result.ok) throw new Error("no database");
  const db = result.value;
  opened.push(db);
  const ledger = new Ledger(db);
  for (const [accountId, credits] of Object.entries(CREDITS)) {
    db.sqlite.run("INSERT INTO accounts (id, name, plan, created_at_ms) VALUES (?1, ?1, 'free', 0)", [accountId]);
    db.transact((tx) => ledger.grant(tx, { accountId, credits, note: "test", atMs: 0 }));
  }
  const facts: Fact[] = [];
  db.onCommitted((fact) => facts.push(fact));
  const clock = createTestClock();
  const idempotency = new IdempotencyStore({ db, clock });
  const store = new VerificationStore(db);
  const writer = new VerificationWriter(
    { db, clock },
    { store, credits: { live: ledger, test: FREE_OF_CHARGE }, idempotency },
  );
  return { db, writer, store, ledger, facts };
};
type Fixture = ReturnType<typeof writerOf>;

/** A write, before it is known what is stored. */
interface Step {
  readonly kind: "insert" | "update";
  readonly account: Account;
  readonly mode: "live" | "test";
  /** Id and address: one that occurs twice is a conflict. */
  readonly which: number;
  readonly address: number;
  readonly outcome: "charged" | "free" | "retry" | "unknown";
  readonly key: number | null;
}

const CHARGED: VerificationOutcome = {
  ...{
    result: RESULT_EXAMPLE,
    evidence: packEvidence(evidenceWith()),
    chargeable: true,
    provider: null,
    attempts: 1,
    endedMs: 5_000,
  },
};
const OUTCOMES: Readonly<Record<Step["outcome"], VerificationOutcome | null>> = {
  charged: CHARGED,
  free: {
    result: { ...RESULT_EXAMPLE, ...INTERNAL_ERROR },
    ...{ evidence: null, chargeable: false, provider: null, attempts: 2, endedMs: null },
  },
  retry: { evidence: packEvidence(evidenceWith({ toxic: "x.example" })), attempts: 1, dueAtMs: 9_000 },
  unknown: null,
};

const rowOf = ({ account, mode, which, address }: Step): VerificationRow => ({
  ...{ id: `id-${which}`, accountId: account, keyId: `key of ${account}`, mode, source: null },
  ...{ email: `a${address}@x.example`, normalizedEmail: `a${address}@x.example`, status: "pending", verdict: null },
  ...{ subStatus: null, result: null, createdAtMs: 1_000, completedAtMs: null, dueAtMs: 2_000, attempts: 0 },
});

const write = ({ writer }: Fixture, step: Step): Promise<unknown> => {
  const [row, outcome] = [rowOf(step), OUTCOMES[step.outcome]];
  if (step.kind === "update") return writer.update(row, outcome ?? CHARGED);
  const requestHash = `hash ${step.address}`;
  const request = step.key === null ? null : { keyId: row.keyId, idempotencyKey: `key-${step.key}`, requestHash };
  return writer.insert(row, outcome, request);
};

/** What a write came to: the row that it returned, or the code of the error. */
const endOf = (writing: Promise<unknown>): Promise<unknown> =>
  writing.then(
    (row) => row ?? "updated",
    (error: unknown) => (error instanceof AppError ? [error.code, error.message] : errorCode(error)),
  );

const TABLES = ["verifications", "verification_evidence", "ledger", "accounts", "usage_daily", "idempotency_keys"];

const contentOf = ({ db }: Fixture) =>
  Object.fromEntries(TABLES.map((table) => [table, db.sqlite.query(`SELECT * FROM ${table}`).values()]));

/** Credits by move, and how often each result was counted. */
const sumsOf = (facts: readonly Fact[]) => {
  const sums: Record<string, number> = {};
  for (const fact of facts) {
    const [name, by] = fact.kind === "credits" ? [fact.move, fact.credits] : [JSON.stringify(fact), 1];
    sums[name] = (sums[name] ?? 0) + by;
  }
  return sums;
};

const step = fc.record<Step>({
  kind: fc.constantFrom("insert", "insert", "insert", "update"),
  account: fc.constantFrom("rich", "poor", "other"),
  mode: fc.constantFrom("live", "live", "test"),
  which: fc.nat(40),
  address: fc.nat(30),
  outcome: fc.constantFrom("charged", "charged", "free", "retry", "unknown"),
  key: fc.option(fc.nat(5), { freq: 3 }),
});

const STEP: Step = {
  ...{ kind: "insert", account: "rich", mode: "live", which: 0, address: 0, outcome: "charged", key: null },
};
const charged = (which: number, parts: Partial<Step> = {}): Step => ({ ...STEP, which, address: which, ...parts });

describe("verifications that one transaction stores", () => {
  test("leave the same rows, responses and facts as those that are stored one by one", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const [alone, together] = [writerOf(), writerOf()];
        const ends: unknown[] = [];
        for (const one of steps) ends.push(await endOf(write(alone, one)));
        expect(await Promise.all(steps.map((one) => endOf(write(together, one))))).toEqual(ends);
        expect(contentOf(together)).toEqual(contentOf(alone));
        expect(sumsOf(together.facts)).toEqual(sumsOf(alone.facts));
        for (const accountId of Object.keys(CREDITS))
          expect(together.ledger.balance(accountId)).toEqual(together.ledger.sum(accountId));
      }),
      { numRuns: 60 },
    );
  });

  test("share their statements: one change of each account, one row of usage", async () => {
    const fixture = writerOf();
    fixture.db.sqlite.run("CREATE TEMP TABLE changed (id TEXT)");
    fixture.db.sqlite.run(
      "CREATE TEMP TRIGGER note AFTER UPDATE ON accounts BEGIN INSERT INTO changed VALUES (new.id); END",
    );
    const steps = Array.from({ length: 30 }, (_, n) => charged(n, { account: n % 3 === 0 ? "other" : "rich" }));
    await Promise.all(steps.map((one) => write(fixture, one)));
    expect(fixture.db.sqlite.query("SELECT id FROM changed ORDER BY id").values().flat()).toEqual(["other", "rich"]);
    expect(fixture.ledger.balance("rich")).toEqual({ available: CREDITS.rich - 20, held: 0 });
    const usage = fixture.db.sqlite.query("SELECT account_id, verifications, credits FROM usage_daily ORDER BY 1");
    expect(usage.values()).toEqual([
      ["other", 10, 10],
      ["rich", 20, 20],
    ]);
  });

  test("one that the database refuses fails alone, and takes nothing from another account", async () => {
    const fixture = writerOf();
    await write(fixture, charged(7, { account: "other" }));
    const steps = Array.from({ length: 12 }, (_, n) => charged(n, { address: n + 100 }));
    const { value } = await watchOthers(fixture.db.sqlite, { accountId: "rich" }, () =>
      Promise.all(steps.map((one) => endOf(write(fixture, one)))),
    );
    const failed = value.flatMap((end, at) => (typeof end === "string" ? [[at, end]] : []));
    expect(failed).toEqual([[7, "SQLITE_CONSTRAINT_PRIMARYKEY"]]);
    expect(fixture.ledger.balance("rich")).toEqual({ available: CREDITS.rich - 11, held: 0 });
    expect(fixture.ledger.sum("rich")).toEqual(fixture.ledger.balance("rich"));
    expect(fixture.facts.filter(({ kind }) => kind === "verification")).toHaveLength(12);
  });

  test("spend no credit twice: the first ones get what the account has, the others are 402", async () => {
    const fixture = writerOf();
    const steps = Array.from({ length: 5 }, (_, n) => charged(n, { account: "poor" }));
    const ends = await Promise.all(steps.map((one) => endOf(write(fixture, one))));
    const refusal = ["insufficient_credits", "Insufficient credits: 1 required, 0 available."];
    expect(ends.slice(CREDITS.poor)).toEqual([refusal, refusal]);
    expect(fixture.ledger.balance("poor")).toEqual({ available: 0, held: 0 });
  });
});
