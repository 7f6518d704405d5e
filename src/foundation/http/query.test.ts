import { describe, expect, test } from "bun:test";
import { z } from "zod";
import { AppError } from "../base/errors.ts";
import { createApps } from "../../testing/app.ts";
import { EVENT_TYPES } from "../../service/event-docs.ts";
import { createQueryReader } from "./route-input.ts";

const start = createApps();
const ID = "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52";

const documentSchema = z.object({
  paths: z.record(
    z.string(),
    z.record(
      z.string(),
      z.object({
        parameters: z
          .array(z.object({ in: z.string(), name: z.string(), schema: z.looseObject({}).optional() }))
          .default([]),
      }),
    ),
  ),
  webhooks: z.record(z.string(), z.unknown()),
});

const readDocument = async (app: ReturnType<typeof start>) =>
  documentSchema.parse((await app.request("GET", "/openapi.json")).body);

const operationsOf = ({ paths }: z.output<typeof documentSchema>) =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters }]) => ({
      method: method.toUpperCase(),
      path: path.replace(/\{\w+\}/g, ID),
      names: parameters.filter((parameter) => parameter.in === "query").map(({ name }) => name),
    })),
  );

const unknownIn = (body: Readonly<Record<string, unknown>>): unknown[] =>
  Array.isArray(body.issues) ? body.issues.filter(({ message }) => message === "Unknown parameter") : [];

const cursorOf = (text: string) => Buffer.from(text).toString("base64url");

test.each([
  ["empty", ""],
  ["not base64url", "?"],
  ["not an id", cursorOf("x")],
  ["an id that is not encoded", ID],
  ["padded", `${cursorOf(ID)}=`],
  ["with something behind it", `${cursorOf(ID)}.`],
])("a cursor that is %s is refused, and does not begin at the first page", async (_, cursor) => {
  const app = start();
  const target = `/v1/email-verifications?cursor=${encodeURIComponent(cursor)}`;
  const { status, body } = await app.request("GET", target, { key: app.newKey() });
  expect([status, body.error]).toEqual([400, "Invalid cursor"]);
});

test("a cursor behind the last row is an empty page", async () => {
  const app = start();
  const target = `/v1/email-verifications?cursor=${cursorOf(ID)}`;
  expect((await app.request("GET", target, { key: app.newKey() })).body).toEqual({
    verifications: [],
    next_cursor: null,
  });
});

test("a repeated parameter is refused by name", async () => {
  const app = start();
  const target = "/v1/email-verifications?status=pending&status=completed";
  expect((await app.request("GET", target, { key: app.newKey() })).body).toEqual({
    error: "Invalid query",
    message: "status: Must not be repeated",
    issues: [{ path: "status", message: "Must not be repeated" }],
  });
});

test("a repeated text parameter is not reported as missing", () => {
  const read = createQueryReader(z.strictObject({ name: z.string().optional() }));
  let thrown: unknown = null;
  try {
    read(new Request("http://localhost/?name=a&name=b"));
  } catch (error) {
    thrown = error;
  }
  expect(thrown instanceof AppError && thrown.details.issues).toEqual([
    { path: "name", message: "Must not be repeated" },
  ]);
});

describe("query parameters of every operation", () => {
  test("one that the operation does not have is 400, whatever else there is to say", async () => {
    const app = start();
    const key = app.newKey();
    const operations = operationsOf(await readDocument(app));
    expect(operations.length).toBeGreaterThan(50);
    for (const { method, path } of operations) {
      for (const name of ["nonsense", "timout", "__proto__"]) {
        const { status, body } = await app.request(method, `${path}?${name}=60`, { key });
        expect([method, path, status, body]).toEqual([
          ...[method, path, 400],
          {
            error: "Invalid query",
            message: `${name}: Unknown parameter`,
            issues: [{ path: name, message: "Unknown parameter" }],
          },
        ]);
      }
    }
  });

  test("one that the document names is read", async () => {
    const app = start();
    const key = app.newKey();
    for (const { method, path, names } of operationsOf(await readDocument(app))) {
      for (const name of names) {
        // A list may be uploaded with parameters, and be sent as JSON only without.
        const headers = { "content-type": "text/csv" };
        const { body } = await app.request(method, `${path}?${name}=x`, { key, headers });
        expect([method, path, name, unknownIn(body)]).toEqual([method, path, name, []]);
      }
    }
  });

  test.each([
    ["0", 400],
    ["00", 400],
    ["-1", 400],
    ["1.5", 400],
    ["1e2", 400],
    ["0x10", 400],
    ["%201", 400],
    ["", 400],
    ["1", 200],
    ["1001", 200],
    ["99999999999999999999", 200],
  ])("a limit or a timeout of %j is %d", async (text, status) => {
    const app = start();
    const key = app.newKey();
    const list = await app.request("GET", `/v1/bulk-verifications?limit=${text}`, { key });
    const check = await app.verify(key, "a@any.example", `?timeout=${text}`);
    expect([list.status, check.status]).toEqual([status, status]);
    if (status === 400) expect([list.body.error, check.body.error]).toEqual(["Invalid limit", "Invalid timeout"]);
  });

  test("the types of events that deliveries are filtered by are those that are described", async () => {
    const { webhooks } = await readDocument(start());
    // A test call is no event, and nothing is kept of it.
    const kept = Object.keys(webhooks).filter((type) => type !== "webhook.test");
    expect(EVENT_TYPES.toSorted()).toEqual(kept.toSorted());
  });

  test("are looked at after the key, its scope and its rate", async () => {
    const app = start();
    const path = "/v1/email-verifications?timout=60";
    expect((await app.request("POST", path)).status).toBe(401);
    const reader = app.newKey({ scopes: ["bulk:read"] });
    expect((await app.request("POST", path, { key: reader })).status).toBe(403);
    const key = app.newKey();
    const answer = await app.request("POST", path, { key, body: { email: "a@any.example" } });
    expect(answer.status).toBe(400);
    expect(answer.headers.get("ratelimit-limit")).not.toBeNull();
    expect(app.countVerifications()).toBe(0);
  });

  test("more of them than can be named are not named", async () => {
    const app = start();
    const many = Array.from({ length: 500 }, (_, at) => `${"n".repeat(200)}${at}=1`).join("&");
    const { status, body, text } = await app.request("GET", `/v1/account?${many}`, { key: app.newKey() });
    expect(status).toBe(400);
    expect(body.issues).toHaveLength(20);
    expect(text.length).toBeLessThan(4_000);
  });
});
