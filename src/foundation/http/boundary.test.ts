import { describe, expect, spyOn, test } from "bun:test";
import { createApps } from "../../testing/app.ts";
import { COMMIT, VERSION } from "../../service/version.ts";

const PATH = "/v1/email-verifications";
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const UNKNOWN_ID = "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52";
const start = createApps();

describe("X-Request-Id", () => {
  test("is on every answer, of whatever status", async () => {
    const app = start();
    const key = app.newKey();
    const answers = [
      await app.verify(key, "a@any.example"),
      await app.verify(key, ""),
      await app.request("GET", PATH),
      await app.request("GET", `${PATH}/${UNKNOWN_ID}`, { key }),
      await app.request("GET", "/nowhere"),
      await app.request("PUT", PATH),
      await app.request("HEAD", "/healthz"),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 400, 401, 404, 404, 405, 200]);
    const ids = answers.map(({ headers }) => headers.get("x-request-id") ?? "");
    for (const id of ids) expect(id).toMatch(UUID);
    expect(new Set(ids).size).toBe(answers.length);
  });

  test.each(["abc", "A-b_c.9", "x".repeat(64)])("is the caller's own where it is sober: %p", async (id) => {
    const answer = await start().request("GET", "/healthz", { headers: { "x-request-id": id } });
    expect(answer.headers.get("x-request-id")).toBe(id);
  });

  test.each(["", "x".repeat(65), "a b", "a,b", "<script>", "ä"])("is ours where the caller's is %p", async (id) => {
    const answer = await start().request("GET", "/healthz", { headers: { "x-request-id": id } });
    expect(answer.headers.get("x-request-id")).toMatch(UUID);
  });
});

describe("paths and methods", () => {
  test.each(["/v1", "/v2/email-verifications", "/v1/email-verification", `${PATH}/a/b`, "/v1//account", "/%2e%2e/v1"])(
    "GET %s is not found",
    async (target) => {
      expect(await start().request("GET", target)).toMatchObject({ status: 404, body: { error: "not_found" } });
    },
  );

  test.each([
    ["PUT", PATH, "GET, HEAD, POST"],
    ["DELETE", PATH, "GET, HEAD, POST"],
    ["OPTIONS", PATH, "GET, HEAD, POST"],
    ["POST", `${PATH}/${UNKNOWN_ID}`, "DELETE, GET, HEAD"],
    ["PATCH", `${PATH}/anything`, "DELETE, GET, HEAD"],
    ["POST", `${PATH}/${UNKNOWN_ID}/evidence`, "GET, HEAD"],
    ["POST", "/v1/account", "GET, HEAD"],
    ["POST", "/healthz", "GET, HEAD"],
    ["DELETE", "/openapi.json", "GET, HEAD"],
  ])("%s %s is not allowed, and Allow says what is", async (method, target, allow) => {
    const answer = await start().request(method, target);
    expect(answer).toMatchObject({ status: 405, body: { error: "method_not_allowed" } });
    expect(answer.headers.get("allow")).toBe(allow);
  });

  test("HEAD answers as GET does, without a body", async () => {
    const app = start();
    const key = app.newKey();
    const { id } = await app.verify(key, "a@any.example");
    for (const target of ["/healthz", "/readyz", "/openapi.json", "/v1/account", PATH, `${PATH}/${id}`]) {
      const head = await app.request("HEAD", target, { key });
      const get = await app.request("GET", target, { key });
      expect([head.status, head.text]).toEqual([200, ""]);
      expect(head.headers.get("content-type")).toBe(get.headers.get("content-type"));
    }
    expect((await app.request("HEAD", PATH)).status).toBe(401);
  });

  test.each(["%ZZ", "%", "%E2%82", "%00", "..%2f", "x".repeat(10_000)])("the id %p is not found", async (id) => {
    const app = start();
    const answer = await app.request("GET", `${PATH}/${id}`, { key: app.newKey() });
    expect(answer).toMatchObject({ status: 404, body: { error: "not_found" } });
  });
});

describe("what goes wrong on our side", () => {
  test("is a 500 that names nothing of the inside; the log has it, under the request's id", async () => {
    const app = start();
    const key = app.newKey();
    app.db.sqlite.run("DROP TABLE verifications");
    const answer = await app.verify(key, "a@any.example");
    expect(answer.status).toBe(500);
    expect(answer.body).toEqual({ error: "internal_error", message: expect.any(String) });
    expect(answer.text).not.toMatch(/sqlite|table|stack|\.ts/i);
    expect(answer.headers.get("x-request-id")).toMatch(UUID);
    const line = app.logged.find((entry) => entry.includes("verifications")) ?? "";
    expect(line).toContain(answer.headers.get("x-request-id") ?? "no id");
    expect(line).not.toContain(key.key);
  });

  test("a database that cannot be written is a 503 with Retry-After, for POST and readiness but not for reading", async () => {
    const app = start();
    const key = app.newKey();
    const { id } = await app.verify(key, "a@any.example");
    app.db.sqlite.run("PRAGMA query_only = ON");
    for (const answer of [await app.verify(key, "b@any.example"), await app.request("GET", "/readyz")]) {
      expect(answer).toMatchObject({ status: 503, body: { error: "unavailable", message: expect.any(String) } });
      expect(answer.headers.get("retry-after")).toMatch(/^[1-9][0-9]*$/);
    }
    expect((await app.request("GET", `${PATH}/${id}`, { key })).status).toBe(200);
    expect((await app.request("GET", "/healthz")).status).toBe(200);
    expect(app.logged.filter((line) => line.includes("database not writable"))).toHaveLength(1);
    app.db.sqlite.run("PRAGMA query_only = OFF");
    expect((await app.verify(key, "b@any.example")).status).toBe(200);
    await app.advance(1_000);
    expect((await app.request("GET", "/readyz")).status).toBe(200);
  });

  test("requests that fail because of the database are logged once in ten seconds, with how many others there were", async () => {
    const app = start();
    const key = app.newKey();
    app.db.sqlite.run("PRAGMA query_only = ON");
    const lines = () => app.logged.filter((line) => line.includes("database not writable"));
    for (let n = 0; n < 5; n++) await app.verify(key, `${n}@any.example`);
    expect(lines()).toHaveLength(1);
    await app.advance(10_000);
    await app.verify(key, "later@any.example");
    await app.verify(key, "again@any.example");
    expect(lines()).toHaveLength(2);
    expect(JSON.parse(lines()[1] ?? "")).toMatchObject({ path: PATH, others: 4 });
  });

  test("readiness is looked up once in a second, however often it is asked for", async () => {
    const app = start();
    const looks = spyOn(app.db, "isWritable");
    for (let n = 0; n < 5; n++) expect((await app.request("GET", "/readyz")).status).toBe(200);
    expect(looks).toHaveBeenCalledTimes(1);
    await app.advance(999);
    await app.request("GET", "/readyz");
    expect(looks).toHaveBeenCalledTimes(1);
    await app.advance(1);
    await app.request("GET", "/readyz");
    expect(looks).toHaveBeenCalledTimes(2);
  });

  test("a full disk is a 503, records nothing and holds nothing", async () => {
    const app = start();
    const key = app.newKey({ mode: "live" });
    app.db.sqlite.run("VACUUM");
    const { page_count: pages } = app.db.sqlite.query("PRAGMA page_count").get() as { page_count: number };
    app.db.sqlite.run(`PRAGMA max_page_count = ${pages}`);
    const answers = [];
    for (let n = 0; n < 20; n++) answers.push(await app.verify(key, `not an address ${"x".repeat(250)}${n}`));
    const full = answers.filter(({ status }) => status === 503);
    expect(full.length).toBeGreaterThan(0);
    const recorded = answers.filter(({ status }) => status === 200).length;
    expect(recorded + full.length).toBe(20);
    expect(app.countVerifications()).toBe(recorded);
    expect(app.credits()).toEqual({ available: 100 - recorded, held: 0 });
  });
});

test("a POST whose client has gone is not executed; a GET needs no extra turn", async () => {
  const app = start();
  const key = app.newKey({ mode: "live" });
  const gone = AbortSignal.abort();
  const send = (method: string, body?: string) =>
    app.handle(
      new Request(`http://localhost${PATH}`, {
        ...{
          method,
          signal: gone,
          headers: { authorization: `Bearer ${key.key}`, "content-type": "application/json" },
        },
        ...(body === undefined ? {} : { body }),
      }),
    );
  expect((await send("POST", JSON.stringify({ email: "a@any.example" }))).status).toBe(499);
  expect(app.countVerifications()).toBe(0);
  expect([(await send("GET")).status, (await send("HEAD")).status]).toEqual([200, 200]);
});

describe("without a key", () => {
  test("/readyz goes on saying yes while report mail is paused, and names the reason", async () => {
    const app = start();
    spyOn(app.db, "diskSpace").mockReturnValue({ freeBytes: 1, totalBytes: 2 ** 30 });
    const answer = await app.request("GET", "/readyz");
    expect(answer).toMatchObject({ status: 200, body: { status: "degraded" } });
    expect(answer.body.findings).toEqual([expect.stringContaining("Report ingestion is paused")]);
  });

  test("/readyz goes on saying yes while backups fail, and names the reason", async () => {
    const app = start({ settings: { BACKUP_DIR: "/nonexistent/backups" } });
    await app.service.backups?.checkDirectory();
    const answer = await app.request("GET", "/readyz");
    expect(answer).toMatchObject({ status: 200, body: { status: "degraded" } });
    expect(answer.body.findings).toEqual([expect.stringContaining("/nonexistent/backups: no such directory")]);
  });

  test.each([
    ["/healthz", { status: "ok", version: VERSION, commit: COMMIT }],
    ["/readyz", { status: "ok", findings: [] }],
  ])("%s says ok", async (target, body) => {
    expect(await start().request("GET", target)).toMatchObject({ status: 200, body });
  });
});
