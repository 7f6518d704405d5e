import { describe, expect, test } from "bun:test";
import { newApiKey } from "../base/secrets.ts";
import { createApps } from "../../testing/app.ts";
import { createTokenBuckets } from "../base/limits.ts";
import { createTestClock } from "../../testing/clock.ts";
import { Guard } from "./guard.ts";
import { accountOfRequest, createBudgets } from "./request-memory.ts";
import { sendBytes } from "./response.ts";
import { allows, SCOPES } from "./scopes.ts";

const PATH = "/v1/email-verifications";
const HOUR_MS = 60 * 60 * 1000;
const start = createApps();

describe("the Authorization header", () => {
  const app = () => {
    const made = start();
    return { app: made, key: made.newKey().key };
  };

  test.each([
    ["Bearer, one space", (key: string) => `Bearer ${key}`],
    ["bearer in lower case (RFC 9110 §11.1)", (key: string) => `bearer ${key}`],
    ["BEARER in upper case", (key: string) => `BEARER ${key}`],
    ["several spaces (RFC 9110 §11.4: 1*SP)", (key: string) => `Bearer   ${key}`],
  ])("is read: %s", async (_, header) => {
    const { app: made, key } = app();
    const headers = { authorization: header(key) };
    expect((await made.request("GET", "/v1/account", { headers })).status).toBe(200);
  });

  test.each([
    ["none", () => ""],
    ["the key alone", (key: string) => key],
    ["Bearer alone", () => "Bearer"],
    ["another scheme", (key: string) => `Basic ${key}`],
    ["no space", (key: string) => `Bearer${key}`],
    ["a colon", (key: string) => `Bearer: ${key}`],
    ["quotes", (key: string) => `Bearer "${key}"`],
    ["two keys", (key: string) => `Bearer ${key}, Bearer ${key}`],
    ["something behind", (key: string) => `Bearer ${key} x`],
    ["one character changed", (key: string) => `Bearer ${key.slice(0, -1)}${key.endsWith("x") ? "y" : "x"}`],
    ["one character missing", (key: string) => `Bearer ${key.slice(0, -1)}`],
    ["one character more", (key: string) => `Bearer ${key}0`],
    ["the other case", (key: string) => `Bearer ${key.toUpperCase()}`],
    ["the other mode", (key: string) => `Bearer ${key.replace("test", "live")}`],
    ["well formed, but unknown", () => `Bearer ${newApiKey("live")}`],
    ["very long", () => `Bearer ${"x".repeat(100_000)}`],
  ])("is refused: %s", async (_, header) => {
    const { app: made, key } = app();
    for (const target of [PATH, "/v1/account", `${PATH}/019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52`]) {
      const answer = await made.request("GET", target, { headers: { authorization: header(key) } });
      expect(answer).toMatchObject({ status: 401, body: { error: "unauthorized", message: expect.any(String) } });
      expect(answer.headers.get("www-authenticate")).toBe('Bearer realm="postwarden"');
    }
  });

  test("is not asked for where none is needed", async () => {
    const { app: made } = app();
    for (const target of ["/healthz", "/readyz", "/openapi.json"]) {
      const answer = await made.request("GET", target, { headers: { authorization: "nonsense" } });
      expect(answer.status).toBe(200);
    }
  });
});

test("requests without a key share the memory of one account", () => {
  const clock = createTestClock();
  const budgets = createBudgets(clock);
  const guard = new Guard(() => undefined, { buckets: createTokenBuckets(clock), budgets });
  const request = new Request("http://localhost/healthz");
  guard.admitAnyone(request);
  sendBytes(request, new Uint8Array(1_000), {});
  expect([budgets.answers.held, accountOfRequest(request)]).toEqual([1_000, null]);
});

describe("a key that has ended", () => {
  test("by revocation, also by another process, is refused from the next request on", async () => {
    const app = start();
    const key = app.newKey();
    expect((await app.request("GET", "/v1/account", { key })).status).toBe(200);
    app.db.sqlite.run("UPDATE api_keys SET revoked_at_ms = ? WHERE id = ?", [app.clock.nowMs(), key.id]);
    expect((await app.request("GET", "/v1/account", { key })).status).toBe(401);
  });

  test("by expiry is refused from that millisecond on", async () => {
    const app = start();
    const key = app.newKey({ expiresAtMs: app.clock.nowMs() + 1_000 });
    await app.advance(999);
    expect((await app.request("GET", "/v1/account", { key })).status).toBe(200);
    await app.advance(1);
    expect((await app.request("GET", "/v1/account", { key })).status).toBe(401);
  });

  test("by rotation: the old secret works for 24 hours, the new one at once and after", async () => {
    const app = start();
    const old = app.newKey();
    const rotated = app.service.accounts.keys.rotate(old.id);
    if (!rotated.ok) throw new Error(rotated.error);
    const statuses = async () =>
      Promise.all([old, rotated.value].map(async (key) => (await app.request("GET", "/v1/account", { key })).status));
    expect(rotated.value).toMatchObject({ id: old.id, mode: "test" });
    expect(rotated.value.key).not.toBe(old.key);
    expect(await statuses()).toEqual([200, 200]);
    await app.advance(24 * HOUR_MS - 1);
    expect(await statuses()).toEqual([200, 200]);
    await app.advance(1);
    expect(await statuses()).toEqual([401, 200]);
  });

  test("by rotation without grace ends at once, and a second rotation never prolongs the first", async () => {
    const app = start();
    const first = app.newKey();
    const second = app.service.accounts.keys.rotate(first.id, HOUR_MS);
    const third = app.service.accounts.keys.rotate(first.id, 0);
    const fourth = app.service.accounts.keys.rotate(first.id, 48 * HOUR_MS);
    if (!second.ok || !third.ok || !fourth.ok) throw new Error("a rotation failed");
    const statuses = [];
    for (const { key } of [first, second.value, third.value, fourth.value]) {
      statuses.push((await app.request("GET", "/v1/account", { key })).status);
    }
    expect(statuses).toEqual([401, 401, 200, 200]);
  });

  test("a rotated key keeps its budget and its history", async () => {
    const app = start();
    app.newAccount("free", "free");
    const old = app.newKey({ account: "free" });
    const { id } = await app.verify(old, "someone@any.example");
    const rotated = app.service.accounts.keys.rotate(old.id);
    if (!rotated.ok) throw new Error(rotated.error);
    const answer = await app.verify(rotated.value, "someone@any.example");
    expect(answer.headers.get("ratelimit-remaining")).toBe("0");
    const { body } = await app.request("GET", PATH, { key: rotated.value });
    expect(body.verifications).toEqual([expect.anything(), expect.objectContaining({ id })]);
  });

  test("by revocation ends its old secrets too, and cannot be rotated back", async () => {
    const app = start();
    const old = app.newKey();
    const rotated = app.service.accounts.keys.rotate(old.id);
    if (!rotated.ok) throw new Error(rotated.error);
    expect(app.service.accounts.keys.revoke(old.id).ok).toBe(true);
    for (const key of [old, rotated.value]) expect((await app.request("GET", "/v1/account", { key })).status).toBe(401);
    expect(app.service.accounts.keys.rotate(old.id)).toEqual({ ok: false, error: "revoked_key" });
    expect(app.service.accounts.keys.revoke(old.id)).toEqual({ ok: false, error: "revoked_key" });
  });
});

describe("scopes", () => {
  const ID = "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52";
  const targets = {
    list: ["GET", PATH],
    poll: ["GET", `${PATH}/${ID}`],
    evidence: ["GET", `${PATH}/${ID}/evidence`],
    order: ["POST", PATH],
  } as const;

  test.each([
    ["verifications:read", { list: 200, poll: 404, evidence: 404, order: 403 }],
    ["verifications:write", { list: 200, poll: 404, evidence: 404, order: 400 }],
    ["bulk:write", { list: 403, poll: 403, evidence: 403, order: 403 }],
  ] as const)("a key with %s only", async (scope, expected) => {
    const app = start();
    const key = app.newKey({ scopes: [scope] });
    for (const [name, [method, target]] of Object.entries(targets)) {
      const request = method === "POST" ? { key, body: "{}" } : { key };
      const answer = await app.request(method, target, request);
      expect([name, answer.status]).toEqual([name, expected[name as keyof typeof expected]]);
      if (answer.status !== 403) continue;
      const required = `verifications:${method === "POST" ? "write" : "read"}`;
      expect(answer.body).toEqual({ error: "insufficient_scope", required, message: expect.any(String) });
    }
    expect((await app.request("GET", "/v1/account", { key })).status).toBe(200);
  });

  test("write includes read, in the same area only; read never includes write", () => {
    for (const held of SCOPES) {
      for (const required of SCOPES) {
        const isSameArea = held.split(":")[0] === required.split(":")[0];
        const expected = held === required || (isSameArea && held.endsWith(":write"));
        expect([held, required, allows([held], required)]).toEqual([held, required, expected]);
      }
    }
  });
});

describe("last_used_at", () => {
  test("is stored soon after a request, once a minute, and not by a refused one", async () => {
    const app = start();
    const [used, unused] = [app.newKey(), app.newKey()];
    const lastUse = (id: string) => app.service.accounts.store.findKey(id)?.lastUsedAtMs;
    const startedMs = app.clock.nowMs();
    await app.advance(1_000);
    await app.request("GET", "/v1/account", { key: used });
    await app.request("GET", "/v1/account", { key: `${unused.key}x` });
    await app.advance(5_000);
    expect([lastUse(used.id), lastUse(unused.id)]).toEqual([startedMs + 1_000, null]);
    await app.advance(54_999);
    await app.request("GET", "/v1/account", { key: used });
    await app.advance(5_000);
    expect(lastUse(used.id)).toBe(startedMs + 1_000);
    await app.request("GET", "/v1/account", { key: used });
    await app.advance(5_000);
    expect(lastUse(used.id)).toBe(startedMs + 65_999);
  });
});

describe("the rate limit of the dashboard", () => {
  test("is one of each account: an account that has used its own up takes nothing from another, nor from its keys", () => {
    const buckets = createTokenBuckets(createTestClock());
    const guard = new Guard(() => undefined, { buckets, budgets: createBudgets(createTestClock()) });
    const rate = { perSecond: 1, burst: 2 };
    const tryAs = (accountId: string): boolean => {
      try {
        guard.limitUser({ accountId, rate });
        return true;
      } catch {
        return false;
      }
    };
    expect(["acme", "acme", "acme", "other", "other", "other"].map(tryAs)).toEqual([
      true,
      true,
      false,
      true,
      true,
      false,
    ]);
    expect(buckets.take("acme", rate).remaining).toBe(1);
  });
});
