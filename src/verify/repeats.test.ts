import { describe, expect, test } from "bun:test";
import type { IssuedKey } from "../accounts/keys.ts";
import { createApps, ENDLESS, type TestApp } from "../testing/app.ts";

const PATH = "/v1/email-verifications";
const DAY_MS = 24 * 60 * 60 * 1000;
const start = createApps();

const idempotent = (app: TestApp, key: IssuedKey, idempotencyKey: string, body: unknown) =>
  app.request("POST", PATH, { key, body, headers: { "idempotency-key": idempotencyKey } });

/** Orders a check that is still pending when the answer comes. */
const orderPending = async (app: TestApp, key: IssuedKey, email: string, headers: Record<string, string> = {}) => {
  const posted = app.verify(key, email, "?timeout=1", headers);
  await app.advance(1_000);
  return posted;
};

describe("an Idempotency-Key", () => {
  test("answers the same verification to the same body, instead of starting another", async () => {
    const app = start();
    const key = app.newKey();
    const body = { email: "someone@any.example", source: "form" };
    const first = await idempotent(app, key, "order-1", body);
    await app.advance(DAY_MS - 1);
    const repeat = await idempotent(app, key, "order-1", { source: "form", email: "  someone@any.example " });
    expect(repeat).toMatchObject({ status: 200, body: first.body });
    expect(app.countVerifications()).toBe(1);
  });

  test("is kept for 24 hours and can then be used again", async () => {
    const app = start();
    const key = app.newKey();
    const first = await idempotent(app, key, "order-1", { email: "a@any.example" });
    await app.advance(DAY_MS);
    const later = await idempotent(app, key, "order-1", { email: "b@any.example" });
    expect(later.status).toBe(200);
    expect(later.id).not.toBe(first.id);
    expect((await idempotent(app, key, "order-1", { email: "b@any.example" })).id).toBe(later.id);
  });

  test("with another body is 422, whatever differs, and starts nothing", async () => {
    const app = start();
    const key = app.newKey();
    await idempotent(app, key, "order-1", { email: "a@any.example", source: "x" });
    for (const body of [{ email: "b@any.example", source: "x" }, { email: "a@any.example" }]) {
      expect(await idempotent(app, key, "order-1", body)).toMatchObject({
        status: 422,
        body: { error: "idempotency_key_reused" },
      });
    }
    expect(app.countVerifications()).toBe(1);
  });

  test.each(["", " ", "x".repeat(201)])("that is %p is refused, and nothing is started", async (idempotencyKey) => {
    const app = start();
    const answer = await idempotent(app, app.newKey(), idempotencyKey, { email: "a@any.example" });
    expect(answer).toMatchObject({ status: 400, body: { error: "Invalid idempotency key" } });
    expect(app.countVerifications()).toBe(0);
  });

  test("of 200 characters is accepted", async () => {
    const app = start();
    const key = app.newKey();
    const first = await idempotent(app, key, "x".repeat(200), { email: "a@any.example" });
    expect((await idempotent(app, key, "x".repeat(200), { email: "a@any.example" })).id).toBe(first.id);
  });

  test("belongs to one key: another key of the account or the other mode is not held to it", async () => {
    const app = start();
    const keys = [app.newKey(), app.newKey(), app.newKey({ mode: "live" })];
    const ids = [];
    for (const key of keys) ids.push((await idempotent(app, key, "order-1", { email: "no address" })).id);
    expect(new Set(ids).size).toBe(3);
  });

  test("survives the rotation of its key", async () => {
    const app = start();
    const key = app.newKey();
    const first = await idempotent(app, key, "order-1", { email: "a@any.example" });
    const rotated = app.service.accounts.keys.rotate(key.id);
    if (!rotated.ok) throw new Error(rotated.error);
    expect((await idempotent(app, rotated.value, "order-1", { email: "a@any.example" })).id).toBe(first.id);
  });

  test("of a pending check waits up to its own timeout, and answers the state there is then", async () => {
    const app = start();
    const key = app.newKey();
    const headers = { "idempotency-key": "order-1" };
    const first = await orderPending(app, key, "pending@any.example", headers);
    const early = await orderPending(app, key, "pending@any.example", headers);
    expect([first.status, early.status, early.id]).toEqual([202, 202, first.id]);
    expect(early.headers.get("location")).toBe(`${PATH}/${first.id}`);
    const late = app.verify(key, "pending@any.example", "?timeout=10", headers);
    await app.advance(6_000);
    expect(await late).toMatchObject({ status: 200, id: first.id });
    expect(await app.verify(key, "pending@any.example", "", headers)).toMatchObject({ status: 200, id: first.id });
  });

  test("holds for a check that was joined", async () => {
    const app = start();
    const key = app.newKey();
    const first = await orderPending(app, key, "pending@any.example");
    await orderPending(app, key, "pending@any.example", { "idempotency-key": "joiner" });
    await app.advance(8_000);
    const repeat = await app.verify(key, "pending@any.example", "", { "idempotency-key": "joiner" });
    expect(repeat).toMatchObject({ status: 200, id: first.id });
  });

  test("costs one credit however often it is sent, and none when the first time was refused", async () => {
    const app = start(ENDLESS);
    const key = app.newKey({ mode: "live" });
    app.leaveCredits(0);
    expect((await idempotent(app, key, "k", { email: "no address" })).status).toBe(402);
    app.service.accounts.accounts.grantCredits("main", 5, "test");
    for (let n = 0; n < 3; n++) expect((await idempotent(app, key, "k", { email: "no address" })).status).toBe(200);
    expect(app.credits()).toEqual({ available: 4, held: 0 });
  });

  test("sent twice at the same moment starts one check", async () => {
    const app = start();
    const key = app.newKey();
    const both = await Promise.all([1, 2].map(() => idempotent(app, key, "k", { email: "a@any.example" })));
    expect(both[0]?.id).toBe(both[1]?.id ?? "");
    expect(app.countVerifications()).toBe(1);
  });

  test("is purged by the hourly job after 24 hours, not before", async () => {
    const app = start();
    await idempotent(app, app.newKey(), "k", { email: "a@any.example" });
    const forget = async () => {
      const forgotten = app.service.verification.idempotency.purge();
      await app.advance(0);
      return forgotten;
    };
    await app.advance(DAY_MS - 1);
    expect(await forget()).toBe(0);
    await app.advance(2);
    expect(await forget()).toBe(1);
  });
});

describe("a POST for an address whose check is pending", () => {
  test("joins it: the same id, no second credit, however the address is written", async () => {
    const app = start(ENDLESS);
    const key = app.newKey({ mode: "live" });
    const first = await orderPending(app, key, "Some.One@Example.COM");
    for (const email of ["some.one@example.com", ' "some.one"@EXAMPLE.com ']) {
      expect(await orderPending(app, key, email)).toMatchObject({ status: 202, id: first.id });
    }
    expect(app.credits()).toEqual({ available: 99, held: 1 });
    expect(app.countVerifications()).toBe(1);
  });

  test("joins from another key of the account, which may then read it, though it does not list it", async () => {
    const app = start(ENDLESS);
    const [one, two] = [app.newKey({ mode: "live" }), app.newKey({ mode: "live" })];
    const first = await orderPending(app, one, "someone@example.com");
    expect((await orderPending(app, two, "someone@example.com")).id).toBe(first.id);
    const read = app.request("GET", `${PATH}/${first.id}?timeout=1`, { key: two });
    await app.advance(1_000);
    expect((await read).status).toBe(200);
    expect((await app.request("GET", PATH, { key: two })).body.verifications).toEqual([]);
  });

  test("does not join across accounts or modes, nor another tag or dot", async () => {
    const app = start(ENDLESS);
    const live = app.newKey({ mode: "live" });
    const others = [
      [app.newKey({ mode: "live", account: "other" }), "pending@example.com"],
      [app.newKey(), "pending@example.com"],
      [live, "pending+tag@example.com"],
      [live, "pend.ing@example.com"],
    ] as const;
    const ids = [(await orderPending(app, live, "pending@example.com")).id];
    for (const [key, email] of others) ids.push((await orderPending(app, key, email)).id);
    expect(new Set(ids).size).toBe(5);
    expect(app.credits("other")).toEqual({ available: 99, held: 1 });
  });

  test("that is finished by now starts a new check and costs a new credit", async () => {
    const app = start();
    const key = app.newKey({ mode: "live" });
    const ids = new Set<string>();
    for (let n = 0; n < 3; n++) ids.add((await app.verify(key, "no address")).id);
    expect(ids.size).toBe(3);
    expect(app.credits()).toEqual({ available: 97, held: 0 });
  });

  test("many at the same moment are one check and one credit", async () => {
    const app = start(ENDLESS);
    const key = app.newKey({ mode: "live" });
    const posted = Array.from({ length: 40 }, () => app.verify(key, "someone@example.com", "?timeout=1"));
    await app.advance(1_000);
    const ids = new Set((await Promise.all(posted)).map(({ id }) => id));
    expect(ids.size).toBe(1);
    expect(app.credits()).toEqual({ available: 99, held: 1 });
  });
});
