import { describe, expect, test } from "bun:test";
import { settle } from "../testing/clock.ts";
import {
  type Ask,
  createRunnerFixtures,
  GREYLISTED_FINDING,
  heldAnswers,
  LIVE_CALLER,
} from "../testing/verification-runner.ts";
import { type Checks, STORE_AFTER_MS } from "./checks.ts";

const networkOf = createRunnerFixtures();
type Network = ReturnType<typeof networkOf>;

const WAIT_MS = 90_000;

const orderOf = (checks: Checks, email = "ada@x.example", idempotencyKey: string | null = null, waitMs = WAIT_MS) =>
  checks.request(LIVE_CALLER, { email, source: null, idempotencyKey }, waitMs);

const count = ({ db }: Network, table: string): number =>
  db.sqlite.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()?.n ?? 0;

/** What is stored of verifications, and the balance of the account. */
const stored = (network: Network) => [count(network, "verifications"), network.spent(), network.held()];

/** The balance of the account becomes this. */
const leaveCredits = ({ db, ledger }: Network, credits: number): void => {
  const { accountId } = LIVE_CALLER;
  const change = credits - ledger.balance(accountId).available;
  db.transact((tx) => ledger.grant(tx, { accountId, credits: change, note: "test", atMs: 0 }));
};

const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => "no failure",
    (error: unknown) => (error instanceof Error && "code" in error ? error.code : error),
  );

describe("a verification whose first attempt ends at once", () => {
  test("is stored by one transaction: result, evidence, one entry of the ledger, usage", async () => {
    const network = networkOf();
    let commits = 0;
    const commit: Network["db"]["commit"] = (work) => {
      commits++;
      return network.db.commit(work);
    };
    const row = await orderOf(network.checksOf({ commit }).checks);
    expect(row).toMatchObject({ status: "completed", subStatus: "mailbox_exists", attempts: 1, dueAtMs: null });
    expect(network.store.find(row.id)).toEqual(row);
    expect(network.evidenceOf(row).conclusion?.sub_status).toBe("mailbox_exists");
    expect([commits, ...stored(network)]).toEqual([1, 1, 1, 0]);
    const entries = network.db.sqlite
      .query("SELECT kind, available, held FROM ledger WHERE reference = ?")
      .values(row.id);
    expect(entries).toEqual([["settle", -1, 0]]);
    expect(network.db.sqlite.query("SELECT verifications, credits FROM usage_daily").values()).toEqual([[1, 1]]);
  });

  test("without a response is not charged, and the ledger has no entry of it", async () => {
    const network = networkOf();
    const { checks } = network.checksOf({ ask: async () => ({ reading: "timeout", heard: false, reply: null }) });
    const row = await orderOf(checks);
    expect([row.subStatus, ...stored(network)]).toEqual(["smtp_timeout", 1, 0, 0]);
    const kinds = network.db.sqlite.query("SELECT kind FROM ledger WHERE reference = ?").values(row.id).flat();
    expect(kinds).toEqual([]);
  });

  test("with a retry is pending, with its evidence and the time of the retry", async () => {
    const network = networkOf();
    const ask: Ask = async ({ number }) => (number === 1 ? GREYLISTED_FINDING : {});
    const { checks } = network.checksOf({ ask });
    const ordered = orderOf(checks);
    await settle();
    const [pending] = network.store.due({ dueAtMs: 0, id: "" }, Number.MAX_SAFE_INTEGER, 2);
    expect(pending).toMatchObject({ status: "pending", attempts: 1, dueAtMs: network.clock.nowMs() + 60_000 });
    expect(pending && network.evidenceOf(pending).retries.length).toBe(1);
    expect(stored(network)).toEqual([1, 0, 1]);
    await network.clock.advance(60_000);
    expect((await ordered).subStatus).toBe("mailbox_exists");
    expect(stored(network)).toEqual([1, 1, 0]);
  });
});

describe("a verification whose first attempt takes longer", () => {
  test("is stored as pending after a moment, and completed later", async () => {
    const network = networkOf();
    const { ask, waiting } = heldAnswers();
    const ordered = orderOf(network.checksOf({ ask }).checks);
    await network.clock.advance(STORE_AFTER_MS - 1);
    expect(stored(network)).toEqual([0, 0, 0]);
    await network.clock.advance(1);
    expect(stored(network)).toEqual([1, 0, 1]);
    waiting[0]?.answer({});
    const row = await ordered;
    expect([row.status, ...stored(network)]).toEqual(["completed", 1, 1, 0]);
  });

  test("is stored before a response says that it is pending", async () => {
    const network = networkOf();
    const ordered = orderOf(network.checksOf({ ask: heldAnswers().ask }).checks, "ada@x.example", null, 10);
    await network.clock.advance(10);
    const row = await ordered;
    expect(row.status).toBe("pending");
    expect(network.store.find(row.id)).toEqual(row);
  });

  test("is stored as pending when the service stops", async () => {
    const network = networkOf();
    const { checks, runner } = network.checksOf({ ask: heldAnswers().ask });
    const ordered = orderOf(checks);
    await settle();
    const stopped = runner.stop();
    const row = await ordered;
    expect([row.status, network.statusOf(row), network.held()]).toEqual(["pending", "pending", 1]);
    await network.clock.advance(WAIT_MS);
    await stopped;
  });

  test("is stored as pending at once when no more may run", async () => {
    const network = networkOf();
    const { checks } = network.checksOf({ ask: heldAnswers().ask, runningMax: 1 });
    void orderOf(checks, "a@x.example");
    void orderOf(checks, "b@x.example");
    await settle();
    expect(stored(network)).toEqual([1, 0, 1]);
  });
});

describe("a request that is repeated before the first one is stored", () => {
  test("is the same verification: by its Idempotency-Key, and by its address", async () => {
    const network = networkOf();
    const { ask, waiting } = heldAnswers();
    const { checks } = network.checksOf({ ask });
    const ordered = [orderOf(checks, "ada@x.example", "k"), orderOf(checks, "ada@x.example", "k"), orderOf(checks)];
    await settle();
    expect(waiting.length).toBe(1);
    waiting[0]?.answer({});
    const ids = new Set((await Promise.all(ordered)).map(({ id }) => id));
    expect([ids.size, ...stored(network)]).toEqual([1, 1, 1, 0]);
  });

  test("is found later by an Idempotency-Key of its own", async () => {
    const network = networkOf();
    const { ask, waiting } = heldAnswers();
    const { checks } = network.checksOf({ ask });
    const [first, joined] = [orderOf(checks, "ada@x.example", "one"), orderOf(checks, "ada@x.example", "two")];
    await settle();
    waiting[0]?.answer({});
    const { id } = await first;
    expect((await joined).id).toBe(id);
    expect((await orderOf(checks, "ada@x.example", "two")).id).toBe(id);
    expect(waiting.length).toBe(1);
  });

  test("is 422 with another address", async () => {
    const network = networkOf();
    const { ask, waiting } = heldAnswers();
    const { checks } = network.checksOf({ ask });
    const first = orderOf(checks, "ada@x.example", "k");
    await settle();
    expect(await failureOf(orderOf(checks, "bob@x.example", "k"))).toBe("idempotency_key_reused");
    waiting[0]?.answer({});
    expect([(await first).status, ...stored(network)]).toEqual(["completed", 1, 1, 0]);
  });

  test("of another address, whose Idempotency-Key joined a verification meanwhile, is 422", async () => {
    const network = networkOf();
    const { ask, waiting } = heldAnswers();
    const { checks } = network.checksOf({ ask });
    void orderOf(checks, "ada@x.example");
    const joined = orderOf(checks, "ada@x.example", "k");
    const other = failureOf(orderOf(checks, "bob@x.example", "k"));
    await settle();
    waiting[0]?.answer({});
    await joined;
    waiting[1]?.answer({});
    expect(await other).toBe("idempotency_key_reused");
    expect(stored(network)).toEqual([1, 1, 0]);
  });
});

describe("credits", () => {
  test("that verifications under way need are not available to others", async () => {
    const network = networkOf();
    leaveCredits(network, 1);
    const { ask, waiting } = heldAnswers();
    const { checks } = network.checksOf({ ask });
    const first = orderOf(checks, "ada@x.example");
    await settle();
    expect(await failureOf(orderOf(checks, "bob@x.example"))).toBe("insufficient_credits");
    waiting[0]?.answer({});
    await first;
    expect(stored(network)).toEqual([1, 1, 0]);
    leaveCredits(network, 1);
    expect(
      await failureOf(Promise.all([orderOf(checks, "eve@x.example"), settle().then(() => waiting[1]?.answer({}))])),
    ).toBe("no failure");
  });

  test("that are gone when the attempt ends are 402: nothing is stored or charged", async () => {
    const network = networkOf();
    const { ask, waiting } = heldAnswers();
    const { checks, runner } = network.checksOf({ ask });
    const ordered = failureOf(orderOf(checks, "ada@x.example", "k"));
    await settle();
    leaveCredits(network, 0);
    waiting[0]?.answer({});
    expect(await ordered).toBe("insufficient_credits");
    await settle();
    expect([runner.running(), count(network, "idempotency_keys"), ...stored(network)]).toEqual([0, 0, 0, 0, 0]);
  });
});

test("a verification that cannot be stored is the failure of its request, and leaves nothing behind", async () => {
  const network = networkOf();
  let isFull: boolean = true;
  const full = Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
  const commit: Network["db"]["commit"] = (work) => (isFull ? Promise.reject(full) : network.db.commit(work));
  const { checks, runner } = network.checksOf({ commit });
  expect(await failureOf(orderOf(checks, "ada@x.example", "k"))).toBe("SQLITE_FULL");
  await settle();
  expect([runner.running(), network.clock.pending(), ...stored(network)]).toEqual([0, 0, 0, 0, 0]);
  isFull = false;
  expect((await orderOf(checks, "ada@x.example", "k")).status).toBe("completed");
  expect(stored(network)).toEqual([1, 1, 0]);
});

test("the same Idempotency-Key of two API keys is two requests, also while the first is not stored yet", async () => {
  const network = networkOf();
  const { ask, waiting } = heldAnswers();
  const { checks } = network.checksOf({ ask });
  const first = orderOf(checks, "ada@x.example", "same");
  const other = { ...LIVE_CALLER, keyId: "key-2" };
  const second = checks.request(other, { email: "bob@x.example", source: null, idempotencyKey: "same" }, WAIT_MS);
  await settle();
  expect(count(network, "verifications")).toBe(0);
  expect(waiting).toHaveLength(2);
  for (const { answer } of waiting) answer({});
  const rows = await Promise.all([first, second]);
  expect(rows.map(({ keyId, email }) => [keyId, email])).toEqual([
    ["key-1", "ada@x.example"],
    ["key-2", "bob@x.example"],
  ]);
  expect(stored(network)).toEqual([2, 2, 0]);
});
