import { expect, spyOn, test } from "bun:test";
import { systemClock } from "../../foundation/base/clock.ts";
import type { Db } from "../../foundation/db/open.ts";
import { openAccountDeletion, openErasure } from "./open.ts";
import { createApps, ENDLESS, type TestApp } from "../../testing/app.ts";
import { BULK_PATH, fetchItems, postList } from "../../testing/bulk-requests.ts";
import { settle } from "../../testing/clock.ts";
import { createAddressPattern } from "./address-pattern.ts";

const start = createApps();

const erase = (app: TestApp, address: string) => {
  const pattern = createAddressPattern(address);
  if (!pattern.ok) throw new Error(pattern.error);
  return openErasure(app.db, pattern.value).erasure.run({ keepSuppression: true });
};

test("each transaction of an erasure and of a deletion leaves the database to a server for as long", async () => {
  const app = start();
  const key = app.newKey({ mode: "test" });
  await app.verify(key, "ada@example.com");
  const pauses: number[] = [];
  const after = spyOn(systemClock, "after").mockImplementation((delayMs, task) => {
    pauses.push(delayMs);
    queueMicrotask(task);
    return () => undefined;
  });
  try {
    let commits = 0;
    const db: Db = {
      ...app.db,
      transact() {
        throw new Error("a transaction without a pause");
      },
      commit(work) {
        commits += 1;
        return app.db.commit(work);
      },
    };
    const pattern = createAddressPattern("ada@example.com");
    if (!pattern.ok) throw new Error(pattern.error);
    const erased = await openErasure(db, pattern.value).erasure.run({ keepSuppression: true });
    expect(erased).toMatchObject({ verifications: 1 });
    const { store, deletion } = openAccountDeletion(db);
    const account = store.find(app.service.accounts.store.findAccount(app.accountId())?.name ?? "");
    if (account === undefined) throw new Error("no account");
    await deletion.run(account);
    expect(commits).toBeGreaterThan(10);
    expect(pauses).toHaveLength(commits);
  } finally {
    after.mockRestore();
  }
});

test("a pending verification ends, its credit is released, and the attempt under way stores nothing", async () => {
  const app = start(ENDLESS);
  const key = app.newKey({ mode: "live" });
  const posted = app.verify(key, "Ada@example.com", "?timeout=1", { "idempotency-key": "k" });
  await app.advance(1_000);
  const { id } = await posted;
  expect(await erase(app, "ada@example.com")).toMatchObject({ verifications: 1, cancelled: 1 });
  expect(app.credits()).toEqual({ available: 100, held: 0 });
  for (let minute = 0; minute < 60; minute++) await app.advance(60_000);
  expect((await app.request("GET", `/v1/email-verifications/${id}`, { key })).status).toBe(404);
  expect(app.db.sqlite.query("SELECT * FROM verification_evidence").all()).toEqual([]);
  expect(app.db.sqlite.query("SELECT * FROM idempotency_keys").all()).toEqual([]);
  expect(app.service.accounts.ledger.sum(app.accountId())).toEqual({ available: 100, held: 0 });
  expect(app.logged).toEqual([]);
});

test("an address of a running list ends free of charge, and the others are verified", async () => {
  const app = start(ENDLESS);
  const key = app.newKey({ mode: "live" });
  const emails = ["ada@example.com", "ada+x@example.com", "ADA@example.com", "not an address"];
  const { id } = await postList(app, { key, body: { emails } });
  app.service.bulk.jobs.start();
  await app.advance(1_000);
  expect(await erase(app, "ada@example.com")).toMatchObject({ listRows: 2, lists: 1 });
  await app.advance(1_000);
  const { emails: items } = await fetchItems(app, key, `${id}/items`);
  expect(items.map(({ submitted_email, result }) => [submitted_email, result?.sub_status ?? null])).toEqual([
    ["[erased]", "internal_error"],
    ["ada+x@example.com", null],
    ["[erased]", "internal_error"],
    ["not an address", "invalid_syntax"],
  ]);
  const { body } = await app.request("GET", `${BULK_PATH}/${id}`, { key });
  expect(body).toMatchObject({ status: "running", credits: { held: 1, charged: 1, released: 1 } });
  expect(app.service.accounts.ledger.sum(app.accountId())).toEqual({ available: 98, held: 1 });
});

test("a list of which the last address is erased is completed", async () => {
  const app = start(ENDLESS);
  const key = app.newKey({ mode: "live" });
  const { id } = await postList(app, { key, body: { emails: ["ada@example.com"] } });
  await settle();
  await erase(app, "ada@example.com");
  const { body } = await app.request("GET", `${BULK_PATH}/${id}`, { key });
  expect(body).toMatchObject({ status: "completed", rows: { total: 1, finished: 1 }, credits: { released: 1 } });
});

test("a list that is being retried is left until its old results are removed", async () => {
  const app = start();
  const key = app.newKey();
  await postList(app, { key, body: { emails: ["mailbox_exists@a.example"] } });
  app.db.sqlite.run("UPDATE bulk_jobs SET is_resetting = 1");
  expect(await erase(app, "mailbox_exists@a.example")).toMatchObject({ listRows: 0, waiting: { lists: 1 } });
});

test("addresses that only look alike stay", async () => {
  const app = start();
  const key = app.newKey();
  const others = ["ada+x@a.example", "bada@a.example", "ada@b.example", "ada@a.example.com"];
  for (const email of others) await app.verify(key, email);
  await postList(app, { key, body: { emails: others } });
  const erased = await erase(app, "ada@a.example");
  expect(erased).toMatchObject({ verifications: 0, listRows: 0, evidence: 0, texts: { replaced: {}, removed: {} } });
  expect(app.countVerifications()).toBe(4);
});
