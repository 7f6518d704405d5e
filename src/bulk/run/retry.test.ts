import { describe, expect, spyOn, test } from "bun:test";
import { bulkOutcome, createBulkHarness, type BulkHarness } from "../../testing/bulk-harness.ts";
import { createApps, type TestApp } from "../../testing/app.ts";
import { BULK_PATH, fetchItems, postList, untilJobEnded } from "../../testing/bulk-requests.ts";
import { countUnsettled, createJobRetry } from "./job-changes.ts";
import type { OpenAddress } from "../results/list-store.ts";

const start = createApps();
const newHarness = createBulkHarness();

const retry = (app: TestApp, key: Parameters<typeof untilJobEnded>[1], id: string, headers = {}) =>
  app.request("POST", `${BULK_PATH}/${id}/retry`, key === undefined ? { headers } : { key, headers });

/** A list of three addresses, one of them twice, of which the two of one domain could not be looked up. */
const unsettled = async (mode: "live" | "test" = "live") => {
  const zone: Record<string, "servfail" | "nxdomain"> = { "broken.example": "servfail", "gone.example": "nxdomain" };
  const app = start({ zone, settings: { GREYLIST_RETRIES_S: "1" } });
  const key = app.newKey({ mode });
  const emails = ["a@broken.example", "b@broken.example", "B@broken.example", "c@gone.example"];
  const { id } = await postList(app, { key, body: { emails } });
  return { app, key, id, zone, job: await untilJobEnded(app, key, id) };
};

describe("a retry", () => {
  test("verifies only the unsettled addresses again, with a new hold and a second event", async () => {
    const { app, key, id, zone, job } = await unsettled();
    expect(job).toMatchObject({ sub_statuses: { dns_error: 3, domain_not_found: 1 }, rows: { total: 4, finished: 4 } });
    expect(app.credits()).toEqual({ available: 99, held: 0 });
    zone["broken.example"] = "nxdomain";
    const again = await retry(app, key, id);
    expect([again.status, again.body]).toMatchObject([
      202,
      {
        id,
        status: "queued",
        completed_at: null,
        rows: { total: 4, finished: 1 },
        addresses: { total: 3, finished: 1 },
        sub_statuses: { domain_not_found: 1 },
        credits: { held: 2, charged: 1, released: 2 },
      },
    ]);
    expect(app.credits()).toEqual({ available: 97, held: 2 });
    expect(await untilJobEnded(app, key, id)).toMatchObject({
      status: "completed",
      rows: { total: 4, finished: 4 },
      sub_statuses: { domain_not_found: 4 },
      credits: { held: 0, charged: 3, released: 2 },
    });
    expect(app.credits()).toEqual({ available: 97, held: 0 });
    expect(app.service.accounts.ledger.sum(app.accountId())).toEqual({ available: 97, held: 0 });
    const events = app.db.sqlite.query<{ type: string }, []>("SELECT type FROM outbox").all();
    expect(events.map(({ type }) => type)).toEqual(["bulk.completed", "bulk.completed"]);
    const { emails } = await fetchItems(app, key, `${id}/items`);
    expect(emails.map(({ result }) => result?.sub_status)).toEqual(Array.from({ length: 4 }, () => "domain_not_found"));
  });

  test("whose preparation fails is logged once and prepared again, and does not stop that of others", async () => {
    const { app, key, id, zone } = await unsettled();
    const { id: other } = await postList(app, { key, body: { emails: ["d@broken.example"] } });
    await untilJobEnded(app, key, other);
    zone["broken.example"] = "nxdomain";
    const { lists } = app.service.bulk.run;
    const { reopen } = lists;
    const broken = app.db.sqlite
      .query<{ number: number }, [string]>("SELECT number FROM bulk_jobs WHERE id = ?")
      .get(id)?.number;
    const reset = spyOn(lists, "reopen").mockImplementation((...given) => {
      if (given[1] === broken) throw Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR_READ" });
      return reopen.apply(lists, given);
    });
    app.service.bulk.jobs.start();
    for (const one of [id, other]) expect((await retry(app, key, one)).status).toBe(202);
    expect(await untilJobEnded(app, key, other)).toMatchObject({ sub_statuses: { domain_not_found: 1 } });
    await app.advance(30_000);
    expect(app.logged.filter((line) => line.includes("preparing the retry of lists failed"))).toHaveLength(1);
    reset.mockRestore();
    expect(await untilJobEnded(app, key, id)).toMatchObject({ sub_statuses: { domain_not_found: 4 } });
  });

  test("can be repeated while an address is unsettled, then is a 409", async () => {
    const { app, key, id, zone } = await unsettled();
    for (let round = 0; round < 2; round++) {
      expect((await retry(app, key, id)).status).toBe(202);
      expect(await untilJobEnded(app, key, id)).toMatchObject({ sub_statuses: { dns_error: 3, domain_not_found: 1 } });
    }
    expect(app.credits()).toEqual({ available: 99, held: 0 });
    zone["broken.example"] = "nxdomain";
    await retry(app, key, id);
    await untilJobEnded(app, key, id);
    expect((await retry(app, key, id)).body).toMatchObject({ error: "conflict" });
  });

  test("that the credits do not cover changes nothing", async () => {
    const { app, key, id, job } = await unsettled();
    app.leaveCredits(1);
    const { status, body } = await retry(app, key, id);
    expect([status, body]).toMatchObject([402, { error: "insufficient_credits", required: 2, available: 1 }]);
    expect((await app.request("GET", `${BULK_PATH}/${id}`, { key })).body).toEqual(job);
  });

  test("is refused for unfinished and unknown jobs, and without the scope", async () => {
    const { app, key, id } = await unsettled();
    await retry(app, key, id);
    expect((await retry(app, key, id)).status).toBe(409);
    await app.request("POST", `${BULK_PATH}/${id}/cancel`, { key });
    expect((await retry(app, key, id)).status).toBe(409);
    expect((await retry(app, app.newKey({ account: "other", mode: "live" }), id)).status).toBe(404);
    expect((await retry(app, app.newKey({ mode: "live", scopes: ["bulk:read"] }), id)).status).toBe(403);
    expect(app.credits()).toEqual({ available: 99, held: 0 });
  });

  test("with an Idempotency-Key happens once; other requests with the key are refused", async () => {
    const { app, key, id } = await unsettled();
    const headers = { "idempotency-key": "once" };
    const both = await Promise.all([retry(app, key, id, headers), retry(app, key, id, headers)]);
    expect(both.map(({ status }) => status)).toEqual([202, 202]);
    await untilJobEnded(app, key, id);
    const repeated = await retry(app, key, id, headers);
    expect([repeated.status, repeated.body.status]).toEqual([202, "completed"]);
    const holds = app.db.sqlite.query("SELECT count(*) AS n FROM ledger WHERE kind = 'hold'").get();
    expect(holds).toEqual({ n: 2 });
    const other = await postList(app, { key, body: { emails: ["a@b.example"] }, headers });
    expect(other.status).toBe(422);
    expect((await retry(app, key, id, { "idempotency-key": "" })).status).toBe(400);
  });

  test("twice at the same time happens once", async () => {
    const { app, key, id } = await unsettled();
    const both = await Promise.all([retry(app, key, id), retry(app, key, id)]);
    expect(both.map(({ status }) => status).toSorted()).toEqual([202, 409]);
    expect(app.credits()).toEqual({ available: 97, held: 2 });
  });

  test("works with a test key, without credits", async () => {
    const app = start();
    const key = app.newKey();
    const emails = ["greylisted@any.example", "mailbox_exists@any.example"];
    const { id } = await postList(app, { key, body: { emails } });
    await untilJobEnded(app, key, id);
    expect((await retry(app, key, id)).body).toMatchObject({ rows: { total: 2, finished: 1 }, credits: { held: 0 } });
    expect(await untilJobEnded(app, key, id)).toMatchObject({ sub_statuses: { greylisted: 1, mailbox_exists: 1 } });
  });

  test("that is cancelled releases its hold", async () => {
    const { app, key, id } = await unsettled();
    await retry(app, key, id);
    const cancelled = await app.request("POST", `${BULK_PATH}/${id}/cancel`, { key });
    expect(cancelled.body).toMatchObject({ status: "cancelled", credits: { held: 0, charged: 1, released: 4 } });
    expect(app.credits()).toEqual({ available: 99, held: 0 });
    expect(app.service.accounts.ledger.sum(app.accountId())).toEqual({ available: 99, held: 0 });
  });
});

describe("a crash in a retry", () => {
  const ended = async (harness: BulkHarness, number: number) => {
    for (let turn = 0; turn < 200 && harness.jobs.get(number)?.completedAtMs == null; turn++)
      await harness.clock.advance(100);
    return harness.jobs.get(number);
  };

  test("before all old results are removed loses nothing and counts nothing twice", async () => {
    const harness = newHarness();
    const job = await harness.order(Array.from({ length: 5_000 }, (_, n) => `u${n}@d${n}.example`));
    const { number } = job;
    const first = harness.start({ attempt: async () => bulkOutcome("smtp_timeout", false) });
    await ended(harness, number);
    first.kill();
    const rounds = createJobRetry(harness.runtime, harness);
    const addresses = await countUnsettled(harness.lists, job);
    expect(harness.db.transact((tx) => rounds.begin(tx, harness.jobs.getExisting(number), addresses))).toBeNull();
    let steps = 0;
    expect(await rounds.reset(number, () => ++steps > 2)).toBe(false);
    const attempt = async ({ position }: OpenAddress) =>
      position % 2 === 0 ? bulkOutcome("mailbox_exists") : bulkOutcome("dns_error", false);
    const { runner } = harness.start({ attempt });
    await harness.clock.advance(1_000);
    // Not worked on before it is ready.
    expect(harness.jobs.get(number)).toMatchObject({ status: "queued", addressesFinished: 0, isResetting: true });
    expect(await rounds.reset(number, () => false)).toBe(true);
    const ready = harness.jobs.get(number);
    expect(ready?.isResetting).toBe(false);
    if (ready !== undefined) runner.add(ready);
    expect(await ended(harness, number)).toMatchObject({
      status: "completed",
      addressesFinished: 5_000,
      creditsCharged: 2_500,
      creditsReleased: 7_500,
    });
    expect(harness.ledger.balance(job.accountId)).toEqual(harness.ledger.sum(job.accountId));
    expect(harness.ledger.balance(job.accountId).held).toBe(0);
  });
});
