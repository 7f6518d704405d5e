import { describe, expect, test } from "bun:test";
import type { IssuedKey } from "../../accounts/keys.ts";
import { createApps, type TestApp } from "../../testing/app.ts";
import { postList, untilJobEnded } from "../../testing/bulk-requests.ts";
import { watchOthers } from "../../testing/other-account.ts";
import type { Zone } from "../../testing/dns-zone.ts";
import { createStubs } from "../../testing/smtp-dial.ts";
import { ListPromises } from "./list-promises.ts";

const DAY_MS = 86_400_000;
const start = createApps();
const startStub = createStubs();
const ZONE: Zone = {
  "shop.example.com": { MX: [[10, "mx.example.com"]] },
  "mx.example.com": { A: ["127.0.0.1"] },
};
const ANNA = "anna@shop.example.com";

const startApp = (): TestApp => {
  const rcpt = (to: string) => (to.startsWith("anna@") ? "250 2.1.5 Ok" : "550 5.1.1 User unknown");
  return start({ zone: ZONE, stub: startStub({ rcpt }), settings: { GREYLIST_RETRIES_S: "60" } });
};

const bounce = async (app: TestApp, key: IssuedKey, email: string, atMs = app.clock.nowMs()) => {
  const time = new Date(atMs).toISOString().replace(/\.\d+Z$/, "+00:00");
  const body = `${time} mx postfix/smtp[1]: 4XyZ${atMs}: to=<${email}>, relay=mx.example.com[192.0.2.1]:25, delay=1, delays=0/0/0/1, dsn=5.1.1, status=bounced (host mx.example.com[192.0.2.1] said: 550 5.1.1 No such user)`;
  await app.request("POST", "/v1/bounces", { key, body, headers: { "content-type": "text/plain" } });
};

/** Verifies a list to its end. */
const verifyList = async (app: TestApp, key: IssuedKey, emails: readonly string[]) => {
  const { body } = await postList(app, { key, body: { emails } });
  await untilJobEnded(app, key, String(body.id));
};

const search = (app: TestApp) => new ListPromises(app.service.runtime).run(() => false);
const promisesOf = (app: TestApp) =>
  app.db.sqlite
    .query("SELECT email, promised, provider, sought_at_ms IS NOT NULL AS isSought FROM bounces ORDER BY id")
    .all();

describe("what lists had said", () => {
  test("is found at night, with the provider, and counts in the summary", async () => {
    const app = startApp();
    const key = app.newKey({ mode: "live" });
    await verifyList(app, key, [ANNA, "bert@shop.example.com"]);
    await app.advance(DAY_MS);
    for (const email of [ANNA, "bert@shop.example.com", "carl@shop.example.com"]) await bounce(app, key, email);
    const before = { promised: null, provider: null, isSought: 0 };
    expect(promisesOf(app)).toMatchObject([before, before, before]);
    await watchOthers(app.db.sqlite, { accountId: app.accountId(), mode: "live" }, () => search(app));
    expect(promisesOf(app)).toEqual([
      { email: ANNA, promised: "deliverable", provider: "example.com", isSought: 1 },
      { email: "bert@shop.example.com", promised: "undeliverable", provider: "example.com", isSought: 1 },
      { email: "carl@shop.example.com", promised: null, provider: null, isSought: 1 },
    ]);
    const { body } = await app.request("GET", "/v1/bounces/summary", { key });
    expect(body.providers).toMatchObject([
      { provider: "example.com", hard: { deliverable: 1, undeliverable: 1 }, deliverable_checks: 1, error_rate: 1 },
      { provider: null, hard: { not_verified: 1 } },
    ]);
  });

  test("counts only if it was said before the bounce, and after what a single check had said", async () => {
    const app = startApp();
    const key = app.newKey({ mode: "live" });
    const startMs = app.clock.nowMs();
    await verifyList(app, key, [ANNA]);
    await bounce(app, key, ANNA, startMs - DAY_MS);
    await search(app);
    expect(promisesOf(app)).toMatchObject([{ promised: null, isSought: 1 }]);
    // A single check after the list is the last word.
    await app.advance(DAY_MS);
    await verifyList(app, key, ["dora@shop.example.com"]);
    await app.advance(DAY_MS);
    await app.verify(key, "dora@shop.example.com");
    const saidMs = app.db.sqlite
      .query<{ atMs: number }, []>("SELECT max(completed_at_ms) AS atMs FROM verifications")
      .get();
    await app.advance(DAY_MS);
    await bounce(app, key, "dora@shop.example.com");
    await search(app);
    const rows = app.db.sqlite.query("SELECT promised_at_ms AS atMs FROM bounces ORDER BY id DESC LIMIT 1").get();
    expect(rows).toEqual(saidMs);
  });

  test("by another account, or with test keys, says nothing", async () => {
    const app = startApp();
    const key = app.newKey({ mode: "live" });
    app.newAccount("other", "growth");
    await verifyList(app, app.newKey({ mode: "live", account: "other" }), [ANNA]);
    await verifyList(app, app.newKey(), [ANNA]);
    await app.advance(DAY_MS);
    await bounce(app, key, ANNA);
    await search(app);
    expect(promisesOf(app)).toMatchObject([{ promised: null, isSought: 1 }]);
  });

  test("of bounces that are reported meanwhile is searched for the next time", async () => {
    const app = startApp();
    const key = app.newKey({ mode: "live" });
    await verifyList(app, key, [ANNA]);
    await app.advance(DAY_MS);
    await bounce(app, key, ANNA);
    const late = app.clock.nowMs() + 1;
    const insert = () =>
      app.db.sqlite.run(
        `INSERT OR IGNORE INTO bounces (id, account_id, event_key, source, email, kind, bounced_at_ms, created_at_ms)
          VALUES ('late', ?, 'late', 'ses', 'bert@shop.example.com', 'hard', ?, ?)`,
        [app.accountId(), late, late],
      );
    await new ListPromises(app.service.runtime).run(() => {
      insert();
      return false;
    });
    const sought = app.db.sqlite.query("SELECT email FROM bounces WHERE sought_at_ms IS NOT NULL").all();
    expect(sought).toEqual([{ email: ANNA }]);
  });

  test("is searched for again when the service stops in between", async () => {
    const app = startApp();
    const key = app.newKey({ mode: "live" });
    await verifyList(app, key, [ANNA]);
    await app.advance(DAY_MS);
    await bounce(app, key, ANNA);
    await new ListPromises(app.service.runtime).run(() => true);
    expect(promisesOf(app)).toMatchObject([{ isSought: 0 }]);
    await search(app);
    expect(promisesOf(app)).toMatchObject([{ promised: "deliverable", isSought: 1 }]);
  });
});
