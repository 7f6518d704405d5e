import { describe, expect, test } from "bun:test";
import { createApps } from "../../testing/app.ts";
import { BULK_ACCOUNT, BULK_CREDITS, bulkOutcome, createBulkHarness } from "../../testing/bulk-harness.ts";
import { BULK_PATH, postList } from "../../testing/bulk-requests.ts";
import { createJobRetry } from "./job-changes.ts";
import { holdReference } from "../results/job-store.ts";
import type { AttemptedAddress } from "./job-writer.ts";
import { JSON_LIST_FORMAT } from "../results/results-csv.ts";

const newHarness = createBulkHarness();
const start = createApps();

const finished = (position: number): AttemptedAddress => ({
  position,
  rows: 1,
  isRetry: false,
  outcome: bulkOutcome("mailbox_exists"),
});

describe("results", () => {
  test("that arrive after the end of their job are dropped and cost nothing", async () => {
    const harness = newHarness();
    const { db, jobs, ledger, writer } = harness;
    const { number } = await harness.order(["a@x.example", "b@x.example"]);
    db.transact((tx) => writer.abort(tx, jobs.getExisting(number), "cancelled"));
    expect(db.transact((tx) => writer.writeAttempts(tx, number, [finished(0)]))).toBe(false);
    expect(jobs.getExisting(number)).toMatchObject({ status: "cancelled", addressesFinished: 0, creditsCharged: 0 });
    expect(ledger.balance(BULK_ACCOUNT)).toEqual({ available: BULK_CREDITS, held: 0 });
    expect(db.transact((tx) => writer.writeAttempts(tx, 999, [finished(0)]))).toBe(false);
  });

  test("of an address that has finished count and cost nothing", async () => {
    const harness = newHarness();
    const { db, jobs, ledger, writer } = harness;
    const { number } = await harness.order(["a@x.example", "b@x.example"]);
    for (let time = 0; time < 2; time++)
      expect(db.transact((tx) => writer.writeAttempts(tx, number, [finished(0)]))).toBe(true);
    expect(jobs.getExisting(number)).toMatchObject({ rowsFinished: 1, addressesFinished: 1, creditsCharged: 1 });
    expect(jobs.counts(number)).toEqual([{ subStatus: "mailbox_exists", rows: 1 }]);
    expect(ledger.balance(BULK_ACCOUNT)).toEqual({ available: BULK_CREDITS - 2, held: 1 });
  });
});

test("evidence is kept while an address waits for its retry, and dropped with a later result that has none", async () => {
  const harness = newHarness();
  const { db, writer } = harness;
  const { number } = await harness.order(["a@x.example", "b@x.example"]);
  const write = (outcome: AttemptedAddress["outcome"], isRetry: boolean) =>
    db.transact((tx) => writer.writeAttempts(tx, number, [{ position: 0, rows: 1, isRetry, outcome }]));
  const stored = () => (db.sqlite.query("SELECT count(*) AS n FROM bulk_evidence").get() as { n: number }).n;
  const later = { kind: "later", dueAtMs: 1, group: null, trouble: null } as const;
  write({ ...later, evidence: Buffer.from("{}") }, false);
  write({ ...later, evidence: null }, true);
  expect(stored()).toBe(1);
  write(bulkOutcome("mailbox_exists"), true);
  expect(stored()).toBe(0);
});

test("a list with a test key needs no credits and releases none when it is cancelled", async () => {
  const app = start();
  const key = app.newKey();
  app.leaveCredits(1);
  const { status, id } = await postList(app, { key, body: { emails: ["pending@a.example", "pending@b.example"] } });
  expect(status).toBe(202);
  expect(app.credits()).toEqual({ available: 1, held: 0 });
  const { body } = await app.request("POST", `${BULK_PATH}/${id}/cancel`, { key });
  expect(body).toMatchObject({ status: "cancelled", credits: { held: 0, charged: 0, released: 0 } });
  expect(app.credits()).toEqual({ available: 1, held: 0 });
});

test("holds have the id of the job as reference, and of later rounds the number of the round as well", () => {
  expect([0, 1].map((round) => holdReference({ id: "job", round }))).toEqual(["job", "job/1"]);
});

test("a row stores its spelling only where it differs from that of the address", async () => {
  const harness = newHarness();
  await harness.order(["a@x.example", "A@x.example", "a@x.example"]);
  const rows = harness.db.sqlite.query("SELECT submitted_email AS email FROM bulk_rows ORDER BY row_index").all();
  expect(rows).toEqual([{ email: null }, { email: "A@x.example" }, { email: null }]);
});

test("a list whose addresses use up the credits keeps the rows that repeat them", async () => {
  const harness = newHarness();
  const { db, ledger, lists } = harness;
  const move = { accountId: BULK_ACCOUNT, reference: "other", atMs: 0 };
  db.transact((tx) => ledger.hold(tx, move, BULK_CREDITS - 500));
  const emails = Array.from({ length: 500 }, (_, n) => `u${n}@x.example`);
  const { number, rowsTotal } = await harness.order([...emails, ...emails]);
  expect(rowsTotal).toBe(1_000);
  expect(lists.rowAt(number, 999)).toBeDefined();
});

test("a list that lost rows for lack of credits is refused even when credits are granted before its end", async () => {
  const { db, ledger, intake } = newHarness();
  const move = { accountId: BULK_ACCOUNT, reference: "other", atMs: 0 };
  db.transact((tx) => ledger.hold(tx, move, BULK_CREDITS - 1));
  const rows = Array.from({ length: 3 }, (_, n) => ({
    rowIndex: n,
    cells: [`u${n}@x.example`],
    email: `u${n}@x.example`,
  }));
  const batches = (async function* () {
    yield rows;
    db.transact((tx) => ledger.grant(tx, { accountId: BULK_ACCOUNT, credits: 10, note: "late", atMs: 0 }));
  })();
  const incoming = {
    name: null,
    source: null,
    webhookUrl: null,
    notifyEmail: null,
    reading: null,
    format: JSON_LIST_FORMAT,
    rowsMax: 3,
    batches,
  };
  const job = await intake.create({ accountId: BULK_ACCOUNT, keyId: "key-1", mode: "live" }, incoming);
  await expect(intake.writeRows(job, incoming)).rejects.toMatchObject({
    code: "insufficient_credits",
  });
});

test("a retry is refused for a job that is unfinished, and for one that was retried since its addresses were counted", async () => {
  const harness = newHarness();
  const { db, jobs, ledger, writer } = harness;
  const { number } = await harness.order(["a@x.example"]);
  const retry = createJobRetry(harness.runtime, harness);
  const begin = (job = jobs.getExisting(number)) => db.transact((tx) => retry.begin(tx, job, 1));
  const unsettled = { ...finished(0), outcome: bulkOutcome("smtp_timeout", false) };
  expect(begin()).toMatchObject({ code: "conflict" });
  db.transact((tx) => writer.writeAttempts(tx, number, [unsettled]));
  const counted = jobs.getExisting(number);
  expect(begin()).toBeNull();
  await retry.reset(number, () => false);
  db.transact((tx) => writer.writeAttempts(tx, number, [unsettled]));
  expect(jobs.getExisting(number).status).toBe("completed");
  expect(begin(counted)).toMatchObject({ code: "conflict", details: { message: expect.stringContaining("Another") } });
  expect(ledger.balance(BULK_ACCOUNT)).toEqual({ available: BULK_CREDITS, held: 0 });
});
