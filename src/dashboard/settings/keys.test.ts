import { describe, expect, test } from "bun:test";
import { createApps } from "../../testing/app.ts";
import { signIn } from "../../testing/dashboard.ts";

const start = createApps();
const PATH = "/settings/keys";
const KEY = /pw_(?:live|test)_[0-9A-Za-z]{49}/;
const NEW = { name: "shop", mode: "test", scopes: ["verifications:read", "verifications:write"], expires: "" };

const begin = async () => {
  const app = start();
  const visitor = await signIn(app);
  const sent = await visitor.post(PATH, NEW);
  const created = await visitor.get(sent.location ?? "");
  const key = KEY.exec(created.html)?.[0] ?? "";
  const [id = ""] = app.service.accounts.store.listKeys(visitor.accountId).map((one) => one.id);
  return { app, visitor, sent, created, key, id };
};

describe("a key of the dashboard", () => {
  test("is shown once, in the response and in no URL, and works at once", async () => {
    const { app, visitor, sent, created, key } = await begin();
    expect([sent.status, sent.location, created.status]).toEqual([
      303,
      expect.stringMatching(/^\/shown\/\w{32}$/),
      200,
    ]);
    expect(sent.location).not.toContain(key);
    expect(created.text).toContain("it is shown only once");
    expect(created.html).toContain("curl -s");
    expect(created.headers.get("cache-control")).toBe("no-store");
    const body = { email: "deliverable@example.com" };
    expect((await app.request("POST", "/v1/email-verifications", { key, body })).status).toBe(200);
    const list = await visitor.get(PATH);
    expect(list.html).not.toMatch(KEY);
    expect(list.text).toMatch(new RegExp(`ends in ?${key.slice(-4)}`));
  });

  test("is not shown again, and not made again, when its page is loaded again", async () => {
    const { app, visitor, sent } = await begin();
    const again = await visitor.get(sent.location ?? "");
    expect([again.status, KEY.test(again.html)]).toEqual([410, false]);
    expect(again.text).toContain("This page was shown once");
    expect(app.service.accounts.store.listKeys(visitor.accountId)).toHaveLength(1);
  });

  test("is shown to its own session only, and within ten minutes", async () => {
    const app = start();
    const visitor = await signIn(app);
    const other = await signIn(app, { email: "second@example.com" });
    const { location } = await visitor.post(PATH, NEW);
    expect((await other.get(location ?? "")).status).toBe(410);
    expect((await visitor.get(location ?? "")).html).toMatch(KEY);
    const late = await visitor.post(PATH, { ...NEW, name: "late" });
    await app.advance(10 * 60_000 + 1);
    expect((await visitor.get(late.location ?? "")).status).toBe(410);
  });

  test("is written into the audit log with its user, without the secret", async () => {
    const { visitor, key } = await begin();
    const log = await visitor.get("/settings/audit");
    expect(log.text).toContain("main@example.com keys.create");
    expect(log.html).not.toContain(key);
  });

  test("is rotated with a grace, and revoked when that is confirmed", async () => {
    const { app, visitor, key, id } = await begin();
    const rotated = await visitor.submit(`${PATH}/${id}/rotate`, { grace: "3600000" });
    const next = KEY.exec(rotated.html)?.[0] ?? "";
    const statuses = async () =>
      Promise.all([key, next].map(async (one) => (await app.request("GET", "/v1/account", { key: one })).status));
    expect(await statuses()).toEqual([200, 200]);
    expect((await visitor.get(`${PATH}/${id}`)).text).toContain("Old secret works until");
    await app.advance(3_600_000);
    expect(await statuses()).toEqual([401, 200]);
    const unsure = await visitor.post(`${PATH}/${id}/revoke`, {});
    expect([unsure.status, unsure.text]).toEqual([400, expect.stringContaining("Tick the box")]);
    expect((await visitor.submit(`${PATH}/${id}/revoke`, { sure: "on" })).text).toContain('"shop" is revoked');
    expect(await statuses()).toEqual([401, 401]);
    expect((await visitor.get(`${PATH}/${id}`)).text).not.toContain("Rotate key");
    expect((await visitor.post(`${PATH}/${id}/rotate`, { grace: "0" })).text).toContain("The key is revoked");
  });

  test.each([
    ["a name that is none", { ...NEW, name: "" }, "The name of a key must have"],
    ["a scope that is none", { ...NEW, scopes: ["all"] }, "A scope must be one of"],
    ["a last day in the past", { ...NEW, expires: "2020-01-01" }, "The time must be in the future"],
    ["a mode that is none", { ...NEW, mode: "x" }, "One field needs your attention"],
  ])("with %s is refused beside its field, and what was typed stays", async (_, form, message) => {
    const app = start();
    const visitor = await signIn(app);
    const refused = await visitor.post(PATH, form);
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining(message)]);
    expect(app.service.accounts.store.listKeys(visitor.accountId)).toEqual([]);
  });

  test("of another account does not exist, and members see none", async () => {
    const { app, id } = await begin();
    const other = await signIn(app, { account: "other" });
    expect((await other.get(`${PATH}/${id}`)).status).toBe(404);
    expect((await other.post(`${PATH}/${id}/rotate`, { grace: "0" })).status).toBe(404);
    expect((await other.post(`${PATH}/${id}/revoke`, { sure: "on" })).status).toBe(404);
    const member = await signIn(app, { email: "member@example.com", role: "member", isOperator: false });
    for (const path of [PATH, `${PATH}/${id}`, "/settings/audit"]) expect((await member.get(path)).status).toBe(403);
    expect((await member.post(PATH, NEW)).status).toBe(403);
  });

  test("has a name from elsewhere that is shown as text", async () => {
    const app = start();
    const visitor = await signIn(app);
    await visitor.post(PATH, { ...NEW, name: "<script>alert(1)</script>" });
    const { html } = await visitor.get(PATH);
    expect(html).not.toContain("<script>alert");
    expect(html).toContain("&lt;script");
  });
});
