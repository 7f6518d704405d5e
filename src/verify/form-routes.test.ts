import { describe, expect, test } from "bun:test";
import type { IssuedKey } from "../accounts/keys.ts";
import { createApps, type TestApp } from "../testing/app.ts";

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

const shopKey = (app: TestApp, limits: { visitorPerHour?: number; perDay?: number } = {}) =>
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
    expect(await response.json()).toMatchObject({ error: "insufficient_scope", message: expect.any(String) });
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
    ["one visitor", { visitorPerHour: 2 }],
    ["a day", { perDay: 2 }],
  ])("has a limit for %s, which its page may read", async (_what, limits) => {
    const app = start();
    const key = shopKey(app, limits);
    for (const n of [1, 2]) expect((await verify(app, key, `a${n}@any.example`)).status).toBe(200);
    const refused = await verify(app, key, "a3@any.example");
    expect(refused.status).toBe(429);
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
  ])("cannot be made for the origins %p", (origins, problem) => {
    const app = start();
    app.newKey();
    const made = app.service.accounts.keys.create({ account: "main", mode: "test", forms: { origins } });
    expect(made).toMatchObject({ ok: false, error: problem });
  });
});

describe("a preflight", () => {
  test("is allowed for an origin that a key lists, and for no other", async () => {
    const app = start();
    const { id } = shopKey(app);
    const allowed = await send(app, PATH, { method: "OPTIONS", origin: SHOP });
    expect(allowed.status).toBe(204);
    expect(allowed.headers.get("access-control-allow-headers")).toBe("authorization, content-type");
    const foreign = await send(app, PATH, { method: "OPTIONS", origin: "https://evil.example" });
    expect([foreign.status, foreign.headers.get("access-control-allow-origin")]).toEqual([403, null]);
    app.service.accounts.keys.revoke(id);
    expect((await send(app, PATH, { method: "OPTIONS", origin: SHOP })).status).toBe(403);
  });
});
