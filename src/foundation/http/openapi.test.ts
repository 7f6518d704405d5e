import { describe, expect, test } from "bun:test";
import { z } from "zod";
import { ERROR_STATUS } from "../base/errors.ts";
import { createApps, ENDLESS, type TestApp } from "../../testing/app.ts";

const PATH = "/v1/email-verifications";
/** Headers that say nothing beyond HTTP itself. */
const TRANSPORT_HEADERS: ReadonlySet<string> = new Set([
  ...["content-type", "content-length", "cache-control", "x-content-type-options"],
]);
const start = createApps();

interface Media {
  readonly schema: Record<string, unknown>;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}
interface Described {
  readonly operationId: string;
  readonly description?: string;
  readonly security?: readonly unknown[];
  readonly "x-scope"?: string;
  readonly parameters?: ReadonlyArray<{
    readonly description?: string;
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
  }>;
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<
    Record<string, { readonly headers: Record<string, unknown>; readonly content?: Readonly<Record<string, Media>> }>
  >;
}
interface Document {
  readonly openapi: string;
  readonly servers: ReadonlyArray<{ readonly url: string }>;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  readonly webhooks: Readonly<Record<string, { readonly post: Described }>>;
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
}

const readDocument = async (app: TestApp): Promise<Document> => {
  const { text } = await app.request("GET", "/openapi.json");
  return JSON.parse(text);
};

let plain: Promise<Document> | null = null;
/** The document of a service with the default settings, which is always the same. */
const plainDocument = (): Promise<Document> => (plain ??= readDocument(start()));

/** The part of a document as a JSON Schema that stands alone. */
const standingAlone = (part: unknown): Record<string, unknown> =>
  JSON.parse(JSON.stringify(part).replaceAll("#/components/schemas/", "#/$defs/"));

interface Checking {
  readonly definitions: Record<string, z.core.JSONSchema.JSONSchema>;
  /** By the text of the schema. */
  readonly checkers: Map<string, z.ZodType>;
}
const checking = new WeakMap<Document, Checking>();

const checkingOf = (document: Document): Checking => {
  const known = checking.get(document);
  if (known !== undefined) return known;
  const definitions = standingAlone(document.components.schemas) as Checking["definitions"];
  const begun = { definitions, checkers: new Map<string, z.ZodType>() };
  checking.set(document, begun);
  return begun;
};

/** A JSON Schema of the document as something that can check a value. */
const checkerOf = (document: Document, schema: unknown): z.ZodType => {
  const { definitions, checkers } = checkingOf(document);
  const text = JSON.stringify(schema);
  const checker = checkers.get(text) ?? z.fromJSONSchema({ ...standingAlone(schema), $defs: definitions });
  checkers.set(text, checker);
  return checker;
};

const operationsOf = (document: Document) =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );

const everyMedia = (operation: Described): Media[] => [
  ...Object.values(operation.requestBody?.content ?? {}),
  ...Object.values(operation.responses).flatMap(({ content = {} }) => Object.values(content)),
];

const schemaNode = z.looseObject({
  description: z.string().optional(),
  $ref: z.string().optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
});

/** Properties anywhere in a schema that have neither a description nor a reference to a schema with a name. */
const undescribedProperties = (value: unknown, at: string): string[] => {
  if (Array.isArray(value)) return value.flatMap((item) => undescribedProperties(item, at));
  const node = schemaNode.safeParse(value);
  if (!node.success) return [];
  const { properties = {}, ...rest } = node.data;
  const own = Object.entries(properties).flatMap(([name, property]) => {
    const { description, $ref } = schemaNode.parse(property);
    const path = `${at}.${name}`;
    return [
      ...(description === undefined && $ref === undefined ? [path] : []),
      ...undescribedProperties(property, path),
    ];
  });
  return [...own, ...Object.values(rest).flatMap((child) => undescribedProperties(child, at))];
};

/** What the document does not describe in words. */
const undescribedIn = (document: Document): string[] => [
  ...operationsOf(document).flatMap(({ method, path, operation }) => {
    const { description, parameters = [] } = operation;
    const silent = parameters
      .filter((parameter) => !parameter.description)
      .map(({ name }) => `${method} ${path} ${name}`);
    return [
      ...(description ? [] : [`${method} ${path}`]),
      ...silent,
      ...everyMedia(operation).flatMap(({ schema }) => undescribedProperties(schema, `${method} ${path}`)),
    ];
  }),
  ...Object.entries(document.webhooks).flatMap(([type, { post }]) =>
    everyMedia(post).flatMap(({ schema }) => undescribedProperties(schema, type)),
  ),
  ...Object.entries(document.components.schemas).flatMap(([name, schema]) => undescribedProperties(schema, name)),
];

describe("the OpenAPI document", () => {
  test("describes every route there is, and none that there is not", async () => {
    const app = start();
    const document = await readDocument(app);
    expect(document.openapi).toBe("3.1.0");
    const described = operationsOf(document).map(({ method, path }) => `${method} ${path}`);
    const [api, pages] = await Promise.all(["/v1/account", "/"].map((path) => app.applicationOf(path)));
    const routed = (api?.routes ?? []).map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`);
    expect((pages?.routes ?? []).filter(({ path }) => path.startsWith("/v1/"))).toEqual([]);
    expect(described.toSorted()).toEqual(routed.toSorted());
  });

  test("refers to nothing that is not there, and names every operation once", async () => {
    const document = await plainDocument();
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map((match) => match[1] ?? "");
    expect(references.length).toBeGreaterThan(10);
    const known = Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`);
    expect([...new Set(references)].filter((reference) => !known.includes(reference))).toEqual([]);
    const names = operationsOf(document).map(({ operation }) => operation.operationId);
    expect(new Set(names).size).toBe(names.length);
  });

  test("describes every operation, parameter and property", async () => {
    expect(undescribedIn(await plainDocument())).toEqual([]);
  });

  test("declares every path parameter", async () => {
    for (const { path, operation } of operationsOf(await plainDocument())) {
      const declared = (operation.parameters ?? []).filter((parameter) => parameter.in === "path");
      expect(declared.map(({ name }) => `{${name}}`)).toEqual([...path.matchAll(/\{\w+\}/g)].map(([name]) => name));
      for (const parameter of operation.parameters ?? []) expect(parameter.required).toBe(parameter.in === "path");
    }
  });

  test("names the routes without a key, the body errors of bodies only, and 403 where a scope is needed", async () => {
    for (const { method, path, operation } of operationsOf(await plainDocument())) {
      const { security, "x-scope": scope, requestBody, responses } = operation;
      const isOpen = [
        "/healthz",
        "/readyz",
        "/metrics",
        "/openapi.json",
        "/docs",
        "/docs/{page}",
        "/widget.js",
      ].includes(path);
      const where = `${method} ${path}`;
      expect([where, security]).toEqual([where, isOpen ? [] : undefined]);
      // Without a scope any key will do.
      const scoped = expect.stringMatching(/^(verifications|bulk|blacklist|dmarc|webhooks):(read|write)$/);
      expect([where, scope]).toEqual([where, isOpen || path === "/v1/account" || path === "/mcp" ? undefined : scoped]);
      // Metrics have a token of their own.
      expect([where, "401" in responses]).toEqual([where, !isOpen || path === "/metrics"]);
      // Any key may read its own account.
      expect([where, "403" in responses]).toEqual([where, !isOpen && path !== "/v1/account"]);
      if (method === "GET" || method === "DELETE") expect([where, requestBody]).toEqual([where, undefined]);
      if (method === "PATCH" || method === "PUT") expect([where, requestBody?.required]).toEqual([where, true]);
      if (path.includes("{")) expect([where, "404" in responses]).toEqual([where, true]);
      // Metrics and the manual can be off.
      const canBeOff = path === "/metrics" || path.startsWith("/docs");
      if (path === "/v1/account" || isOpen) expect([where, "404" in responses]).toEqual([where, canBeOff]);
      expect([where, "413" in responses]).toEqual([where, requestBody !== undefined]);
    }
  });

  test("requires every request body but the one that may be left out", async () => {
    const bodies = operationsOf(await plainDocument()).flatMap(({ operation: { operationId, requestBody } }) =>
      requestBody === undefined ? [] : [{ operationId, required: requestBody.required }],
    );
    expect(bodies.length).toBeGreaterThan(10);
    const optional = bodies.filter(({ required }) => !required).map(({ operationId }) => operationId);
    expect(optional).toEqual(["retryDmarcIngestion"]);
  });

  test("describes a text by its format or by a pattern, not by both", async () => {
    const document = JSON.stringify(await plainDocument());
    expect(document.includes('"format":"uuid"')).toBe(true);
    expect(document.match(/"format":"[^"]*","pattern"/)?.[0]).toBeUndefined();
  });

  test("has an example for every body, and each fits its schema", async () => {
    const document = await plainDocument();
    for (const { method, path, operation } of operationsOf(document)) {
      for (const { schema, example, examples = {} } of everyMedia(operation)) {
        const all = [...(example === undefined ? [] : [example]), ...Object.values(examples).map(({ value }) => value)];
        expect({ method, path, schema, count: all.length }).not.toMatchObject({ count: 0 });
        const checker = checkerOf(document, schema);
        for (const value of all) expect(checker.safeParse(value).error).toBeUndefined();
      }
    }
  });

  test("describes every event that is sent, its three headers, and an example that fits", async () => {
    const document = await plainDocument();
    expect(Object.keys(document.webhooks).toSorted()).toEqual([
      "blacklist.delisted",
      "blacklist.list_unusable",
      "blacklist.list_usable",
      "blacklist.listed",
      "bulk.cancelled",
      "bulk.completed",
      "bulk.failed",
      "dmarc.excessive_reporter",
      "dmarc.failure_spike",
      "dmarc.mta_sts_changed",
      "dmarc.new_source",
      "dmarc.new_subdomain",
      "dmarc.policy_weakened",
      "dmarc.record_changed",
      "dmarc.reports_stopped",
      "dmarc.spoofing_campaign",
      "dmarc.status_changed",
      "dmarc.tls_failures",
      "dmarc.volume_spike",
      "notifications.summary",
      "webhook.test",
    ]);
    for (const [type, { post }] of Object.entries(document.webhooks)) {
      expect(post.parameters?.map(({ name }) => name)).toEqual([
        "webhook-id",
        "webhook-timestamp",
        "webhook-signature",
      ]);
      const media = post.requestBody?.content["application/json"];
      const checker = checkerOf(document, media?.schema);
      expect(checker.safeParse(media?.example).error).toBeUndefined();
      expect(checker.safeParse({ ...(media?.example as object), type: `${type}.` }).success).toBe(false);
    }
  });

  test("describes an error by the status it has", async () => {
    for (const { operation } of operationsOf(await plainDocument())) {
      for (const [status, { content = {} }] of Object.entries(operation.responses)) {
        for (const { examples = {} } of Object.values(content)) {
          for (const { value } of Object.values(examples)) {
            const { error } = value as { error: keyof typeof ERROR_STATUS };
            expect(ERROR_STATUS[error]).toBe(Number(status) as never);
          }
        }
      }
    }
  });

  test("fits what the service answers: bodies and headers, of whatever status", async () => {
    const app = start(ENDLESS);
    const document = await readDocument(app);
    const [key, live] = [app.newKey(), app.newKey({ mode: "live" })];
    const pending = app.verify(live, "someone@example.com", "?timeout=1");
    await app.advance(1_000);
    const { id } = await pending;
    app.leaveCredits(0);
    const reader = app.newKey({ scopes: ["bulk:read"] });
    app.newAccount("free", "free");
    const spent = app.newKey({ account: "free" });
    for (let n = 0; n < 2; n++) await app.verify(spent, "no address");
    const answers = [
      ["POST", PATH, await pending],
      ["POST", PATH, await app.verify(key, "someone@any.example")],
      ["POST", PATH, await app.request("POST", PATH, { key, body: { email: 1, x: 2 } })],
      ["POST", PATH, await app.request("POST", PATH, { key, body: "" })],
      ["POST", PATH, await app.verify(live, "no address")],
      ["POST", PATH, await app.request("POST", PATH, {})],
      ["POST", PATH, await app.verify(spent, "no address")],
      ["POST", PATH, await app.verify(reader, "no address")],
      ["GET", PATH, await app.request("GET", PATH, { key })],
      ["GET", PATH, await app.request("GET", PATH, { key: live })],
      ["GET", PATH, await app.request("GET", `${PATH}?page=1`, { key })],
      ["GET", `${PATH}/{id}/evidence`, await app.request("GET", `${PATH}/${id}/evidence`, { key: live })],
      ["GET", `${PATH}/{id}`, await app.request("GET", `${PATH}/${id}`, { key })],
      ["GET", "/v1/account", await app.request("GET", "/v1/account", { key })],
      ["GET", "/healthz", await app.request("GET", "/healthz")],
      ["GET", "/readyz", await app.request("GET", "/readyz")],
    ] as const;
    for (const [method, path, { status, headers, body }] of answers) {
      const response = document.paths[path]?.[method.toLowerCase()]?.responses[status];
      expect({ method, path, status, isDescribed: response !== undefined }).toMatchObject({ isDescribed: true });
      const schema = response?.content?.["application/json"]?.schema;
      expect(checkerOf(document, schema).safeParse(body).error).toBeUndefined();
      const missing = Object.keys(response?.headers ?? {}).filter((name) => headers.get(name) === null);
      expect({ method, path, status, missing }).toEqual({ method, path, status, missing: [] });
      const described = Object.keys(response?.headers ?? {}).map((name) => name.toLowerCase());
      const silent = [...headers.keys()].filter((name) => !TRANSPORT_HEADERS.has(name) && !described.includes(name));
      expect({ method, path, status, silent }).toEqual({ method, path, status, silent: [] });
    }
  });

  test("names the settings' base URL as the server", async () => {
    expect((await plainDocument()).servers).toEqual([{ url: "http://localhost" }]);
  });
});

test("the event loop is free between the operations while the document is made", async () => {
  const app = await start();
  let turns = 0;
  const count = setInterval(() => turns++, 0);
  const { paths } = await readDocument(app);
  clearInterval(count);
  const operations = Object.values(paths).flatMap((path) => Object.keys(path)).length;
  expect(turns).toBeGreaterThan(operations / 4);
});
