import { describe, expect, test } from "bun:test";
import type { FormSettings } from "../../accounts/form-keys.ts";
import type { IssuedKey } from "../../accounts/keys.ts";
import { createApps, type TestApp } from "../../testing/app.ts";

const PATH = "/v1/email-verifications";
const SHOP = "https://shop.example";

const start = createApps();

const send = (
  app: TestApp,
  path: string,
  { key, origin, ...init }: RequestInit & { key?: string; origin?: string },
) => {
  const headers = new Headers({ host: "localhost", ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) });
  if (origin !== undefined) headers.set("origin", origin);
  if (init.body !== undefined) headers.set("content-type", "application/json");
  if (init.method === "OPTIONS") headers.set("access-control-request-method", "POST");
  return app.handle(new Request(`http://localhost${path}`, { ...init, headers }));
};

const verify = (app: TestApp, { key }: IssuedKey, email: string, origin: string | undefined = SHOP) =>
  send(app, PATH, {
    method: "POST",
    key,
    body: JSON.stringify({ email }),
    ...(origin === undefined ? {} : { origin }),
  });

/** Requests a verification that is still running after a second. */
const pending = async (app: TestApp, by: { key: string; origin?: string }) => {
  const body = JSON.stringify({ email: "pending@any.example" });
  const sent = send(app, `${PATH}?timeout=1`, { method: "POST", body, ...by });
  await app.advance(1_000);
  const response = await sent;
  expect(response.status).toBe(202);
  return response.json();
};

const poll = async (app: TestApp, id: string, key: IssuedKey): Promise<number> => {
  const sent = send(app, `${PATH}/${id}?timeout=1`, { key: key.key, origin: SHOP });
  await app.advance(1_000);
  return (await sent).status;
};

const shopKey = (app: TestApp, limits: Partial<FormSettings> = {}) =>
  app.newKey({ forms: { origins: [SHOP], ...limits } });

describe("a publishable key", () => {
  test("verifies an address for a page of its origins, and says no more than a form needs", async () => {
    const app = start();
    const key = shopKey(app);
    expect(key.key).toStartWith("pw_pub_test_");
    const response = await verify(app, key, "someone@gmial.com");
    expect(response.status).toBe(200);
    expect(response.headers.get("access-control-allow-origin")).toBe(SHOP);
    expect(response.headers.get("access-control-allow-credentials")).toBeNull();
    expect(response.headers.get("vary")).toContain("Origin");
    expect(await response.json()).toEqual({
      id: expect.any(String),
      status: "completed",
      result: { verdict: "deliverable", sub_status: "mailbox_exists", did_you_mean: "someone@gmail.com" },
    });
  });

  test.each([
    ["a foreign origin", "https://evil.example"],
    ["a name that begins like its origin", "https://shop.example.evil.example"],
    ["another scheme", "http://shop.example"],
    ["another port", "https://shop.example:8443"],
    ["the origin of a sandbox", "null"],
  ])("is refused from %s", async (_what, origin) => {
    const app = start();
    const response = await verify(app, shopKey(app), "someone@any.example", origin);
    expect(response.status).toBe(403);
    expect(response.headers.get("access-control-allow-origin")).toBeNull();
    expect(await response.json()).toMatchObject({ error: "origin_not_allowed", message: expect.any(String) });
  });

  test("is refused without an origin, and on every other route", async () => {
    const app = start();
    const { key } = shopKey(app);
    const body = JSON.stringify({ email: "someone@any.example" });
    expect((await send(app, PATH, { method: "POST", key, body })).status).toBe(403);
    for (const path of [PATH, "/v1/account", "/v1/usage", `${PATH}/019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52/evidence`])
      expect((await send(app, path, { key, origin: SHOP })).status).toBe(403);
  });

  test("polls its own verifications, and none of another key", async () => {
    const app = start();
    const [key, secret] = [shopKey(app), app.newKey()];
    const own = await pending(app, { key: key.key, origin: SHOP });
    const other = await (
      await send(app, PATH, { method: "POST", key: secret.key, body: '{"email":"a@b.example"}' })
    ).json();
    expect(await poll(app, own.id, key)).toBe(200);
    expect(await poll(app, other.id, key)).toBe(404);
  });

  test("polls a pending verification of another key that its request has joined", async () => {
    const app = start();
    const [key, secret] = [shopKey(app), app.newKey()];
    const first = await pending(app, { key: secret.key });
    const joined = await pending(app, { key: key.key, origin: SHOP });
    expect(joined.id).toBe(first.id);
    expect(await poll(app, joined.id, key)).toBe(200);
  });

  test.each([
    ["one visitor", { visitorPerHour: 2 }, /^Too many requests from this visitor/],
    ["a day", { perDay: 2 }, /^The publishable key has verified its 2 addresses of this day/],
    ["a day without mail servers", { perDay: 2, check: "domain" as const }, /its 2 addresses of this day/],
  ])("has a limit for %s, which its page may read", async (_what, limits, words) => {
    const app = start();
    const key = shopKey(app, limits);
    for (const n of [1, 2]) expect((await verify(app, key, `a${n}@any.example`)).status).toBe(200);
    const refused = await verify(app, key, "a3@any.example");
    expect(refused.status).toBe(429);
    expect(await refused.clone().json()).toMatchObject({
      error: "rate_limited",
      message: expect.stringMatching(words),
    });
    expect(refused.headers.get("access-control-allow-origin")).toBe(SHOP);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  });

  test.each([
    [[], "origin_invalid"],
    [["*"], "origin_invalid"],
    [["http://shop.example"], "origin_invalid"],
    [["https://shop.example/path"], "origin_invalid"],
    [["https://*.shop.example"], "origin_invalid"],
    [["https://user@shop.example"], "origin_invalid"],
    [Array.from({ length: 21 }, (_, n) => `https://shop${n}.example`), "origin_invalid"],
    [[`https://${"shop.".repeat(60)}example`], "origin_invalid"],
  ])("cannot be made for the origins %p", (origins, problem) => {
    const app = start();
    app.newKey();
    const made = app.service.accounts.keys.create({ account: "main", mode: "test", forms: { origins } });
    expect(made).toMatchObject({ ok: false, error: problem });
  });
});

test.each([0, 1.5, 1_000_001, Number.NaN])("a publishable key has no limit of %p", (limit) => {
  const app = start();
  app.newKey();
  for (const limits of [{ visitorPerHour: limit }, { perDay: limit }])
    expect(
      app.service.accounts.keys.create({ account: "main", mode: "test", forms: { origins: [SHOP], ...limits } }),
    ).toMatchObject({ ok: false, error: "limit_invalid" });
});

const screened = async (app: TestApp, key: IssuedKey, email: string) => (await verify(app, key, email)).json();

const rowsIn = (app: TestApp, table: string): number =>
  app.db.sqlite.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()?.n ?? 0;

describe("a publishable key that asks no mail server", () => {
  const ZONE = {
    "good.example": { MX: [[10, "mx.good.example"]] },
    "mx.good.example": { A: ["93.184.216.34"] },
    "null.example": { MX: [[0, ""]] },
    "mailinator.com": { MX: [[10, "mx.good.example"]] },
    "broken.example": "servfail",
  } as const;

  test.each([
    ["someone@good.example", null, null, null],
    ["no address", "undeliverable", "invalid_syntax", null],
    ["someone@null.example", "undeliverable", "null_mx", null],
    ["someone@nowhere.example", "undeliverable", "domain_not_found", null],
    ["someone@mailinator.com", "risky", "disposable", null],
    ["someone@broken.example", null, null, null],
    ["someone@gmial.com", "undeliverable", "domain_not_found", "someone@gmail.com"],
  ])("says of %s: %s, %s", async (email, verdict, reason, meant) => {
    const app = start({ zone: ZONE });
    const key = app.newKey({ mode: "live", forms: { origins: [SHOP], check: "domain" } });
    const result = { verdict, sub_status: reason, did_you_mean: meant };
    expect(await screened(app, key, email)).toEqual({ id: null, status: "completed", result });
    expect([rowsIn(app, "verifications"), rowsIn(app, "ledger")]).toEqual([0, 1]);
  });

  test("knows the addresses of test keys", async () => {
    const app = start();
    const key = shopKey(app, { check: "domain" });
    const reasons = ["null_mx", "disposable", "mailbox_not_found", "toxic", "greylisted"].map(
      async (word) => (await screened(app, key, `${word}@any.example`)).result.sub_status,
    );
    expect(await Promise.all(reasons)).toEqual(["null_mx", "disposable", null, null, null]);
  });
});

describe("a preflight", () => {
  test("has a limit for its visitor", async () => {
    const app = start();
    shopKey(app);
    const statuses: number[] = [];
    for (let n = 0; n < 21; n++) statuses.push((await send(app, PATH, { method: "OPTIONS", origin: SHOP })).status);
    expect(statuses).toEqual([...Array.from({ length: 20 }, () => 204), 429]);
  });

  test("is allowed for an origin that a key lists, and for no other", async () => {
    const app = start();
    const { id } = shopKey(app);
    const allowed = await send(app, PATH, { method: "OPTIONS", origin: SHOP });
    expect(allowed.status).toBe(204);
    expect(allowed.headers.get("access-control-allow-headers")).toBe("authorization, content-type");
    const foreign = await send(app, PATH, { method: "OPTIONS", origin: "https://evil.example" });
    expect([foreign.status, foreign.headers.get("access-control-allow-origin")]).toEqual([403, null]);
    app.service.accounts.keys.revoke(id);
    await app.advance(1_000);
    expect((await send(app, PATH, { method: "OPTIONS", origin: SHOP })).status).toBe(403);
  });
});

describe("the script for sign-up forms", () => {
  const WIDGET_BYTES_MAX = 6_000;

  test("is small, and pages of every origin may load and keep it", async () => {
    const response = await send(start(), "/widget.js", { origin: SHOP });
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/javascript; charset=utf-8"]);
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
    expect(response.headers.get("cross-origin-resource-policy")).toBe("cross-origin");
    expect(response.headers.get("cache-control")).toBe("public, max-age=3600");
    expect((await response.bytes()).length).toBeLessThanOrEqual(WIDGET_BYTES_MAX);
  });
});
