import { describe, expect, test } from "bun:test";
import { createApps, type TestApp } from "../../testing/app.ts";
import { BULK_PATH, fetchItems, postList, untilJobEnded } from "../../testing/bulk-requests.ts";
import { PAGE_BYTES_MAX } from "../../foundation/base/walk.ts";
import { previewSchema } from "../arrival/preview.ts";
import { jobSchema } from "../results/schemas.ts";

const CSV = { "content-type": "text/csv" };
const UNTIDY =
  "sep=;\r\nCustomers\r\nName;E-Mail;City\r\n" +
  "Ada;Ada <mailbox_exists@gmial.com>;Köln\r\n" +
  ";mailto:Mailbox_Exists@gmial.com?subject=x;\r\n" +
  "Bob;;Ulm\r\n" +
  'Eve;"a@b.example, c@d.example";\r\n' +
  "Kim;\u200b;+49 40 1\r\n";
const FORMAT = {
  type: "csv",
  encoding: "utf-8",
  delimiter: ";",
  header: true,
  title_rows: 1,
  column: { index: 1, name: "E-Mail", reason: "only_addresses", message: "It is the only column with addresses." },
};
const start = createApps();

const download = async (app: TestApp, key: { readonly key: string }, target: string) => {
  const headers = { authorization: `Bearer ${key.key}` };
  return app.handle(new Request(`http://localhost${BULK_PATH}/${target}`, { headers }));
};

describe("a list exported by a spreadsheet", () => {
  test("is read, and the job shows its format", async () => {
    const app = start();
    const key = app.newKey();
    const { id, body } = await postList(app, { key, body: UNTIDY, headers: CSV }, "?name=customers.csv");
    expect(jobSchema.parse(body)).toMatchObject({
      format: FORMAT,
      rows: { total: 5, finished: 2, empty: 2 },
      addresses: { total: 2, finished: 0 },
    });
    const job = await untilJobEnded(app, key, id);
    expect(job).toMatchObject({
      rows: { total: 5, finished: 5, empty: 2 },
      addresses: { total: 2, finished: 2 },
      verdicts: { deliverable: 2, risky: 0, undeliverable: 1 },
      sub_statuses: { mailbox_exists: 2, invalid_syntax: 1 },
    });
    const { emails } = await fetchItems(app, key, `${id}/items`);
    expect(emails.map((item) => [item.submitted_email, item.normalized_email, item.result?.sub_status])).toEqual([
      ["Ada <mailbox_exists@gmial.com>", "mailbox_exists@gmial.com", "mailbox_exists"],
      ["mailto:Mailbox_Exists@gmial.com?subject=x", "mailbox_exists@gmial.com", "mailbox_exists"],
      ["", "", "invalid_syntax"],
      ["a@b.example, c@d.example", "a@b.example, c@d.example", "invalid_syntax"],
      ["\u200b", "", "invalid_syntax"],
    ]);
    expect(new Set(emails.map((item) => item.result?.verified_at)).size).toBe(1);
  });

  test("is exported with its title, hints and reasons, named after the job", async () => {
    const app = start();
    const key = app.newKey();
    const { id } = await postList(app, { key, body: UNTIDY, headers: CSV }, "?name=customers.csv");
    await untilJobEnded(app, key, id);
    const answer = await download(app, key, `${id}/results.csv`);
    expect(answer.headers.get("content-disposition")).toBe('attachment; filename="customers-results.csv"');
    const lines = (await answer.text()).split("\r\n");
    expect(lines[0]).toMatch(/^Customers;+$/);
    expect(lines[1]).toStartWith("Name;E-Mail;City;normalized_email;");
    expect(lines[1]).toEndWith(";verified_at;did_you_mean;reason");
    expect(lines[2]).toEndWith(";mailbox_exists@gmail.com;");
    expect(lines[4]).toEndWith(";;There is no address.");
    expect(lines[5]).toEndWith(";;There is more than one address.");
    expect(lines[6]).toContain(";+49 40 1;");
  });

  test("is not defused and has a byte order mark if requested", async () => {
    const app = start();
    const key = app.newKey();
    const { id } = await postList(app, { key, body: "email,n\nmailbox_exists@a.example,=1\n", headers: CSV });
    const bytes = await (await download(app, key, `${id}/results.csv?defuse=false&bom=true`)).bytes();
    expect([...bytes.subarray(0, 3)]).toEqual([0xef, 0xbb, 0xbf]);
    expect(Buffer.from(bytes).toString()).toContain("mailbox_exists@a.example,=1,");
    expect(await (await download(app, key, `${id}/results.csv`)).text()).toContain("mailbox_exists@a.example,'=1,");
    const refused = await app.request("GET", `${BULK_PATH}/${id}/results.csv?bom=yes`, { key });
    expect({ status: refused.status, error: refused.body.error }).toEqual({ status: 400, error: "Invalid query" });
  });
});

describe("rows without an address", () => {
  test("hold no credit and are finished immediately", async () => {
    const app = start();
    const key = app.newKey({ mode: "live" });
    const { body } = await postList(app, { key, body: { emails: ["", "a@b.example", "  ", '""'] } });
    expect(body).toMatchObject({
      format: null,
      rows: { total: 4, finished: 3, empty: 3 },
      addresses: { total: 1 },
      credits: { held: 1 },
      sub_statuses: {},
    });
  });

  test("alone make a completed job, with its event", async () => {
    const app = start();
    const key = app.newKey({ mode: "live" });
    const { id, body } = await postList(app, { key, body: { emails: ["", " "] } });
    expect(body).toMatchObject({ status: "completed", rows: { finished: 2, empty: 2 }, credits: { held: 0 } });
    const { emails } = await fetchItems(app, key, `${id}/items`);
    expect(emails.map(({ result }) => result?.sub_status)).toEqual(["invalid_syntax", "invalid_syntax"]);
  });
});

describe("a dry run", () => {
  test("of a file shows how it is read and what it costs, and stores nothing", async () => {
    const app = start();
    const key = app.newKey({ mode: "live" });
    const { status, body } = await postList(app, { key, body: UNTIDY, headers: CSV }, "?dry_run=true");
    expect(status).toBe(200);
    expect(previewSchema.parse(body)).toMatchObject({
      dry_run: true,
      format: FORMAT,
      columns: ["Name", "E-Mail", "City"],
      candidates: [{ index: 1, name: "E-Mail", addresses: 2 }],
      sampled_rows: 5,
      rows: { total: 5, empty: 2, duplicate: 1, invalid_syntax: 1 },
      addresses: { total: 2 },
      credits: { required: 2, available: 100 },
    });
    const rows = previewSchema.parse(body).first_rows;
    expect(rows[0]).toEqual({
      row_index: 0,
      cells: ["Ada", "Ada <mailbox_exists@gmial.com>", "Köln"],
      submitted_email: "Ada <mailbox_exists@gmial.com>",
      normalized_email: "mailbox_exists@gmial.com",
      did_you_mean: "mailbox_exists@gmail.com",
      reason: null,
    });
    expect(rows[3]?.reason).toBe("There is more than one address.");
    const { body: list } = await app.request("GET", BULK_PATH, { key });
    expect(list.bulk_verifications).toEqual([]);
    const { body: account } = await app.request("GET", "/v1/account", { key });
    expect(account.credits).toMatchObject({ available: 100, held: 0 });
  });

  test("of JSON does the same, and is free with a test key", async () => {
    const app = start();
    const emails = ["a@b.example", "A@b.example", "", "x"];
    const { status, body } = await postList(app, { key: app.newKey(), body: { emails } }, "?dry_run=true");
    expect(status).toBe(200);
    expect(previewSchema.parse(body)).toMatchObject({
      format: null,
      candidates: [],
      rows: { total: 4, empty: 1, duplicate: 1, invalid_syntax: 1 },
      credits: { required: 0 },
    });
  });

  test("shows insufficient credits instead of refusing", async () => {
    const app = start();
    const emails = Array.from({ length: 101 }, (_, n) => `a${n}@b.example`);
    const key = app.newKey({ mode: "live" });
    const { status, body } = await postList(app, { key, body: { emails } }, "?dry_run=true");
    expect({ status, credits: body.credits }).toEqual({ status: 200, credits: { required: 101, available: 100 } });
  });

  test("must be true or false", async () => {
    const app = start();
    for (const request of [{ body: { emails: ["a@b.example"] } }, { body: UNTIDY, headers: CSV }]) {
      const { status, body } = await postList(app, { key: app.newKey(), ...request }, "?dry_run=maybe");
      expect({ status, error: body.error }).toEqual({ status: 400, error: "Invalid query" });
    }
  });
});

describe("cells that are too long", () => {
  test("are not addresses; the beginning is shown, the whole cell exported", async () => {
    const app = start();
    const key = app.newKey();
    const long = `${"x".repeat(400)}@b.example`;
    const { id } = await postList(app, { key, body: `email\n${long}\na@b.example\n`, headers: CSV });
    await untilJobEnded(app, key, id);
    const { emails } = await fetchItems(app, key, `${id}/items`);
    expect(emails[0]).toMatchObject({
      submitted_email: `${"x".repeat(320)}…`,
      normalized_email: `${"x".repeat(320)}…`,
      result: { sub_status: "invalid_syntax" },
    });
    const text = await (await download(app, key, `${id}/results.csv`)).text();
    expect(text.split("\r\n")[1]).toStartWith(`${long},`);
    expect(text).toContain("The address is longer than 254 octets");
  });

  test("in JSON are cut, too", async () => {
    const app = start();
    const key = app.newKey();
    const { id } = await postList(app, { key, body: { emails: ["y".repeat(500_000)] } });
    await untilJobEnded(app, key, id);
    const text = await (await download(app, key, `${id}/results.csv`)).text();
    expect(text.split("\r\n")[1]?.length).toBeLessThan(1_500);
  });

  test("end a page at some megabytes, and the next page continues", async () => {
    const app = start();
    const key = app.newKey();
    // A NUL is six characters of JSON.
    const emails = Array.from({ length: 1_000 }, (_, n) => `${n}${"\0".repeat(315)}`);
    const { id } = await postList(app, { key, body: { emails } });
    await untilJobEnded(app, key, id);
    const seen: number[] = [];
    let pages = 0;
    for (let cursor = ""; ; pages++) {
      const { emails: items, next } = await fetchItems(app, key, `${id}/items?limit=1000${cursor}`);
      seen.push(...items.map((item) => item.row_index));
      expect(JSON.stringify(items).length).toBeLessThan(PAGE_BYTES_MAX * 1.1);
      if (next === null) break;
      cursor = `&cursor=${next}`;
    }
    expect(pages).toBeGreaterThan(0);
    expect(seen).toEqual(emails.map((_, n) => n));
  });

  test("with rows of 64 KiB are exported in small batches", async () => {
    const app = start();
    const key = app.newKey();
    const filler = "z".repeat(60_000);
    const rows = Array.from({ length: 60 }, (_, n) => `a${n}@b.example,${filler}`);
    const { id } = await postList(app, { key, body: `email,x\n${rows.join("\n")}\n`, headers: CSV });
    await untilJobEnded(app, key, id);
    const reader = (await download(app, key, `${id}/results.csv`)).body?.getReader();
    const sizes: number[] = [];
    for (let read = await reader?.read(); read?.done === false; read = await reader?.read())
      sizes.push(read.value.length);
    expect(sizes.length).toBe(8);
    expect(Math.max(...sizes)).toBeLessThan(1024 * 1024);
  });

  test("with longer rows are refused with the row number", async () => {
    const app = start();
    const body = `email,x\na@b.example,1\nc@d.example,${"z".repeat(70_000)}\n`;
    const refused = await postList(app, { key: app.newKey(), body, headers: CSV });
    expect(refused.status).toBe(400);
    expect(refused.body.message).toContain("Row 3 of the list cannot be read: longer than 64 KiB");
  });
});

describe("the evidence of a row", () => {
  const evidenceOf = (app: TestApp, key: ReturnType<TestApp["newKey"]>, target: string) =>
    app.request("GET", `${BULK_PATH}/${target}/evidence`, { key });

  test("with a test key is that of a single verification, with the text of the row", async () => {
    const app = start();
    const key = app.newKey();
    const emails = ["smtp_blocked@gmial.com", "Ada <SMTP_blocked@gmial.com>", "no address", ""];
    const { id } = await postList(app, { key, body: { emails } });
    await untilJobEnded(app, key, id);
    const single = await app.verify(key, emails[0] ?? "");
    const { body: wanted } = await app.request("GET", `/v1/email-verifications/${single.body.id}/evidence`, { key });
    const { status, body } = await evidenceOf(app, key, `${id}/items/0`);
    expect(status).toBe(200);
    expect(body).toEqual(wanted);
    expect(body).toMatchObject({ address: { suggestion: "smtp_blocked@gmail.com" } });
    expect((await evidenceOf(app, key, `${id}/items/1`)).body.address).toMatchObject({
      submitted: "Ada <SMTP_blocked@gmial.com>",
      read_as: "SMTP_blocked@gmial.com",
      problem: null,
    });
    expect((await evidenceOf(app, key, `${id}/items/2`)).body).toMatchObject({
      address: { problem: "The address has no @ sign." },
      conclusion: { sub_status: "invalid_syntax" },
    });
    expect((await evidenceOf(app, key, `${id}/items/3`)).body).toMatchObject({
      address: { problem: "There is no address." },
    });
  });

  test("with a live key is stored compressed and deleted with the job", async () => {
    const app = start();
    const key = app.newKey({ mode: "live" });
    const emails = ["ada@nowhere.example", "Ada <Ada@nowhere.example>"];
    const { id } = await postList(app, { key, body: { emails } });
    await untilJobEnded(app, key, id);
    const { body } = await evidenceOf(app, key, `${id}/items/1`);
    expect(body).toMatchObject({
      address: { submitted: "Ada <Ada@nowhere.example>", read_as: "Ada@nowhere.example" },
      domain: { name: "nowhere.example", outcome: "nxdomain" },
      conclusion: { sub_status: "domain_not_found" },
    });
    expect((await evidenceOf(app, key, `${id}/items/0`)).body).toMatchObject({ address: { read_as: null } });
    const stored = () =>
      app.db.sqlite.query("SELECT count(*) AS n, max(length(body)) < 400 AS fits FROM bulk_evidence").get();
    expect(stored()).toEqual({ n: 1, fits: 1 });
    expect((await app.request("DELETE", `${BULK_PATH}/${id}`, { key })).status).toBe(204);
    await app.service.bulk.jobs.removed();
    expect(stored()).toMatchObject({ n: 0 });
  });

  test("that was not stored is a 404", async () => {
    const app = start();
    const key = app.newKey({ mode: "live" });
    const { id } = await postList(app, { key, body: { emails: ["ada@nowhere.example", "no address"] } });
    await untilJobEnded(app, key, id);
    app.db.sqlite.run("DELETE FROM bulk_evidence");
    expect(await evidenceOf(app, key, `${id}/items/0`)).toMatchObject({ status: 404, body: { error: "not_found" } });
    expect((await evidenceOf(app, key, `${id}/items/1`)).status).toBe(200);
  });

  test("exists for existing rows of own jobs", async () => {
    const app = start();
    const key = app.newKey();
    const { id } = await postList(app, { key, body: { emails: ["pending@a.example"] } });
    expect((await evidenceOf(app, key, `${id}/items/0`)).body.conclusion).toBeNull();
    for (const row of ["1", "x", "-1", "99999999999"])
      expect((await evidenceOf(app, key, `${id}/items/${row}`)).status).toBe(404);
    const other = app.newKey({ account: "other" });
    expect((await evidenceOf(app, other, `${id}/items/0`)).status).toBe(404);
  });
});
