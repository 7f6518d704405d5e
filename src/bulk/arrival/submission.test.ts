import { describe, expect, test } from "bun:test";
import { createApps, type TestRequest } from "../../testing/app.ts";
import { postList as post } from "../../testing/bulk-requests.ts";

const CSV = { "content-type": "text/csv" };
const FORM_BOUNDARY = "boundary";
const rows = Array.from({ length: 5_000 }, (_, n) => `["x"],user${n}@b.example\n`).join("");
/** More than is looked at of a file. */
const long = Array.from({ length: 5_000 }, (_, n) => `"user${n}@b.example"`).join(",");
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
  test.each([
    ["JSON as CSV", { body: ' {"name":"x","emails":["a@b.example"]}', headers: CSV }, "Content-Type: application/json"],
    ["an array as CSV", { body: '["a@b.example"]', headers: CSV }, "Content-Type: application/json"],
    ["a long JSON as CSV", { body: `{"name":"x","emails":[${long}]}`, headers: CSV }, "This is JSON, not CSV"],
    ["a long array as CSV", { body: `["", ${long}]`, headers: CSV }, "This is JSON, not CSV"],
    ["JSON as CSV, cut off", { body: '{"emails": ["a@b.example"', headers: CSV }, "This is JSON, not CSV"],
    ["JSON as a file", form('{"emails":["a@b.example"]}'), "This is JSON, not CSV"],
    ["a JSON array without addresses", { body: '["x", "y"]', headers: CSV }, "No column with addresses"],
    ["a JSON array of numbers", { body: "[1, 2]", headers: CSV }, "No column with addresses"],
    ["CSV of no type", { body: "email\na@b.example\n", headers: { "content-type": "" } }, "Content-Type: text/csv."],
    [
      "bytes that are no text",
      { body: `${"\0\u0001\u0002".repeat(9)}a@b.example`, headers: CSV },
      "This is not a CSV file",
    ],
  ] as const)("that is %s is refused with advice", async (_, request, message) => {
    const app = start();
    const { status, body } = await post(app, { key: app.newKey(), ...(request as TestRequest) });
    expect({ status, message: body.message }).toEqual({ status: 400, message: expect.stringContaining(message) });
  });

  test("that is refused as a whole names no rows", async () => {
    const app = start();
    const request = { key: app.newKey(), body: `${"\0\u0001\u0002".repeat(9)}a@b.example`, headers: CSV };
    expect(Object.keys((await post(app, request)).body)).toEqual(["error", "message"]);
  });

  test("without a type but with list parameters is refused with a hint about the type", async () => {
    const app = start();
    const request = { key: app.newKey(), body: "email\na@b.example\n", headers: { "content-type": "" } };
    const { body } = await post(app, request, "?column=email");
    expect(body).toMatchObject({ error: "Invalid query", message: expect.stringContaining("Content-Type: text/csv") });
  });

  test("gets no hint about the type when it has one, or when it is JSON with a mistake", async () => {
    const app = start();
    const key = app.newKey();
    const messageOf = async (body: string, type: string) =>
      String((await post(app, { key, body, headers: { "content-type": type } })).body.message);
    expect(await messageOf("email\na@b.example\n", "application/json")).not.toContain("text/csv");
    expect(await messageOf('{"emails":"a@b.example"}', "")).not.toContain("text/csv");
  });

  test("that starts with a brace or bracket but is not JSON is accepted", async () => {
    const app = start();
    const numbered = Array.from({ length: 5_000 }, (_, n) => `[${n}],"user${n}@b.example",x\n`).join("");
    for (const body of [
      numbered,
      "[1],a@b.example\n[2],c@d.example\n",
      "{x},a@b.example\n",
      `["x"],a@b.example\n${rows}`,
    ])
      expect((await post(app, { key: app.newKey(), body, headers: CSV })).status).toBe(202);
  });

  test("with conflicting query and form fields is refused, and accepted when they agree", async () => {
    const app = start();
    const key = app.newKey();
    const csv = "work,home\na@b.example,c@d.example\n";
    const fields = { column: "home", header: "true", name: "mine" };
    const refused = await post(app, { key, ...form(csv, fields) }, "?column=work&header=auto&name=mine");
    const says = (path: string) => ({ path, message: "Conflicts with the query parameter" });
    expect(refused.status).toBe(400);
    expect(refused.body).toMatchObject({ error: "Invalid request body", issues: [says("column"), says("header")] });
    expect((await post(app, { key, ...form(csv, fields) }, "?column=home&name=mine")).status).toBe(202);
  });
});

test.each([
  ["CSV", "?dry_run=true", { body: "email\na@b.example\n", headers: CSV }],
  ["JSON", "?dry_run=true", { body: { emails: ["a@b.example"] } }],
  ["a form with a field", "", form("email\na@b.example\n", { dry_run: "true" })],
])("a dry run of %s is not in the audit log, a list is", async (_, query, request) => {
  const app = start();
  const key = app.newKey({ mode: "test" });
  const entries = () => app.service.accounts.audit.list({ actionBegin: "api." }, { before: null, limit: 9 }).length;
  const sent = await app.request("POST", `/v1/bulk-verifications${query}`, { key, ...request });
  expect([sent.status, entries()]).toEqual([200, 0]);
  const body = { emails: ["a@b.example"] };
  expect((await app.request("POST", "/v1/bulk-verifications", { key, body })).status).toBe(202);
  expect(entries()).toBe(1);
});
