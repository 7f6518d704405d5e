import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OPEN_MS_MAX } from "../verify/smtp/outages.ts";
import { createApps, type TestRequest } from "../testing/app.ts";
import {
  BULK_PATH as PATH,
  fetchItems,
  postList as post,
  untilJobEnded as untilEnded,
} from "../testing/bulk-requests.ts";
import { settle } from "../testing/clock.ts";
import { UNFINISHED_MAX } from "./jobs.ts";
import { jobSchema } from "./results/schemas.ts";
import { STALL_MS_MAX } from "./arrival/upload.ts";

const CSV = { "content-type": "text/csv" };
const FORM_BOUNDARY = "boundary";
const start = createApps();

const form = (file: string, fields: Readonly<Record<string, string>> = {}): TestRequest => {
  const parts = Object.entries(fields).map(
    ([name, value]) => `Content-Disposition: form-data; name="${name}"\r\n\r\n${value}`,
  );
  parts.push(
    `Content-Disposition: form-data; name="file"; filename="list.csv"\r\nContent-Type: text/csv\r\n\r\n${file}`,
  );
  const body = `${parts.map((part) => `--${FORM_BOUNDARY}\r\n${part}\r\n`).join("")}--${FORM_BOUNDARY}--\r\n`;
  return { body, headers: { "content-type": `multipart/form-data; boundary=${FORM_BOUNDARY}` } };
};

describe("a list", () => {
  test("as JSON is a 202 with Location and job, and every row is in the export", async () => {
    const app = start();
    const key = app.newKey();
    const emails = ["mailbox_exists@a.example", "no address", "Mailbox_Exists@A.example", "greylisted@b.example"];
    const accepted = await post(app, { key, body: { emails, name: "spring", source: "crm" } });
    expect(accepted.status).toBe(202);
    expect(accepted.headers.get("location")).toBe(`${PATH}/${accepted.id}`);
    expect(jobSchema.parse(accepted.body)).toMatchObject({
      name: "spring",
      source: "crm",
      rows: { total: 4 },
      addresses: { total: 3 },
      estimated_seconds_left: null,
      poll_after_ms: 1_000,
      webhook_configured: false,
    });
    const job = await untilEnded(app, key, accepted.id);
    expect(job).toMatchObject({
      status: "completed",
      rows: { total: 4, finished: 4 },
      addresses: { total: 3, finished: 3 },
      verdicts: { deliverable: 2, risky: 1, undeliverable: 1 },
      sub_statuses: { mailbox_exists: 2, invalid_syntax: 1, greylisted: 1 },
      credits: { held: 0, charged: 0, released: 0 },
      estimated_seconds_left: null,
      poll_after_ms: null,
    });
    const { emails: items, next } = await fetchItems(app, key, `${accepted.id}/items`);
    expect(next).toBeNull();
    expect(
      items.map((item) => [item.row_index, item.submitted_email, item.result?.email, item.result?.sub_status]),
    ).toEqual([
      [0, "mailbox_exists@a.example", "mailbox_exists@a.example", "mailbox_exists"],
      [1, "no address", "no address", "invalid_syntax"],
      [2, "Mailbox_Exists@A.example", "Mailbox_Exists@A.example", "mailbox_exists"],
      [3, "greylisted@b.example", "greylisted@b.example", "greylisted"],
    ]);
    expect(items[2]?.normalized_email).toBe("mailbox_exists@a.example");
  });

  test("carries the same result object as a single verification", async () => {
    const app = start();
    const key = app.newKey();
    for (const email of ["catch_all@a.example", "toxic@a.example", "no address", "smtp_timeout@x.example"]) {
      const single = await app.verify(key, email);
      const { id } = await post(app, { key, body: { emails: [email] } });
      await untilEnded(app, key, id);
      const { emails } = await fetchItems(app, key, `${id}/items`);
      expect(emails[0]?.result as unknown).toEqual(single.body.result);
    }
  });

  test("as CSV or form is exported with its own columns", async () => {
    const csv = 'Name;E-Mail;Note\r\n"Ada; Countess";mailbox_exists@a.example;=1+1\r\nBob;mailbox_full@b.example\r\n';
    const app = start();
    const key = app.newKey();
    const asBody = await post(app, { key, body: csv, headers: CSV }, "?column=e-mail&name=mine");
    const asForm = await post(app, { key, ...form(csv, { column: "1", source: "crm" }) });
    expect([asBody.body.name, asForm.body.name, asForm.body.source]).toEqual(["mine", "list.csv", "crm"]);
    for (const { status, id } of [asBody, asForm]) {
      expect(status).toBe(202);
      await untilEnded(app, key, id);
      const answer = await app.handle(
        new Request(`http://localhost${PATH}/${id}/results.csv`, { headers: { authorization: `Bearer ${key.key}` } }),
      );
      expect(answer.headers.get("content-type")).toBe("text/csv; charset=utf-8");
      expect(answer.headers.get("x-request-id")).not.toBeNull();
      const lines = (await answer.text()).split("\r\n");
      expect(lines[0]).toStartWith("Name;E-Mail;Note;normalized_email;verdict;sub_status;");
      expect(lines[1]).toStartWith(
        '"Ada; Countess";mailbox_exists@a.example;\'=1+1;mailbox_exists@a.example;deliverable;',
      );
      expect(lines[2]).toStartWith("Bob;mailbox_full@b.example;;mailbox_full@b.example;risky;mailbox_full;");
      expect(lines[3]).toBe("");
    }
  });

  test.each([
    ["no addresses", { body: { emails: [] } }, "", 400, "Invalid request body"],
    ["too many addresses", { body: { emails: Array(100_001).fill("a") } }, "", 400, "Invalid request body"],
    ["an unknown field", { body: { emails: ["a@b.example"], x: 1 } }, "", 400, "Invalid request body"],
    ["no JSON", { body: "{" }, "", 400, "Request body must be valid JSON"],
    ["a parameter with JSON", { body: { emails: ["a@b.example"] } }, "?column=1", 400, "Invalid query"],
    ["an unknown parameter", { body: "a@b.example", headers: CSV }, "?colum=1", 400, "Invalid query"],
    ["an unknown field of a form", form("a@b.example", { colum: "1" }), "", 400, "Invalid request body"],
    [
      "a webhook that is not https",
      { body: { emails: ["a"], webhook_url: "http://x.example" } },
      "",
      400,
      "Invalid request body",
    ],
    ["a list without a column of addresses", { body: "a,b\nc,d\n", headers: CSV }, "", 400, "Invalid request body"],
    ["an image", { body: "x", headers: { "content-type": "image/png" } }, "", 415, "unsupported_media_type"],
    [
      "an empty Idempotency-Key",
      { body: { emails: ["a"] }, headers: { "idempotency-key": "" } },
      "",
      400,
      "Invalid idempotency key",
    ],
  ] as const)("with %s is refused and leaves nothing behind", async (_, request, query, status, error) => {
    const app = start();
    const key = app.newKey();
    const refused = await post(app, { key, ...(request as TestRequest) }, query);
    expect({ status: refused.status, error: refused.body.error }).toEqual({ status, error });
    expect((await app.request("GET", PATH, { key })).body.bulk_verifications).toEqual([]);
  });

  test("that cannot be read names the row and the reason", async () => {
    const app = start();
    const refused = await post(app, { key: app.newKey(), body: 'email\na@b.example\n"c@d.example\n', headers: CSV });
    expect(refused.status).toBe(400);
    expect(refused.body.issues).toEqual([{ path: "row 3", message: expect.stringContaining("quote") }]);
  });
});

test("endless uploads of an account do not block others and time out", async () => {
  const app = start();
  const [key, other] = [app.newKey(), app.newKey({ account: "other" })];
  const endless = () => new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from("email\n")) });
  const uploads = Array.from({ length: 10 }, () => post(app, { key, body: endless(), headers: CSV }));
  await settle();
  const file = { body: "email\na@b.example\n", headers: CSV };
  const refused = await post(app, { key, ...file });
  expect({ status: refused.status, after: refused.headers.get("retry-after") }).toEqual({ status: 503, after: "30" });
  expect(refused.body).toMatchObject({
    error: "unavailable",
    message: "Concurrent uploads exceed 1 GiB for this account.",
  });
  const announced = { ...CSV, "content-length": String(file.body.length) };
  expect((await post(app, { key, ...file, headers: announced })).status).toBe(202);
  expect((await post(app, { key: other, ...file })).status).toBe(202);
  await app.advance(STALL_MS_MAX);
  expect(new Set((await Promise.all(uploads)).map(({ status }) => status))).toEqual(new Set([400]));
  expect((await post(app, { key, ...file })).status).toBe(202);
});

describe("credits", () => {
  test("are held for all distinct addresses, or the list is refused with 402 and their number", async () => {
    const app = start();
    const key = app.newKey({ mode: "live" });
    app.leaveCredits(2);
    const refused = await post(app, {
      key,
      body: { emails: ["a@x.example", "A@x.example", "b@x.example", "c@x.example"] },
    });
    expect(refused.status).toBe(402);
    expect(refused.body).toMatchObject({
      error: "insufficient_credits",
      message: "Insufficient credits: 3 required, 2 available.",
      required: 3,
      available: 2,
    });
    expect(app.credits()).toEqual({ available: 2, held: 0 });
    await settle();
    await app.service.bulk.jobs.removed();
    for (const table of ["bulk_jobs", "bulk_rows", "bulk_addresses"])
      expect(app.db.sqlite.query(`SELECT count(*) AS n FROM ${table}`).get()).toEqual({ n: 0 });
  });

  test("that cover one of two simultaneous lists refuse the other, whose Idempotency-Key stays unused", async () => {
    const app = start();
    const key = app.newKey({ mode: "live" });
    app.leaveCredits(3);
    const order = (name: string, count: number) => ({
      key,
      headers: { "idempotency-key": name },
      body: { emails: Array.from({ length: count }, (_, at) => `${name}${at}@x.example`) },
    });
    const both = await Promise.all([post(app, order("one", 2)), post(app, order("two", 2))]);
    expect(both.map(({ status }) => status).toSorted()).toEqual([202, 402]);
    const refused = both[0]?.status === 402 ? "one" : "two";
    expect((await post(app, order(refused, 1))).status).toBe(202);
    expect(app.credits()).toEqual({ available: 0, held: 3 });
  });

  test("are charged once per address, and released when no server responded", async () => {
    const zone = {
      "nobody.example": { MX: [[10, "mx.nobody.example"]] },
      "mx.nobody.example": { A: ["8.8.8.8"] },
    } as const;
    const app = start({ zone, settings: { GREYLIST_RETRIES_S: "" } });
    const key = app.newKey({ mode: "live" });
    const emails = ["a@nobody.example", "b@gone.example", "B@gone.example", "no address"];
    const { id } = await post(app, { key, body: { emails } });
    expect(app.credits()).toEqual({ available: 97, held: 3 });
    // One host that refuses, and none that answers: it might be us, for a while.
    await app.advance(OPEN_MS_MAX);
    const job = await untilEnded(app, key, id);
    expect(job).toMatchObject({
      sub_statuses: { smtp_unreachable: 1, domain_not_found: 2, invalid_syntax: 1 },
      credits: { held: 0, charged: 2, released: 1 },
    });
    expect(app.credits()).toEqual({ available: 98, held: 0 });
    expect(app.service.accounts.ledger.sum(app.accountId())).toEqual({ available: 98, held: 0 });
  });
});

describe("access", () => {
  test("jobs are invisible to other accounts and modes, and need a scope", async () => {
    const app = start();
    const key = app.newKey();
    const { id } = await post(app, { key, body: { emails: ["a@b.example"] } });
    const others = [app.newKey({ mode: "live" }), app.newKey({ account: "other" })];
    for (const other of others) {
      for (const target of [id, `${id}/items`, `${id}/results.csv`])
        expect((await app.request("GET", `${PATH}/${target}`, { key: other })).status).toBe(404);
      expect((await app.request("POST", `${PATH}/${id}/cancel`, { key: other })).status).toBe(404);
      expect((await app.request("DELETE", `${PATH}/${id}`, { key: other })).status).toBe(404);
      expect((await app.request("GET", PATH, { key: other })).body).toEqual({
        bulk_verifications: [],
        next_cursor: null,
      });
    }
    const reader = app.newKey({ scopes: ["bulk:read"] });
    expect((await app.request("GET", `${PATH}/${id}`, { key: reader })).status).toBe(200);
    expect((await post(app, { key: reader, body: { emails: ["a@b.example"] } })).body).toMatchObject({
      required: "bulk:write",
    });
    expect((await app.request("GET", `${PATH}/nonsense`, { key })).status).toBe(404);
  });

  test("jobs are listed newest first, page by page", async () => {
    const app = start();
    const key = app.newKey();
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) ids.unshift((await post(app, { key, body: { emails: ["a@b.example"] } })).id);
    const first = (await app.request("GET", `${PATH}?limit=2`, { key })).body;
    const second = (await app.request("GET", `${PATH}?limit=2&cursor=${first.next_cursor}`, { key })).body;
    const listed = [first, second].flatMap((page) => page.bulk_verifications as Array<{ id: string }>);
    expect(listed.map((job) => job.id)).toEqual(ids);
    expect(second.next_cursor).toBeNull();
  });
});

describe("an Idempotency-Key", () => {
  const headers = { "idempotency-key": "once" };

  test("returns the same job for a day, and refuses another list", async () => {
    const app = start();
    const key = app.newKey();
    const first = await post(app, { key, headers, body: { emails: ["a@b.example"] } });
    const again = await post(app, { key, headers, body: { emails: ["a@b.example"] } });
    expect({ status: again.status, id: again.id }).toEqual({ status: 202, id: first.id });
    const other = await post(app, { key, headers, body: { emails: ["c@b.example"] } });
    expect({ status: other.status, error: other.body.error }).toEqual({ status: 422, error: "idempotency_key_reused" });
    await app.advance(24 * 60 * 60 * 1000);
    expect((await post(app, { key, headers, body: { emails: ["a@b.example"] } })).id).not.toBe(first.id);
  });

  test("compares files by bytes and options, also in simultaneous requests", async () => {
    const app = start();
    const key = app.newKey({ mode: "live" });
    const file = { key, body: "email\na@gone.example\nb@gone.example\n", headers: { ...headers, ...CSV } };
    const both = await Promise.all([post(app, file), post(app, file)]);
    expect(new Set(both.map(({ id }) => id)).size).toBe(1);
    expect((await post(app, file, "?header=true")).status).toBe(422);
    await untilEnded(app, key, both[0]?.id ?? "");
    expect(app.credits()).toEqual({ available: 98, held: 0 });
  });
});

test("what a crash left of a list being received is removed at the next start and never visible", async () => {
  const app = start();
  const key = app.newKey();
  app.db.sqlite.run(
    `INSERT INTO bulk_jobs (id, account_id, key_id, mode, status, format, created_at_ms)
      VALUES ('x', ?, ?, 'test', 'receiving', '{}', 0), ('y', ?, ?, 'test', 'deleting', '{}', 0)`,
    [app.accountId(), key.id, app.accountId(), key.id],
  );
  app.db.sqlite.run(
    "INSERT INTO bulk_addresses (job, position, email, normalized_email, rows) VALUES (1, 0, 'a', 'a', 1)",
  );
  expect((await app.request("GET", PATH, { key })).body.bulk_verifications).toEqual([]);
  await app.service.bulk.jobs.recover();
  await app.service.bulk.jobs.removed();
  for (const table of ["bulk_jobs", "bulk_addresses"])
    expect(app.db.sqlite.query(`SELECT count(*) AS n FROM ${table}`).get()).toEqual({ n: 0 });
});

test("uploads that a crash left are removed at the next start, and none need be there", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "postwarden-uploads-"));
  const uploads = join(dataDir, "uploads");
  const app = start({ settings: { DATA_DIR: dataDir } });
  await app.service.bulk.jobs.recover();
  mkdirSync(uploads, { recursive: true });
  writeFileSync(join(uploads, "half"), "a@b.example");
  await app.service.bulk.jobs.recover();
  expect(existsSync(uploads)).toBe(false);
  rmSync(dataDir, { recursive: true });
});

test("an upload leaves no file and no reservation, whether it is accepted or refused", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "postwarden-uploads-"));
  const app = start({ settings: { DATA_DIR: dataDir } });
  const key = app.newKey();
  const statuses = new Set<number>();
  for (let n = 0; n < 20; n++) {
    const body = n % 2 === 0 ? `email\nuser${n}@gone.example\n` : "no list";
    statuses.add((await post(app, { key, body, headers: CSV })).status);
  }
  expect(statuses).toEqual(new Set([202, 400]));
  expect(readdirSync(join(dataDir, "uploads"))).toEqual([]);
  rmSync(dataDir, { recursive: true });
});

test("the number of unfinished lists of an account is limited", async () => {
  const app = start();
  const key = app.newKey();
  const queued = app.db.sqlite.prepare(
    "INSERT INTO bulk_jobs (id, account_id, key_id, mode, status, format, created_at_ms) VALUES (?, ?, ?, 'test', 'queued', '{}', 0)",
  );
  for (let n = 0; n < UNFINISHED_MAX - 1; n++) queued.run(`job ${n}`, app.accountId(), key.id);
  const done = await post(app, { key, body: { emails: ["smtp_timeout@a.example"] } });
  await untilEnded(app, key, done.id);
  const headers = { "idempotency-key": "the last" };
  const order = (with_: TestRequest = {}) => post(app, { key, body: { emails: ["pending@a.example"] }, ...with_ });
  const last = await order({ headers });
  expect(last.status).toBe(202);
  const refused = { status: 409, error: "conflict", message: expect.stringContaining(`${UNFINISHED_MAX} unfinished`) };
  for (const response of [await order(), await app.request("POST", `${PATH}/${done.id}/retry`, { key })])
    expect({ status: response.status, ...response.body }).toMatchObject(refused);
  // A repeated request gets its list, which exists already.
  expect(await order({ headers })).toMatchObject({ status: 202, id: last.id });
});
