import { describe, expect, test } from "bun:test";
import { createLog } from "../foundation/base/log.ts";
import { createApplication, type HttpApplication } from "./http-application.ts";
import { ClientAddresses } from "../foundation/http/client-addresses.ts";
import { createServer } from "./server.ts";
import { COMMIT } from "./version.ts";
import { createApps } from "../testing/app.ts";
import { createTestClock } from "../testing/clock.ts";

const start = createApps();

const startServer = (load: () => Promise<HttpApplication>) => {
  const clock = createTestClock();
  const lines: string[] = [];
  const log = createLog("error", clock, (line) => lines.push(line));
  let loads = 0;
  const applicationOf = () => {
    loads++;
    return load();
  };
  const app = createServer({ log, clock, clients: new ClientAddresses([]), applicationOf });
  const get = (path: string, headers: Record<string, string> = {}) =>
    app.handle(new Request(`http://localhost${path}`, { headers }));
  return { get, lines, loads: () => loads, application: () => createApplication({ log, clock, routes: [] }) };
};

test("the liveness is the same whether an application responds or the server itself", async () => {
  const app = start();
  const ask = async (target: string) => {
    const headers = { "x-request-id": "r1" };
    const response = await app.handle(new Request(`http://localhost${target}`, { headers }));
    return { status: response.status, headers: response.headers.toJSON(), body: await response.json() };
  };
  const own = await ask("/healthz");
  expect(own).toEqual({
    status: 200,
    headers: {
      ...{ "content-type": "application/json;charset=utf-8", "x-request-id": "r1" },
      ...{ "cache-control": "no-store", "x-content-type-options": "nosniff" },
    },
    body: { status: "ok", version: expect.any(String), commit: COMMIT },
  });
  expect(await ask("/healthz?")).toEqual(own);
});

test("the liveness loads no application, everything else does", async () => {
  const server = startServer(() => Promise.reject(new Error("not needed")));
  expect((await server.get("/healthz")).status).toBe(200);
  expect(server.loads()).toBe(0);
  for (const [path, headers] of [
    ["/readyz", {}],
    ["/healthz?a=b", {}],
    ["/healthz", { host: "a b" }],
  ] as const)
    await server.get(path, headers);
  expect(server.loads()).toBe(3);
});

test.each([
  ["/v1/account", "no-store"],
  ["/metrics", "no-store"],
  ["/nowhere", "no-store"],
  ["/openapi.json", null],
  ["/docs", null],
] as const)(
  "%s is stored by nobody, unless it is the same for all, and its type is not guessed",
  async (path, cache) => {
    const { headers } = await start().handle(new Request(`http://localhost${path}`));
    expect([headers.get("cache-control"), headers.get("x-content-type-options")]).toEqual([cache, "nosniff"]);
  },
);

test("requests that wait for the OpenAPI document share its bytes, which name the host of each", async () => {
  const app = start();
  const ask = async (host: string) => {
    const { body } = await app.handle(new Request(`http://${host}/openapi.json`));
    if (body === null) throw new Error("there is no document");
    const pieces = await Array.fromAsync(body);
    return { buffer: pieces[0]?.buffer, server: JSON.parse(Buffer.concat(pieces).toString()).servers[0].url };
  };
  const asked = await Promise.all(["a.test", "a.test", "a.test", "b.test", "b.test"].map(ask));
  const [first, , , other] = asked;
  expect(asked.map(({ server }) => server.split("/")[2])).toEqual(["a.test", "a.test", "a.test", "b.test", "b.test"]);
  expect(asked.map(({ buffer }) => buffer === first?.buffer)).toEqual([true, true, true, false, false]);
  expect(asked.map(({ buffer }) => buffer === other?.buffer)).toEqual([false, false, false, true, true]);
});

test("there is a page below /docs for what the manual does not have, and nothing where it is off", async () => {
  const missing = await start().handle(new Request("http://localhost/docs/no-such-page"));
  expect([missing.status, missing.headers.get("content-type")]).toEqual([404, "text/html; charset=utf-8"]);
  const text = await missing.text();
  expect(text).toContain("<h1>No such page</h1>");
  expect(text).toContain('href="/docs/lists"');
  for (const path of ["/docs/not-found", "/docs/lists/deeper"]) {
    const other = await start().handle(new Request(`http://localhost${path}`));
    expect([path, other.status, await other.text()]).toEqual([path, 404, text]);
  }
  const off = start({ settings: { DOCS: "off" } });
  for (const path of ["/docs", "/docs/lists", "/docs/no-such-page"]) {
    const response = await off.handle(new Request(`http://localhost${path}`));
    expect([path, response.status, await response.json()]).toMatchObject([
      path,
      404,
      { message: "The manual is turned off." },
    ]);
  }
});

describe("HTTPS is required from then on", () => {
  const answer = async (isTls: boolean, trusted: readonly string[], forwardedProto?: string) => {
    const clock = createTestClock();
    const log = createLog("error", clock, () => undefined);
    const clients = new ClientAddresses(trusted);
    clients.attach({ requestIP: () => ({ address: "10.0.0.7", port: 1, family: "IPv4" }) });
    const app = createServer({
      log,
      clock,
      clients,
      isTls,
      applicationOf: () => createApplication({ log, clock, routes: [] }),
    });
    const headers = forwardedProto === undefined ? {} : { "x-forwarded-proto": forwardedProto };
    const response = await app.handle(new Request("http://localhost/healthz", { headers }));
    return response.headers.get("strict-transport-security");
  };

  test.each([
    ["with its own certificate", true, [], undefined],
    ["behind a trusted proxy with HTTPS", false, ["10.0.0.0/8"], "https"],
    ["behind a chain of proxies of which the last is trusted", false, ["10.0.0.0/8"], "http, HTTPS"],
  ] as const)("%s", async (_, isTls, trusted, proto) => {
    expect(await answer(isTls, trusted, proto)).toBe("max-age=31536000");
  });

  test.each([
    ["plain HTTP", false, [], undefined],
    ["a client that says so itself", false, [], "https"],
    ["a trusted proxy without HTTPS", false, ["10.0.0.0/8"], "http"],
    ["a client that says so to a trusted proxy without HTTPS", false, ["10.0.0.0/8"], "https, http"],
  ] as const)("but not by %s", async (_, isTls, trusted, proto) => {
    expect(await answer(isTls, trusted, proto)).toBeNull();
  });
});

test("a request waits until its application is loaded", async () => {
  const { promise, resolve } = Promise.withResolvers<HttpApplication>();
  const server = startServer(() => promise);
  const response = server.get("/nowhere");
  resolve(server.application());
  expect((await response).status).toBe(404);
});

test.each([
  ["a bug", new Error("no such table: users"), 500, "internal_error"],
  ["a full disk", Object.assign(new Error("full"), { code: "SQLITE_FULL" }), 503, "unavailable"],
])(
  "an application that cannot be loaded because of %s is an error with a request ID, in the log",
  async (_, error, ...expected) => {
    const [status, code] = expected;
    const server = startServer(() => Promise.reject(error));
    const response = await server.get("/v1/account", { "x-request-id": "r2" });
    expect([response.status, response.headers.get("x-request-id")]).toEqual([status, "r2"]);
    const body = await response.text();
    expect(body).toContain(code);
    expect(body).not.toContain(error.message);
    expect(server.lines).toHaveLength(1);
    expect(server.lines[0]).toContain("r2");
  },
);

test("in a rush, requests begin over several turns, but none that has a large body, or one of unknown length", async () => {
  let nowMs = 0;
  const clock = { ...createTestClock(), monotonicMs: () => (nowMs += 1) };
  const begun: string[] = [];
  const application: HttpApplication = {
    routes: [],
    fetch: async (request) => {
      begun.push(new URL(request.url).pathname);
      return new Response(await request.text());
    },
  };
  const log = createLog("error", clock, () => undefined);
  const app = createServer({ log, clock, clients: new ClientAddresses([]), applicationOf: () => application });
  const send = (path: string, headers: Record<string, string>) =>
    app.handle(new Request(`http://localhost${path}`, { method: "POST", headers, body: "x" }));
  const all = [
    ...Array.from({ length: 100 }, () => send("/small", { "content-length": "1" })),
    send("/large", { "content-length": "5000" }),
    send("/chunked", { "transfer-encoding": "chunked" }),
  ];
  await Promise.resolve();
  expect(begun.filter((path) => path === "/small").length).toBeLessThan(20);
  expect(begun).toContain("/large");
  expect(begun).toContain("/chunked");
  await Promise.all(all);
  expect(begun).toHaveLength(102);
});

test("requests that wait for a turn are taken of each caller in turn", async () => {
  const clock = createTestClock();
  const log = createLog("error", clock, () => undefined);
  const application = createApplication({ log, clock, routes: [] });
  const begun: string[] = [];
  let nowMs = 0;
  const app = createServer({
    // The clock moves at each look, so only a few requests begin at once.
    ...{ log, clock: { ...clock, monotonicMs: () => (nowMs += 1) }, clients: new ClientAddresses([]) },
    callerOf: ({ headers }) => headers.get("authorization"),
    applicationOf: (path) => {
      begun.push(path);
      return application;
    },
  });
  const send = (path: string, authorization: string) =>
    app.handle(new Request(`http://localhost${path}`, { headers: { authorization } }));
  const many = Array.from({ length: 300 }, () => send("/many", "a"));
  const one = send("/one", "b");
  await Promise.all([...many, one]);
  expect(begun).toHaveLength(301);
  expect(begun.indexOf("/one")).toBeLessThan(30);
});
