import { afterAll, describe, expect, test } from "bun:test";
import { createApps, TestApp } from "../../testing/app.ts";
import { apiDocumentSchema, type DocumentedOperation, operationsOf } from "./api-document.ts";
import { bodyTypesOf, curlExample, KEY_VARIABLE, shellQuoted } from "./curl-example.ts";
import { apiPages } from "./api-pages.ts";
import { interfaceDocument } from "../interface-document.ts";

const BASE_URL = "http://localhost";
const FILES: Readonly<Record<string, string>> = {
  "list.csv": "email\nsomeone@example.com\n",
  "report.xml.gz": "not gzip",
};
const start = createApps();

const openApi = await interfaceDocument({ version: "1.2.3", baseUrl: BASE_URL, description: "What it does." });
const document = apiDocumentSchema.parse(openApi);
const operations = operationsOf(document);
const pages = await apiPages(openApi);
const everything = pages.map(({ body }) => body.text).join("\n");
const articleOf = (id: string): string => everything.split(`<h2 id="${id}">`)[1]?.split("<h2 ")[0] ?? "";

/** The arguments that the shell passes to curl. */
const argumentsOf = (command: string, key: string): string[] => {
  const script = `curl() { printf '%s\\0' "$@"; }\n${command}`;
  const run = Bun.spawnSync(["sh", "-euc", script], { env: { [KEY_VARIABLE]: key, METRICS_TOKEN: "t".repeat(32) } });
  expect([run.exitCode, run.stderr.toString()]).toEqual([0, ""]);
  return run.stdout.toString().split("\0").slice(0, -1);
};

const fileOf = (argument: string): string => FILES[argument.slice(1)] ?? "bytes of a file";

/** The request that curl makes of its arguments. */
const requestOf = (given: readonly string[]): Request => {
  const headers = new Headers();
  let [url, method, body]: [string, string | null, string | FormData | null] = ["", null, null];
  for (let at = 0; at < given.length; at++) {
    const [option = "", value = ""] = [given[at], given[at + 1]];
    if (!option.startsWith("-")) url = option;
    else at++;
    if (option === "-X") method = value;
    if (option === "-H") headers.append(value.slice(0, value.indexOf(":")), value.slice(value.indexOf(":") + 2));
    if (option === "-d") body = value;
    if (option === "--data-binary") body = fileOf(value);
    if (option === "-F") {
      body = new FormData();
      body.append("file", new File([fileOf(value.slice(value.indexOf("=") + 1))], "list.csv"));
    }
  }
  return new Request(url, { method: method ?? (body === null ? "GET" : "POST"), headers, body });
};

const examples = operations.flatMap((operation) =>
  bodyTypesOf(operation).map((type) => ({ operation, type, name: `${operation.operationId} ${type ?? ""}`.trim() })),
);

describe("every curl example", () => {
  // One for all: each example has an account of its own.
  const app = new TestApp({ settings: { NOTIFY_SMTP_URL: "smtp://127.0.0.1:1", NOTIFY_FROM: "alerts@example.com" } });
  afterAll(() => app.close());

  for (const { operation, type, name } of examples)
    test(`is accepted by the shell and by the service: ${name}`, async () => {
      const command = curlExample(operation, type, BASE_URL);
      // Test keys send no mail, so that there is none to stop.
      const mode = operation.operationId === "setNotificationMail" ? "live" : "test";
      const request = requestOf(argumentsOf(command, app.newKey({ account: name, mode }).key));
      const { method, path, responses } = operation;
      expect(request.method).toBe(method);
      const form = new RegExp(`^${path.replaceAll(".", "\\.").replace(/\{\w+\}/g, "[^/]+")}$`);
      expect(new URL(request.url).pathname).toMatch(form);
      const waiting = app.handle(request);
      await app.advance(20_000);
      const response = await waiting;
      const text = await response.text();
      expect(Object.keys(responses)).toContain(String(response.status));
      // The id of the example does not exist, unless the path has none; nothing else may be wrong.
      const allowed = path.includes("{") || operation.operationId === "getMetrics" ? [404] : [];
      if (response.status >= 400 && !allowed.includes(response.status)) throw new Error(`${response.status} ${text}`);
      expect(text).not.toContain("No such path");
    }, 60_000);
});

describe("the pages", () => {
  test("have every operation with its parameters, errors and example, and every event and schema", () => {
    for (const operation of operations) {
      const { operationId, method, path, parameters, summary } = operation;
      const article = articleOf(operationId);
      expect(everything).toContain(`<h2 id="${operationId}">${Bun.escapeHTML(summary)}</h2>`);
      expect(article).toContain(`>${method}</b> <code>${path}</code>`);
      for (const { name } of parameters) expect(article).toContain(`<code>${Bun.escapeHTML(name)}</code>`);
      for (const type of bodyTypesOf(operation))
        expect(article).toContain(Bun.escapeHTML(curlExample(operation, type, BASE_URL)));
      for (const status of Object.keys(operation.responses)) expect(article).toContain(status);
      expect(pages[0]?.body.text).toContain(`#${operationId}">`);
    }
    for (const type of Object.keys(document.webhooks)) expect(everything).toContain(`<h2 id="event-${type}">`);
    for (const name of Object.keys(document.components.schemas))
      expect(everything).toContain(`<h2 id="schema-${name}">`);
  });

  test("name the scope of an operation, and which need no key", () => {
    const access = (operationId: string) => articleOf(operationId).match(/class="access">(.*?)<\/small>/)?.[1];
    expect(access("createVerification")).toBe("Scope <code>verifications:write</code>");
    expect(access("getAccount")).toBe("Any key");
    expect(access("getHealth")).toBe("No key");
    expect(access("getMetrics")).toBe("Metrics token");
  });

  test("show properties with type, limits and values", () => {
    const article = articleOf("createVerification");
    expect(article).toContain("at least 1; default 5");
    expect(article.split("<h3>Responses</h3>")[1]).toContain("<th>Property</th>");
    expect(article).toContain("1 to 200 characters");
    expect(everything).toContain("One of <code>deliverable</code>, <code>risky</code>, <code>undeliverable</code>");
  });
});

describe("GET /docs", () => {
  test("serves the page, compressed where that is accepted, and HEAD", async () => {
    const app = start();
    const get = (headers: Record<string, string>, method = "GET") =>
      app.handle(new Request("http://localhost/docs", { method, headers }));
    const plain = await get({});
    expect(plain.headers.get("content-type")).toBe("text/html; charset=utf-8");
    const text = await plain.text();
    expect(text).toContain("<h1>Manual</h1>");
    const zipped = await get({ "accept-encoding": "gzip" });
    expect(zipped.headers.get("content-encoding")).toBe("gzip");
    expect(zipped.headers.get("vary")).toBe("accept-encoding");
    expect(zipped.headers.get("content-security-policy")).toStartWith("default-src 'none'");
    expect(new TextDecoder().decode(Bun.gunzipSync(new Uint8Array(await zipped.arrayBuffer())))).toBe(text);
    expect((await get({}, "HEAD")).status).toBe(200);
    expect((await app.request("POST", "/docs")).status).toBe(405);
  });
});

describe("a command", () => {
  const operation = (change: Partial<DocumentedOperation>): DocumentedOperation => ({
    ...{
      method: "POST",
      path: "/v1/things/{id}",
      operationId: "x",
      tags: ["T"],
      summary: "S",
      security: [{ apiKey: [] }],
    },
    ...{ parameters: [], responses: {}, ...change },
  });

  test("quotes whatever an example contains", () => {
    const text = 'it\'s `$(x)` "quoted" \\ !\n';
    const [first, second] = argumentsOf(`curl ${shellQuoted(text)} end`, "");
    expect([first, second]).toEqual([text, "end"]);
    const example = { note: "it's $HOME" };
    const body = { required: true, content: { "application/json": { example } } };
    const given = argumentsOf(curlExample(operation({ requestBody: body }), "application/json", BASE_URL), "k");
    expect(JSON.parse(given[given.indexOf("-d") + 1] ?? "")).toEqual(example);
  });

  test("uses the base URL of the service without a slash twice, and encodes path parameters", () => {
    const parameters = [{ name: "id", in: "path" as const, schema: { examples: ["net:192.0.2.0/24"] } }];
    const command = curlExample(operation({ method: "GET", parameters }), null, "https://verify.example.com/base/");
    expect(command).toStartWith("curl 'https://verify.example.com/base/v1/things/net%3A192.0.2.0%2F24'");
  });
});
