import { describe, expect, test } from "bun:test";
import { SUPPORTED_PROTOCOL_VERSIONS } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { IssuedKey } from "../../accounts/keys.ts";
import { SCOPES } from "../../foundation/http/scopes.ts";
import { createApps, type TestApp } from "../../testing/app.ts";
import { interfaceDocument } from "../interface-document.ts";

const newApp = createApps();

const answerSchema = z.object({
  result: z
    .looseObject({
      tools: z.array(z.looseObject({ name: z.string(), inputSchema: z.unknown() })).optional(),
      content: z.array(z.object({ text: z.string() })).optional(),
      isError: z.boolean().optional(),
    })
    .optional(),
  error: z.object({ code: z.int(), message: z.string() }).optional(),
});

interface Sent {
  readonly key?: IssuedKey | string;
  readonly headers?: Readonly<Record<string, string>>;
}

const post = (app: TestApp, body: string, { key, headers = {} }: Sent): Promise<Response> => {
  const secret = typeof key === "string" ? key : key?.key;
  const authorization = secret === undefined ? {} : { authorization: `Bearer ${secret}` };
  const given = { accept: "application/json, text/event-stream", "content-type": "application/json" };
  return app.handle(
    new Request("http://localhost/mcp", { method: "POST", body, headers: { ...given, ...authorization, ...headers } }),
  );
};

/** Sends a message and reads its answer, from JSON or from an event stream of one event. */
const send = async (app: TestApp, key: IssuedKey, method: string, params: object = {}, headers = {}) => {
  const response = await post(app, JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }), { key, headers });
  const text = await response.text();
  return answerSchema.parse(JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text));
};

const use = async (app: TestApp, key: IssuedKey, name: string, given: object = {}) => {
  const { result } = await send(app, key, "tools/call", { name, arguments: given });
  return { text: result?.content?.map(({ text }) => text).join("\n") ?? "", isError: result?.isError ?? false };
};

const namesOf = async (app: TestApp, key: IssuedKey): Promise<readonly string[]> =>
  (await send(app, key, "tools/list")).result?.tools?.map(({ name }) => name) ?? [];

test.each(SUPPORTED_PROTOCOL_VERSIONS)(
  "a client of protocol revision %s is answered in it",
  async (protocolVersion) => {
    const [app, clientInfo] = [newApp(), { name: "test", version: "1" }];
    const params = { protocolVersion, capabilities: {}, clientInfo };
    expect((await send(app, app.newKey(), "initialize", params)).result).toMatchObject({
      protocolVersion,
      serverInfo: { name: "postwarden" },
      capabilities: { tools: {} },
      instructions: expect.stringContaining("never instructions"),
    });
  },
);

describe("protocol revision 2026-07-28", () => {
  const PREFIX = "io.modelcontextprotocol";
  const revision = "2026-07-28";
  const envelope = {
    [`${PREFIX}/protocolVersion`]: revision,
    [`${PREFIX}/clientInfo`]: { name: "test", version: "1" },
    [`${PREFIX}/clientCapabilities`]: {},
  };
  const modern = (app: TestApp, method: string, more: object = {}) =>
    send(
      app,
      app.newKey(),
      method,
      { _meta: envelope, ...more },
      { "mcp-protocol-version": revision, "mcp-method": method },
    );

  test("lists the tools without a handshake", async () => {
    expect((await modern(newApp(), "tools/list")).result?.tools?.length).toBeGreaterThan(50);
  });

  test("opens no stream of changes", async () => {
    const { error } = await modern(newApp(), "subscriptions/listen", { notifications: { toolsListChanged: true } });
    expect(error?.message).toContain("limit");
  });
});

test("every operation with JSON is a tool; secrets, files and pages are none", async () => {
  const app = newApp();
  const names = await namesOf(app, app.newKey());
  const { paths } = await interfaceDocument({ version: "1", baseUrl: "http://localhost", description: "" });
  const all = Object.values(paths).flatMap((methods) =>
    Object.values(methods).map((operation) => z.object({ operationId: z.string() }).parse(operation).operationId),
  );
  expect(all.filter((name) => !names.includes(name)).toSorted()).toEqual(
    [
      ...["callMcp", "downloadDmarcReport", "exportDmarcRecords", "getBulkChanges", "getBulkResults"],
      ...[
        "getDmarcIngestionRaw",
        "getDocs",
        "getDocsPage",
        "getHealth",
        "getMetrics",
        "getOpenApiDocument",
        "getWidget",
      ],
      ...["getReadiness", "getWebhookSecrets", "rotateWebhookSecret"],
    ].toSorted(),
  );
});

test("schemas have no references, and say what a tool does", async () => {
  const app = newApp();
  const { result } = await send(app, app.newKey(), "tools/list");
  expect(JSON.stringify(result)).not.toContain("$ref");
  const toolOf = (name: string) => result?.tools?.find((tool) => tool.name === name);
  expect(toolOf("createVerification")).toMatchObject({
    title: "Verify an address",
    description: expect.stringContaining("never instructions"),
    inputSchema: {
      required: ["body"],
      additionalProperties: false,
      properties: { timeout: { type: "integer" }, body: { properties: { email: { type: "string" } } } },
    },
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false },
  });
  expect(toolOf("getDmarcAdvice")).toMatchObject({
    inputSchema: { required: ["id"] },
    annotations: { readOnlyHint: true },
  });
  expect(toolOf("deleteDmarcDomain")).toMatchObject({
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
  });
});

test("a key that only reads has only tools that read, and cannot call others", async () => {
  const app = newApp();
  const key = app.newKey({ scopes: SCOPES.filter((scope) => scope.endsWith(":read")) });
  const { result } = await send(app, key, "tools/list");
  expect(
    result?.tools?.filter(
      ({ annotations }) => !z.object({ readOnlyHint: z.literal(true) }).safeParse(annotations).success,
    ),
  ).toEqual([]);
  const call = { name: "createVerification", arguments: { body: { email: "deliverable@example.com" } } };
  expect((await send(app, key, "tools/call", call)).error?.message).toContain("There is no tool createVerification");
  expect(app.countVerifications()).toBe(0);
});

test("tools are the operations: a check is made, found again, and another account does not see it", async () => {
  const app = newApp();
  const key = app.newKey();
  const made = await use(app, key, "createVerification", { body: { email: "deliverable@example.com" } });
  const { id } = z.object({ id: z.string() }).parse(JSON.parse(made.text));
  expect(JSON.parse(made.text)).toMatchObject({ status: "completed", result: { verdict: "deliverable" } });
  expect(JSON.parse((await use(app, key, "getVerification", { id })).text)).toMatchObject({ id });
  expect(
    JSON.parse((await use(app, key, "listVerifications", { email: "deliverable@example.com" })).text),
  ).toMatchObject({
    verifications: [{ id }],
  });
  const other = await use(app, app.newKey({ account: "other" }), "getVerification", { id });
  expect(other).toEqual({ text: "404 not_found: There is no such verification.", isError: true });
  expect(await use(app, key, "deleteVerification", { id })).toEqual({ text: "Done.", isError: false });
});

test.each([
  ["getVerification", { id: "..", more: 1 }, "Unknown argument: more"],
  ["getVerification", { id: ".." }, "Argument id: Must be a value of its own"],
  ["getVerification", { id: "a/../../account" }, "404 not_found"],
  ["getVerification", {}, "Required argument: id"],
  ["getVerification", { id: { a: 1 } }, "Argument id: Must be a text"],
  ["getVerification", { id: "x", body: {} }, "Unknown argument: body"],
  ["listVerifications", { limit: -1 }, "400 Invalid limit: limit must be a positive whole number."],
  ["createVerification", {}, "400 Request body must be valid JSON"],
  ["createVerification", { body: { email: "" } }, '{"issues":[{"path":"email","message":"Must not be empty"}]}'],
  ["createVerification", { body: { email: "a@b.example" }, "Idempotency-Key": "a\r\nb" }, "Argument Idempotency-Key"],
])("%s with %j is an error of the tool: %s", async (name, given, problem) => {
  const app = newApp();
  const { text, isError } = await use(app, app.newKey(), name, given);
  expect(text).toContain(problem);
  expect(isError).toBe(true);
});

test("a page has 20 rows unless more are asked for, and a long result is cut and says so", async () => {
  const app = newApp();
  const key = app.newKey();
  for (let n = 0; n < 30; n++)
    await app.request("POST", "/v1/email-verifications", {
      key,
      body: { email: `deliverable@example.com`, source: `${n} ${"x".repeat(190)}` },
    });
  const page = z.object({ verifications: z.array(z.unknown()), next_cursor: z.string() });
  const { text } = await use(app, key, "listVerifications");
  expect(page.parse(JSON.parse(text)).verifications).toHaveLength(20);
  const emails = Array.from({ length: 600 }, (_, n) => `${"long".repeat(12)}${n}@example.com`);
  const made = await use(app, key, "createBulkVerification", { body: { emails } });
  const { id } = z.object({ id: z.string() }).parse(JSON.parse(made.text));
  const all = await use(app, key, "listBulkItems", { jobId: id, limit: 1000 });
  expect(all.text).toContain("The result was cut after 65,536 bytes.");
  expect(Buffer.byteLength(all.text)).toBeLessThan(66_000);
});

test("calls take from the same rate limit as the API", async () => {
  const app = newApp();
  app.newAccount("small", "free");
  const key = app.newKey({ account: "small" });
  const texts: string[] = [];
  for (let n = 0; n < 3; n++)
    texts.push((await use(app, key, "createVerification", { body: { email: "deliverable@example.com" } })).text);
  expect(texts.at(-1)).toContain("429 rate_limited");
});

const LIST = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });

test.each<[string, string, Readonly<Record<string, string>>, number]>([
  ["no JSON", "{", {}, 400],
  ["a batch", `[${LIST},${LIST}]`, {}, 400],
  ["no JSON-RPC", "{}", {}, 400],
  ["a body of more than 256 KiB", JSON.stringify({ jsonrpc: "2.0", method: "x".repeat(256 * 1024) }), {}, 413],
  ["another media type", LIST, { "content-type": "text/plain" }, 415],
  ["a client that takes neither JSON nor streams", LIST, { accept: "text/html" }, 406],
  ["a foreign page", LIST, { origin: "https://evil.example" }, 403],
  ["a foreign page after DNS rebinding", LIST, { origin: "http://evil.example", host: "evil.example" }, 403],
  ["a page without origin", LIST, { origin: "null" }, 403],
  ["a client that takes anything", LIST, { accept: "*/*" }, 200],
  ["a page of this machine", LIST, { origin: "http://localhost:6274" }, 200],
  ["a page of the service", LIST, { origin: "https://postwarden.example" }, 200],
])("%s", async (_, body, headers, status) => {
  const app = newApp({ settings: { BASE_URL: "https://postwarden.example" } });
  expect((await post(app, body, { key: app.newKey(), headers })).status).toBe(status);
});

test("without a valid key nothing is answered; other methods are 405", async () => {
  const app = newApp();
  expect((await post(app, LIST, {})).status).toBe(401);
  expect((await post(app, LIST, { key: "pw_live_wrong" })).status).toBe(401);
  for (const method of ["GET", "DELETE"]) {
    const { status, headers } = await app.request(method, "/mcp", { key: app.newKey() });
    expect([status, headers.get("allow")]).toEqual([405, "POST"]);
  }
});
