import { describe, expect, test } from "bun:test";
import { createApps } from "../../testing/app.ts";

const start = createApps();
const MAIL = { NOTIFY_SMTP_URL: "smtp://127.0.0.1:1", NOTIFY_FROM: "alerts@postwarden.example" };
const HOOK = "https://hooks.example.com/all";
const PATH = "/v1/notifications";

describe("the defaults of an account", () => {
  test("are empty at first, changed in part, and removed", async () => {
    const app = start({ settings: MAIL });
    const key = app.newKey({ mode: "live" });
    const nothing = {
      ...{ mode: "live", webhook_url: null, webhook_configured: false, recipients: [], updated_at: null, stopped: [] },
      ...{ blacklist_severity_min: null, blacklist_digest: "off" },
    };
    expect(await app.request("GET", PATH, { key })).toMatchObject({ status: 200, body: nothing });
    const set = await app.request("PATCH", PATH, { key, body: { webhook_url: HOOK } });
    expect(set.body).toEqual({
      ...nothing,
      webhook_url: HOOK,
      webhook_configured: true,
      updated_at: "2026-01-01T00:00:00.000Z",
    });
    const more = await app.request("PATCH", PATH, { key, body: { recipients: ["a@Example.com", "a@example.com"] } });
    expect(more.body).toMatchObject({ webhook_url: HOOK, recipients: ["a@example.com"] });
    const removed = await app.request("PATCH", PATH, { key, body: { webhook_url: null } });
    expect(removed.body).toMatchObject({ webhook_url: null, webhook_configured: false, recipients: ["a@example.com"] });
    expect((await app.request("GET", PATH, { key })).body).toEqual(removed.body);
  });

  test("of live and test keys and of other accounts are separate", async () => {
    const app = start({ settings: MAIL });
    const [live, test_, other] = [
      app.newKey({ mode: "live" }),
      app.newKey({ mode: "test" }),
      app.newKey({ mode: "live", account: "other" }),
    ];
    await app.request("PATCH", PATH, { key: live, body: { webhook_url: HOOK } });
    for (const key of [test_, other]) {
      expect((await app.request("GET", PATH, { key })).body).toMatchObject({ webhook_url: null });
    }
  });

  test("show that the receiver disabled the URL, until it is set again", async () => {
    const app = start();
    const key = app.newKey({ mode: "live" });
    await app.request("PATCH", PATH, { key, body: { webhook_url: HOOK } });
    app.db.sqlite.run("INSERT INTO webhook_gone (account_id, mode, url, at_ms) VALUES (?, 'live', ?, 0)", [
      app.accountId("main"),
      HOOK,
    ]);
    expect((await app.request("GET", PATH, { key })).body).toMatchObject({ webhook_configured: false });
    const again = await app.request("PATCH", PATH, { key, body: { webhook_url: HOOK } });
    expect(again.body).toMatchObject({ webhook_configured: true });
  });

  test.each([
    ["a URL that is not https", { webhook_url: "http://example.com/" }, "webhook_url"],
    ["an address that is none", { recipients: ["x"] }, "recipients.0"],
    ["recipients where no mail is sent", { recipients: ["a@example.com"] }, "recipients"],
    ["an unknown field", { webhook: HOOK }, "webhook"],
  ])("refuse %s", async (_, body, path) => {
    const app = start();
    const answer = await app.request("PATCH", PATH, { key: app.newKey(), body });
    expect(answer).toMatchObject({ status: 400, body: { error: "Invalid request body", issues: [{ path }] } });
  });

  test("have up to ten recipients", async () => {
    const app = start({ settings: MAIL });
    const key = app.newKey();
    const recipients = Array.from({ length: 11 }, (_, n) => `user${n}@example.com`);
    const refused = await app.request("PATCH", PATH, { key, body: { recipients } });
    expect(refused).toMatchObject({ status: 400, body: { issues: [{ path: "recipients" }] } });
    const ten = await app.request("PATCH", PATH, { key, body: { recipients: recipients.slice(1) } });
    expect(ten).toMatchObject({ status: 200, body: { recipients: recipients.slice(1) } });
  });

  test("refuse recipients at other domains than the operator allows", async () => {
    const app = start({ settings: { ...MAIL, NOTIFY_DOMAINS: "example.net" } });
    const body = { recipients: ["a@example.com"] };
    const answer = await app.request("PATCH", PATH, { key: app.newKey(), body });
    expect(answer).toMatchObject({ status: 400, body: { issues: [{ path: "recipients" }] } });
  });

  test("need the scope for webhooks", async () => {
    const app = start();
    const reader = app.newKey({ scopes: ["webhooks:read"] });
    expect((await app.request("GET", PATH, { key: reader })).status).toBe(200);
    expect((await app.request("PATCH", PATH, { key: reader, body: {} })).status).toBe(403);
    expect((await app.request("GET", PATH, { key: app.newKey({ scopes: ["blacklist:write"] }) })).status).toBe(403);
  });
});

describe("mail to a recipient", () => {
  const STOP = { recipient: "A@example.com", kind: "dmarc_digest", enabled: false };

  test("is stopped and resumed by kind, and the settings say so", async () => {
    const app = start({ settings: MAIL });
    const key = app.newKey({ mode: "live" });
    const stopped = await app.request("PATCH", `${PATH}/mail`, { key, body: STOP });
    const entry = { recipient: "a@example.com", kind: "dmarc_digest", at: "2026-01-01T00:00:00.000Z" };
    expect(stopped).toMatchObject({ status: 200, body: { stopped: [entry] } });
    await app.advance(1_000);
    expect((await app.request("PATCH", `${PATH}/mail`, { key, body: STOP })).body.stopped).toEqual([entry]);
    await app.request("PATCH", PATH, { key, body: { recipients: ["a@example.com"] } });
    expect((await app.request("GET", PATH, { key })).body.stopped).toEqual([entry]);
    const other = app.newKey({ mode: "live", account: "other" });
    expect((await app.request("GET", PATH, { key: other })).body.stopped).toEqual([]);
    expect((await app.request("GET", PATH, { key: app.newKey({ mode: "test" }) })).body.stopped).toEqual([]);
    const again = await app.request("PATCH", `${PATH}/mail`, { key, body: { ...STOP, enabled: true } });
    expect(again.body.stopped).toEqual([]);
  });

  test.each([
    ["a test key", { mode: "test" } as const, STOP, "recipient"],
    ["an unknown kind", {}, { ...STOP, kind: "all" }, "kind"],
    ["no address", {}, { ...STOP, recipient: "a" }, "recipient"],
  ])("is not stopped for %s", async (_, of, body, path) => {
    const app = start({ settings: MAIL });
    const answer = await app.request("PATCH", `${PATH}/mail`, { key: app.newKey(of), body });
    expect(answer).toMatchObject({ status: 400, body: { issues: [{ path }] } });
  });

  test("is stopped with the scope for webhooks only", async () => {
    const app = start();
    const key = app.newKey({ scopes: ["webhooks:read"] });
    expect((await app.request("PATCH", `${PATH}/mail`, { key, body: STOP })).status).toBe(403);
  });
});

describe("digests of listings", () => {
  test("are due on time, and never when they are off", async () => {
    const app = start({ settings: MAIL });
    const key = app.newKey({ mode: "live" });
    const due = () =>
      app.db.sqlite
        .query<{ at: number | null }, []>("SELECT blacklist_digest_due_at_ms at FROM account_notifications")
        .get()?.at;
    await app.request("PATCH", PATH, { key, body: { blacklist_digest: "weekly", blacklist_severity_min: "high" } });
    expect(due()).toBe(Date.parse("2026-01-05T06:00:00Z"));
    await app.request("PATCH", PATH, { key, body: { recipients: ["a@example.com"] } });
    expect(due()).toBe(Date.parse("2026-01-05T06:00:00Z"));
    await app.advance(5 * 24 * 60 * 60_000);
    await app.service.blocklist.alerts?.send();
    expect(due()).toBe(Date.parse("2026-01-12T06:00:00Z"));
    const waiting = app.db.sqlite.query("SELECT recipient FROM blocklist_alerts").all();
    expect(waiting).toEqual([{ recipient: "a@example.com" }]);
    const off = await app.request("PATCH", PATH, { key, body: { blacklist_digest: "off" } });
    expect(off.body).toMatchObject({ blacklist_digest: "off", blacklist_severity_min: "high" });
    expect(due()).toBeNull();
    expect((await app.request("PATCH", PATH, { key, body: { blacklist_digest: "hourly" } })).status).toBe(400);
  });
});
