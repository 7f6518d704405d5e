import { describe, expect, test } from "bun:test";
import type { IssuedKey } from "../accounts/keys.ts";
import { createApps, ENDLESS, type TestApp } from "../testing/app.ts";

const PATH = "/v1/email-verifications";

const start = createApps();

/** Uses up the two requests that a key of the plan Free has at once. */
const exhaust = async (app: TestApp, key: IssuedKey): Promise<void> => {
  for (let n = 0; n < 2; n++) await app.verify(key, "someone@any.example");
};

describe("the order of checks on POST", () => {
  const bad = { query: "?timeout=0", body: "{", headers: { "idempotency-key": "" } };
  const goodQuery = "?timeout=1";

  test("a request that is wrong in every way gets the errors in order, from the key to the credits", async () => {
    const app = start(ENDLESS);
    app.newAccount("free", "free");
    const reader = app.newKey({ account: "free", scopes: ["verifications:read"] });
    const spent = app.newKey({ account: "free" });
    const live = app.newKey({ mode: "live" });
    const pending = app.verify(live, "waiting@example.com", "?timeout=1");
    await app.advance(1_000);
    const { id } = await pending;
    await exhaust(app, spent);
    app.leaveCredits(0);

    const steps = [
      [undefined, bad, 401, "unauthorized"],
      [reader, bad, 403, "insufficient_scope"],
      [spent, bad, 429, "rate_limited"],
      [live, bad, 400, "Invalid timeout"],
      [live, { ...bad, query: goodQuery }, 400, "Request body must be valid JSON"],
      [live, { ...bad, query: goodQuery, body: "{}" }, 400, "Invalid request body"],
      [live, { ...bad, query: goodQuery, body: { email: "waiting@example.com" } }, 400, "Invalid idempotency key"],
      [live, { query: goodQuery, body: { email: "other@example.com" } }, 402, "insufficient_credits"],
    ] as const;
    for (const [key, { query, ...request }, status, error] of steps) {
      const answer = await app.request("POST", PATH + query, { ...request, ...(key === undefined ? {} : { key }) });
      expect([answer.status, answer.body.error]).toEqual([status, error]);
    }
    const joined = app.verify(live, "waiting@example.com", goodQuery);
    await app.advance(1_000);
    expect(await joined).toMatchObject({ status: 202, id });
  });
});

describe("rate-limit headers", () => {
  const ratesOf = ({ headers }: { headers: Headers }) =>
    ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "retry-after"].map((name) => headers.get(name));

  test("stand on every answer after the scope check, whatever it says", async () => {
    const app = start();
    app.newAccount("free", "free");
    const key = app.newKey({ account: "free" });
    const first = await app.verify(key, "someone@any.example");
    const second = await app.request("POST", PATH, { key, body: "{" });
    const third = await app.request("POST", PATH, { key, body: "{" });
    expect([first.status, second.status, third.status]).toEqual([200, 400, 429]);
    expect(ratesOf(first)).toEqual(["1", "1", "1", null]);
    expect(ratesOf(second)).toEqual(["1", "0", "2", null]);
    expect(ratesOf(third)).toEqual(["1", "0", "2", "1"]);
    expect(third.body).toEqual({
      error: "rate_limited",
      message: "Too many requests. Try again in 1 s.",
      retry_after: 1,
    });
    await app.advance(1_000);
    expect(ratesOf(await app.verify(key, "someone@any.example"))).toEqual(["1", "0", "2", null]);
    await app.advance(2_000);
    expect(ratesOf(await app.verify(key, "someone@any.example"))).toEqual(["1", "1", "1", null]);
  });

  test("stand on 202, 402, 413, 415 and 422 too", async () => {
    const app = start();
    const key = app.newKey();
    const live = app.newKey({ mode: "live" });
    const pending = app.verify(key, "pending@any.example", "?timeout=1");
    await app.advance(1_000);
    app.leaveCredits(0);
    await app.verify(key, "a@any.example", "", { "idempotency-key": "k" });
    const answers = [
      await pending,
      await app.verify(live, "someone@any.example"),
      await app.request("POST", PATH, { key, body: " ".repeat(1024 * 1024 + 1) }),
      await app.request("POST", PATH, { key, body: "{}", headers: { "content-encoding": "gzip" } }),
      await app.verify(key, "b@any.example", "", { "idempotency-key": "k" }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([202, 402, 413, 415, 422]);
    for (const answer of answers) {
      expect(ratesOf(answer)).toEqual(["25", expect.stringMatching(/^4[0-9]$/), "1", null]);
    }
  });

  test("do not stand on 401 and 403, nor on the routes without a limit", async () => {
    const app = start();
    const reader = app.newKey({ scopes: ["verifications:read"] });
    const answers = [
      await app.request("POST", PATH, { body: {} }),
      await app.request("POST", PATH, { key: reader, body: {} }),
      await app.request("GET", PATH, { key: reader }),
      await app.request("GET", "/v1/account", { key: reader }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([401, 403, 200, 200]);
    for (const answer of answers) expect(ratesOf(answer)).toEqual([null, null, null, null]);
  });

  test.each([
    ["free", 1],
    ["starter", 3],
    ["growth", 10],
    ["scale", 25],
  ] as const)("a key of the plan %s has twice %i requests at once, then one at a time", async (plan, perSecond) => {
    const app = start();
    app.newAccount("it", plan);
    const key = app.newKey({ account: "it" });
    const burst = perSecond * 2;
    for (let left = burst - 1; left >= 0; left--) {
      const { status, headers } = await app.verify(key, "someone@any.example");
      expect([status, headers.get("ratelimit-limit")]).toEqual([200, String(perSecond)]);
      expect(headers.get("ratelimit-remaining")).toBe(String(left));
      expect(headers.get("ratelimit-reset")).toBe(String(Math.ceil((burst - left) / perSecond)));
    }
    expect((await app.verify(key, "someone@any.example")).status).toBe(429);
    await app.advance(Math.ceil(1_000 / perSecond));
    expect((await app.verify(key, "someone@any.example")).status).toBe(200);
    expect((await app.verify(key, "someone@any.example")).status).toBe(429);
  });

  test("a 429 is neither recorded nor billed, and each key has its own budget", async () => {
    const app = start();
    app.newAccount("free", "free");
    const key = app.newKey({ account: "free", mode: "live" });
    for (let n = 0; n < 2; n++) await app.verify(key, "not an address");
    expect((await app.verify(key, "not an address")).status).toBe(429);
    expect(app.countVerifications()).toBe(2);
    expect(app.credits("free")).toEqual({ available: 98, held: 0 });
    const other = app.newKey({ account: "free", mode: "live" });
    expect((await app.verify(other, "not an address")).status).toBe(200);
  });

  test("polling, listing and the account are not limited", async () => {
    const app = start();
    app.newAccount("free", "free");
    const key = app.newKey({ account: "free" });
    const { id } = await app.verify(key, "someone@any.example");
    for (const target of [`${PATH}/${id}`, PATH, `${PATH}/${id}/evidence`, "/v1/account"]) {
      for (let n = 0; n < 5; n++) expect((await app.request("GET", target, { key })).status).toBe(200);
    }
  });
});

describe("timeout", () => {
  test.each([
    ["", 5],
    ["?timeout=1", 1],
    ["?timeout=007", 7],
    ["?timeout=89", 89],
    ["?timeout=90", 90],
    ["?timeout=91", 90],
    [`?timeout=${"9".repeat(400)}`, 90],
  ])("POST with %p waits %i seconds", async (query, seconds) => {
    const app = start(ENDLESS);
    const key = app.newKey({ mode: "live" });
    let answered = 0;
    const answer = app.verify(key, "someone@example.com", query).finally(() => answered++);
    await app.advance(seconds * 1_000 - 1);
    expect(answered).toBe(0);
    await app.advance(1);
    expect((await answer).status).toBe(202);
  });

  const BAD = ["0", "-1", "1.5", "abc", "", "%205", "+5", "5%20", "1e1", "0x5", "Infinity", "5&timeout=5", "٥"];
  test.each(BAD)("%p is an Invalid timeout, on POST and on GET", async (timeout) => {
    const app = start();
    const key = app.newKey();
    const { id } = await app.verify(key, "someone@any.example");
    const post = await app.request("POST", `${PATH}?timeout=${timeout}`, { key, body: { email: "a@any.example" } });
    const get = await app.request("GET", `${PATH}/${id}?timeout=${timeout}`, { key });
    for (const answer of [post, get]) {
      expect(answer).toMatchObject({ status: 400, body: { error: "Invalid timeout" } });
    }
    expect(app.countVerifications()).toBe(1);
  });
});

describe("DELETE", () => {
  test("removes a completed verification with its evidence; its credit stays spent", async () => {
    const app = start();
    const key = app.newKey({ mode: "live" });
    const { id } = await app.verify(key, "not an address");
    expect(await app.request("DELETE", `${PATH}/${id}`, { key })).toMatchObject({ status: 204, text: "" });
    for (const [method, target] of [
      ["GET", `${PATH}/${id}`],
      ["GET", `${PATH}/${id}/evidence`],
      ["DELETE", `${PATH}/${id}`],
    ] as const)
      expect(await app.request(method, target, { key })).toMatchObject({ status: 404, body: { error: "not_found" } });
    expect(app.db.sqlite.query("SELECT * FROM verification_evidence").all()).toEqual([]);
    expect(app.credits()).toEqual({ available: 99, held: 0 });
  });

  test("is a 409 while it is pending, and nothing is removed", async () => {
    const app = start(ENDLESS);
    const key = app.newKey({ mode: "live" });
    const posted = app.verify(key, "someone@example.com", "?timeout=1");
    await app.advance(1_000);
    const { id } = await posted;
    expect(await app.request("DELETE", `${PATH}/${id}`, { key })).toMatchObject({
      status: 409,
      body: { error: "conflict", message: "The verification is pending. Delete it when it is completed." },
    });
    expect(app.countVerifications()).toBe(1);
    expect(app.credits()).toEqual({ available: 99, held: 1 });
  });

  test.each([
    ["another account", { account: "other" }, 404],
    ["another mode", { mode: "live" }, 404],
    ["a key that may only read", { scopes: ["verifications:read"] }, 403],
  ] as const)("by %s is refused", async (_, parts, status) => {
    const app = start();
    const key = app.newKey();
    const { id } = await app.verify(key, "someone@any.example");
    const other = app.newKey({ ...parts });
    expect((await app.request("DELETE", `${PATH}/${id}`, { key: other })).status).toBe(status);
    expect((await app.request("GET", `${PATH}/${id}`, { key })).status).toBe(200);
  });
});

test("evidence that has expired is a 404; what the address alone explains is still there", async () => {
  const app = start({ zone: { "null.example.com": { MX: [[0, ""]] } } });
  const key = app.newKey({ mode: "live" });
  const posted = [await app.verify(key, "anna@null.example.com"), await app.verify(key, "not an address")];
  app.db.sqlite.run("DELETE FROM verification_evidence");
  const [expired, syntax] = await Promise.all(
    posted.map(({ id }) => app.request("GET", `${PATH}/${id}/evidence`, { key })),
  );
  expect(expired).toMatchObject({ status: 404, body: { error: "not_found" } });
  expect(expired?.body.message).toBe("The evidence of this verification has expired. Its result is stored for longer.");
  expect(syntax).toMatchObject({ status: 200, body: { conclusion: { sub_status: "invalid_syntax" } } });
});

test("evidence of a pending verification is what is known before the first attempt", async () => {
  const app = start(ENDLESS);
  const key = app.newKey({ mode: "live" });
  const posted = app.verify(key, "someone@example.com", "?timeout=1");
  await app.advance(1_000);
  const { id } = await posted;
  expect(await app.request("GET", `${PATH}/${id}/evidence`, { key })).toMatchObject({
    status: 200,
    body: { address: { submitted: "someone@example.com" }, attempts: [], conclusion: null },
  });
});
