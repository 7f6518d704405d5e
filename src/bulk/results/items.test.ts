import { describe, expect, test } from "bun:test";
import { z } from "zod";
import { createApps, type TestApp } from "../../testing/app.ts";
import {
  BULK_PATH as PATH,
  fetchItems,
  postList as post,
  untilJobEnded as untilEnded,
} from "../../testing/bulk-requests.ts";

const start = createApps();

describe("items", () => {
  const ordered = async (app: TestApp) => {
    const key = app.newKey();
    const emails = Array.from(
      { length: 25 },
      (_, n) => `${n % 5 === 0 ? "catch_all" : "mailbox_exists"}+${n}@d${n % 3}.example`,
    );
    const { id } = await post(app, { key, body: { emails } });
    return { key, id, emails };
  };

  test("are listed page by page in the order of the rows, each once", async () => {
    const app = start();
    const { key, id, emails } = await ordered(app);
    await untilEnded(app, key, id);
    const seen: string[] = [];
    let cursor = "";
    for (let pages = 1; ; pages++) {
      const { emails: items, next } = await fetchItems(app, key, `${id}/items?limit=10${cursor}`);
      seen.push(...items.map((item) => item.submitted_email));
      if (next === null) {
        expect(pages).toBe(3);
        break;
      }
      cursor = `&cursor=${next}`;
    }
    expect(seen).toEqual(emails);
  });

  test("are filtered, and the last page has no cursor", async () => {
    const app = start();
    const { key, id } = await ordered(app);
    await untilEnded(app, key, id);
    const first = await fetchItems(app, key, `${id}/items?sub_status=catch_all&limit=3`);
    expect(first.emails.map((item) => item.row_index)).toEqual([0, 5, 10]);
    const second = await fetchItems(app, key, `${id}/items?verdict=risky&limit=3&cursor=${first.next}`);
    expect(second).toMatchObject({ emails: [{ row_index: 15 }, { row_index: 20 }], next: null });
    expect((await fetchItems(app, key, `${id}/items?verdict=risky&sub_status=mailbox_exists`)).emails).toEqual([]);
  });

  test.each([
    ["?verdict=deliverable", ["mailbox_exists"]],
    ["?sub_status=catch_all", ["catch_all"]],
    ["?verdict=risky&sub_status=mailbox_exists", []],
    ["", ["catch_all", "mailbox_exists"]],
  ])("results.csv%s has only the matching rows", async (query, expected) => {
    const app = start();
    const { key, id } = await ordered(app);
    await untilEnded(app, key, id);
    const csv = await app.handle(
      new Request(`http://localhost${PATH}/${id}/results.csv${query}`, {
        headers: { authorization: `Bearer ${key.key}` },
      }),
    );
    const [head = "", ...lines] = (await csv.text()).trim().split("\r\n");
    const at = head.split(",").indexOf("sub_status");
    expect([...new Set(lines.map((line) => line.split(",")[at] ?? ""))].toSorted()).toEqual(expected);
  });

  test("results.csv has the columns that are wanted, and those of a tool without repeats", async () => {
    const app = start();
    const key = app.newKey();
    const csv =
      "Name,E-Mail\nAda,Ada <mailbox_exists@a.example>\nBob,catch_all@a.example\nAda 2,mailbox_exists@a.example\n";
    const { id } = await post(app, { key, body: csv, headers: { "content-type": "text/csv" } });
    await untilEnded(app, key, id);
    const read = async (query: string) => {
      const request = new Request(`http://localhost${PATH}/${id}/results.csv?${query}`, {
        headers: { authorization: `Bearer ${key.key}` },
      });
      return (await (await app.handle(request)).text()).trimEnd().split("\r\n");
    };
    expect(await read("preset=listmonk&verdict=deliverable")).toEqual([
      "email,name,attributes",
      "mailbox_exists@a.example,Ada,{}",
    ]);
    expect(await read("preset=listmonk&verdict=deliverable&distinct=false")).toHaveLength(3);
    expect(await read("columns=address&clean=true")).toEqual([
      ...["E-Mail", "mailbox_exists@a.example", "catch_all@a.example", "mailbox_exists@a.example"],
    ]);
    expect(await read("columns=uploaded&distinct=true")).toEqual([
      ...["Name,E-Mail", "Ada,Ada <mailbox_exists@a.example>", "Bob,catch_all@a.example"],
    ]);
    for (const query of ["preset=other", "columns=none", "clean=yes", "distinct=1"])
      expect((await app.request("GET", `${PATH}/${id}/results.csv?${query}`, { key })).status).toBe(400);
  });

  test("results.csv refuses a verdict that does not exist", async () => {
    const app = start();
    const { key, id } = await ordered(app);
    const { status, body } = await app.request("GET", `${PATH}/${id}/results.csv?verdict=good`, { key });
    expect({ status, error: body.error }).toEqual({ status: 400, error: "Invalid query" });
  });

  test("jobs are filtered by status", async () => {
    const app = start();
    const { key, id } = await ordered(app);
    await untilEnded(app, key, id);
    const idsOf = async (status: string) => {
      const { body } = await app.request("GET", `${PATH}?status=${status}`, { key });
      return z
        .array(z.object({ id: z.string() }))
        .parse(body.bulk_verifications)
        .map((job) => job.id);
    };
    expect(await idsOf("completed")).toEqual([id]);
    expect(await idsOf("cancelled")).toEqual([]);
    expect((await app.request("GET", `${PATH}?status=receiving`, { key })).status).toBe(400);
  });

  test("are listed while the job runs, without a result", async () => {
    const app = start();
    const key = app.newKey();
    const { id } = await post(app, { key, body: { emails: ["pending@a.example", "mailbox_exists@a.example"] } });
    await app.advance(200);
    const { body } = await app.request("GET", `${PATH}/${id}`, { key });
    expect(body).toMatchObject({ status: "running", rows: { total: 2, finished: 1 }, completed_at: null });
    expect(body.estimated_seconds_left).toBeGreaterThanOrEqual(8);
    const { emails } = await fetchItems(app, key, `${id}/items`);
    expect(emails.map(({ result }) => result?.sub_status)).toEqual([undefined, "mailbox_exists"]);
    const csv = await app.handle(
      new Request(`http://localhost${PATH}/${id}/results.csv`, { headers: { authorization: `Bearer ${key.key}` } }),
    );
    expect((await csv.text()).split("\r\n")[1]).toStartWith("pending@a.example,,,,");
    await app.advance(8_000);
    expect((await untilEnded(app, key, id)).rows).toEqual({ total: 2, finished: 2, empty: 0 });
  });

  test.each([
    ["?limit=0", "Invalid limit"],
    ["?cursor=x", "Invalid cursor"],
    ["?verdict=unknown", "Invalid query"],
  ])("%s is refused", async (query, error) => {
    const app = start();
    const { key, id } = await ordered(app);
    const { status, body } = await app.request("GET", `${PATH}/${id}/items${query}`, { key });
    expect({ status, error: body.error }).toEqual({ status: 400, error });
  });
});

describe("cancelling and deleting", () => {
  const slow = { emails: ["pending@a.example", "mailbox_exists@a.example"] };

  test("a cancelled job keeps its finished results; cancelling it again changes nothing", async () => {
    const app = start();
    const key = app.newKey();
    const { id } = await post(app, { key, body: slow });
    await app.advance(200);
    const cancelled = await app.request("POST", `${PATH}/${id}/cancel`, { key });
    expect(cancelled).toMatchObject({ status: 200, body: { status: "cancelled", rows: { finished: 1, total: 2 } } });
    await app.advance(20_000);
    expect((await app.request("POST", `${PATH}/${id}/cancel`, { key })).body).toEqual(cancelled.body);
    const { emails } = await fetchItems(app, key, `${id}/items`);
    expect(emails.map(({ result }) => result?.sub_status)).toEqual([undefined, "mailbox_exists"]);
  });

  test("a running job cannot be deleted; one that has ended is deleted with all its rows", async () => {
    const app = start();
    const key = app.newKey();
    const { id } = await post(app, { key, body: slow });
    const early = await app.request("DELETE", `${PATH}/${id}`, { key });
    expect({ status: early.status, error: early.body.error }).toEqual({ status: 409, error: "conflict" });
    await app.advance(10_000);
    await untilEnded(app, key, id);
    expect((await app.request("POST", `${PATH}/${id}/cancel`, { key })).status).toBe(409);
    const deleted = await app.request("DELETE", `${PATH}/${id}`, { key });
    expect(deleted).toMatchObject({ status: 204, text: "" });
    expect((await app.request("GET", `${PATH}/${id}`, { key })).status).toBe(404);
    await app.service.bulk.jobs.removed();
    for (const table of ["bulk_jobs", "bulk_rows", "bulk_addresses", "bulk_counts", "bulk_evidence"])
      expect(app.db.sqlite.query(`SELECT count(*) AS n FROM ${table}`).get()).toEqual({ n: 0 });
  });

  test("the credits of unfinished addresses are released, and there is one event", async () => {
    const app = start({
      zone: { "x.example": { MX: [[10, "mx.x.example"]] }, "mx.x.example": { A: ["8.8.8.8"] } },
      connector: () => Promise.withResolvers<never>().promise,
    });
    const key = app.newKey({ mode: "live" });
    const body = { emails: ["a@x.example", "b@x.example", "no address"], webhook_url: "https://hooks.example/x" };
    app.db.sqlite.run("INSERT INTO webhook_gone (account_id, mode, url, at_ms) VALUES (?, 'live', ?, 0)", [
      app.accountId(),
      body.webhook_url,
    ]);
    const { id, body: queued } = await post(app, { key, body });
    expect(queued.webhook_configured).toBe(true);
    // A URL that responded 410 Gone gets deliveries again once a user sets it.
    expect(app.db.sqlite.query("SELECT url FROM webhook_gone").all()).toEqual([]);
    await app.advance(200);
    const { body: job } = await app.request("POST", `${PATH}/${id}/cancel`, { key });
    expect(job.credits).toEqual({ held: 0, charged: 1, released: 2 });
    expect(app.credits()).toEqual({ available: 99, held: 0 });
    const events = app.db.sqlite.query("SELECT type, url, data FROM outbox").all() as Array<Record<string, string>>;
    expect(events.map(({ type, url }) => [type, url])).toEqual([["bulk.cancelled", "https://hooks.example/x"]]);
    expect(JSON.parse(events[0]?.data ?? "")).toEqual(job);
  });
});
