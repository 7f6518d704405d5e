import { describe, expect, test } from "bun:test";
import { createApps, type TestApp } from "../testing/app.ts";
import { BULK_PATH, postList, untilJobEnded } from "../testing/bulk-requests.ts";
import { createBulkHarness } from "../testing/bulk-harness.ts";
import { ListComparisons } from "./comparisons.ts";

const start = createApps();
const newHarness = createBulkHarness();

const EARLIER = [
  ...["mailbox_exists@same.example", "Mailbox_Not_Found <mailbox_not_found@same.example>", ""],
  ...["mailbox_exists@old.example", "catch_all@old.example", "mailbox_exists@old.example"],
];
const LATER = ["mailbox_exists@same.example", "MAILBOX_NOT_FOUND@same.example", "mailbox_exists@new.example", ""];

/** Verifies a list to its end. */
const verified = async (app: TestApp, key: ReturnType<TestApp["newKey"]>, name: string, emails: readonly string[]) => {
  const { id } = await postList(app, { key, body: { name, emails } });
  await untilJobEnded(app, key, id);
  return id;
};

const setResult = (app: TestApp, job: string, email: string, subStatus: string | null): void => {
  app.db.sqlite.run(
    "UPDATE bulk_addresses SET sub_status = ? WHERE normalized_email = ? AND job = (SELECT number FROM bulk_jobs WHERE id = ?)",
    [subStatus, email, job],
  );
};

const comparing = (app: TestApp, key: ReturnType<TestApp["newKey"]>) => (path: string) =>
  app.request("GET", `${BULK_PATH}/${path}`, { key });

describe("two lists of one name", () => {
  test("are compared address by address, each once", async () => {
    const app = start();
    const key = app.newKey();
    const get = comparing(app, key);
    const earlier = await verified(app, key, "spring", EARLIER);
    await verified(app, key, "another", ["x@x.example"]);
    const later = await verified(app, key, "spring", LATER);
    expect((await get(`${later}/comparison`)).body).toEqual({
      id: later,
      with: { id: earlier, name: "spring", created_at: expect.any(String) },
      counts: { became_undeliverable: 0, recovered: 0, changed: 0, unchanged: 2, new: 1, gone: 2, unfinished: 0 },
    });
    const csv = async (change: string) => {
      const target = `http://localhost${BULK_PATH}/${later}/comparison.csv?change=${change}`;
      const response = await app.handle(new Request(target, { headers: { authorization: `Bearer ${key.key}` } }));
      return (await response.text()).split("\r\n").slice(1, -1);
    };
    expect(await csv("new")).toEqual(["mailbox_exists@new.example,new,deliverable,mailbox_exists,,"]);
    expect(await csv("gone")).toEqual([
      "mailbox_exists@old.example,gone,,,deliverable,mailbox_exists",
      "catch_all@old.example,gone,,,risky,catch_all",
    ]);
    expect(await csv("recovered")).toEqual([]);
  });

  test.each([
    ["mailbox_exists", "mailbox_not_found", "became_undeliverable"],
    ["smtp_timeout", "domain_not_found", "became_undeliverable"],
    ["mailbox_not_found", "mailbox_exists", "recovered"],
    ["mailbox_not_found", "smtp_timeout", "changed"],
    ["catch_all", "mailbox_exists", "changed"],
    ["mailbox_exists", "role_account", "changed"],
    ["catch_all", "smtp_timeout", "unchanged"],
    ["mailbox_not_found", "domain_not_found", "unchanged"],
    [null, "mailbox_exists", "unfinished"],
    ["mailbox_exists", null, "unfinished"],
  ])("%p before and %p now is %s", async (before, now, change) => {
    const app = start();
    const key = app.newKey();
    const address = "mailbox_exists@a.example";
    const [earlier, later] = [await verified(app, key, "x", [address]), await verified(app, key, "x", [address])];
    setResult(app, earlier, address, before);
    setResult(app, later, address, now);
    const { counts } = (await comparing(app, key)(`${later}/comparison`)).body as { counts: Record<string, number> };
    expect(Object.entries(counts).filter(([, count]) => count > 0)).toEqual([[change, 1]]);
  });

  test("are compared again when one of them has changed", async () => {
    const app = start();
    const key = app.newKey();
    const get = comparing(app, key);
    const earlier = await verified(app, key, "x", ["smtp_timeout@a.example", "mailbox_exists@a.example"]);
    const later = await verified(app, key, "x", ["smtp_timeout@a.example", "mailbox_exists@a.example"]);
    const before = (await get(`${later}/comparison?with=${earlier}`)).body;
    expect(before).toMatchObject({ counts: { unchanged: 2 } });
    const retried = await app.request("POST", `${BULK_PATH}/${later}/retry`, { key });
    expect(retried.status).toBe(202);
    expect((await get(`${later}/comparison?with=${earlier}`)).body).toMatchObject({
      counts: { unchanged: 1, unfinished: 1 },
    });
  });
});

describe("what cannot be compared", () => {
  test("a list alone, with itself, with another account's or another mode's, with text that is no id", async () => {
    const app = start();
    const key = app.newKey();
    const get = comparing(app, key);
    const id = await verified(app, key, "x", ["mailbox_exists@a.example"]);
    const other = await verified(app, app.newKey({ account: "other" }), "x", ["mailbox_exists@a.example"]);
    expect(await get(`${id}/comparison`)).toMatchObject({
      status: 404,
      body: { message: expect.stringContaining("no earlier list") },
    });
    expect((await get(`${id}/comparison?with=${other}`)).status).toBe(404);
    expect((await get(`${other}/comparison`)).status).toBe(404);
    expect((await get(`${id}/comparison?with=${id}`)).status).toBe(400);
    expect((await get(`${id}/comparison?with=x`)).status).toBe(400);
    expect((await get(`${id}/comparison.csv?change=x`)).status).toBe(400);
  });

  test("a list without a name has no namesake, and younger, unfinished and deleted ones are none", async () => {
    const app = start();
    const key = app.newKey();
    const get = comparing(app, key);
    const first = await verified(app, key, "x", ["mailbox_exists@a.example"]);
    const second = await verified(app, key, "x", ["mailbox_exists@a.example"]);
    expect((await get(`${first}/comparison`)).status).toBe(404);
    expect((await get(`${second}/comparison`)).body).toMatchObject({ with: { id: first } });
    app.db.sqlite.run("UPDATE bulk_jobs SET status = 'running' WHERE id = ?", [first]);
    expect((await get(`${second}/comparison`)).status).toBe(404);
    await postList(app, { key, body: { emails: ["a@a.example"] } });
    const { id } = await postList(app, { key, body: { emails: ["a@a.example"] } });
    expect((await get(`${id}/comparison`)).status).toBe(404);
  });
});

test("lists of tens of thousands of addresses are compared in steps, while others work", async () => {
  const harness = newHarness();
  const { jobs, lists, runtime } = harness;
  const emails = (from: number) => Array.from({ length: 20_000 }, (_, n) => `u${from + n}@x.example`);
  const earlier = await harness.order(emails(0), "account-1", { name: "x" });
  const later = await harness.order(emails(5_000), "account-1", { name: "x" });
  harness.db.sqlite.run("UPDATE bulk_jobs SET status = 'completed'");
  const caller = { accountId: "account-1", keyId: "key-1", mode: "live" as const };
  const comparisons = new ListComparisons({
    ...{ jobs, lists, random: runtime.random },
    find: (_caller, id) => jobs.find(id) ?? earlier,
  });
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  const { counts, gone } = await comparisons.compare(caller as never, later.id, undefined);
  clearInterval(timer);
  expect(counts).toMatchObject({ unfinished: 15_000, new: 5_000, gone: 5_000 });
  expect(gone.subarray(0, 5_000).every((one) => one === 1) && gone.subarray(5_000).every((one) => one === 0)).toBe(
    true,
  );
  expect(turns).toBeGreaterThan(5);
});
