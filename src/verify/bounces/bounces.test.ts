import { describe, expect, test } from "bun:test";
import type { IssuedKey } from "../../accounts/keys.ts";
import { OPERATOR } from "../../foundation/base/on-behalf-of.ts";
import { createApps, type TestApp } from "../../testing/app.ts";
import { watchOthers } from "../../testing/other-account.ts";
import type { Zone } from "../../testing/dns-zone.ts";
import { createStubs } from "../../testing/smtp-dial.ts";
import type { SmtpStubScript } from "../../testing/smtp-stub.ts";
import { BounceStore } from "./bounce-store.ts";
import { BounceAwareAttempts } from "./known-bounces.ts";

const PATH = "/v1/bounces";
const start = createApps();
const startStub = createStubs();

const ZONE: Zone = {
  "shop.example.com": { MX: [[10, "mx.example.com"]] },
  "mx.example.com": { A: ["127.0.0.1"] },
};

const startWith = (script: SmtpStubScript): TestApp =>
  start({ zone: ZONE, stub: startStub(script), settings: { GREYLIST_RETRIES_S: "60" } });

const CATCH_ALL: SmtpStubScript = {};
const KNOWS_ANNA: SmtpStubScript = {
  rcpt: (address) => (address.startsWith("anna@") ? "250 2.1.5 Ok" : "550 5.1.1 User unknown"),
};

/** A line of the log of Postfix. */
const line = (status: string, email = "anna@shop.example.com", queueId = "4XyZ12"): string =>
  `2026-01-01T00:00:00+00:00 mx postfix/smtp[123]: ${queueId}: to=<${email}>, relay=mx.example.com[192.0.2.1]:25, delay=1, delays=0/0/0/1, dsn=${status}, status=bounced (host mx.example.com[192.0.2.1] said: 550 ${status} No such user)`;

const report = (app: TestApp, key: IssuedKey, body: string, headers: Record<string, string> = {}) =>
  app.request("POST", PATH, { key, body, headers: { "content-type": "text/plain", ...headers } });

const resultOf = async (app: TestApp, key: IssuedKey, email = "anna@shop.example.com") =>
  (await app.verify(key, email)).body.result;

describe("a reported bounce", () => {
  test("is stored once, and each event has its outcome", async () => {
    const app = startWith(CATCH_ALL);
    const key = app.newKey({ mode: "live" });
    const body = [
      line("5.1.1"),
      "2026-01-01T00:00:00+00:00 mx sshd[1]: hello",
      line("4.2.2", "bert@shop.example.com", "4XyZ13"),
    ];
    const first = await report(app, key, body.join("\n"));
    expect(first.status).toBe(200);
    expect(first.body.counts).toEqual({ stored: 2, known: 0, ignored: 1, unreadable: 0 });
    expect(first.body.events).toMatchObject([
      { position: 1, outcome: "stored", kind: "hard", reason: null },
      { position: 2, outcome: "ignored", kind: null },
      { position: 3, outcome: "stored", kind: "soft" },
    ]);
    expect((await report(app, key, body.join("\n"))).body.counts).toMatchObject({ stored: 0, known: 2 });
    const listed = await app.request("GET", `${PATH}?kind=hard`, { key });
    expect(listed.body.bounces).toMatchObject([
      { email: "anna@shop.example.com", kind: "hard", status: "5.1.1", source: "postfix", promised: null },
    ]);
  });

  test("is found again in pages, with a filter that not all pass", async () => {
    const app = startWith(CATCH_ALL);
    const key = app.newKey({ mode: "live" });
    const names = ["anna", "bert", "carl", "dora"];
    const status = (name: string) => (name === "bert" ? "4.2.2" : "5.1.1");
    await report(app, key, names.map((name) => line(status(name), `${name}@shop.example.com`)).join("\n"));
    const found: string[] = [];
    for (let cursor = ""; ;) {
      const { body } = await app.request("GET", `${PATH}?kind=hard&limit=1${cursor}`, { key });
      found.push(...(body.bounces as Array<{ email: string }>).map(({ email }) => email.slice(0, 4)));
      if (body.next_cursor === null) break;
      cursor = `&cursor=${body.next_cursor}`;
    }
    expect(found).toEqual(["dora", "carl", "anna"]);
  });

  test("of Amazon SES is read as Amazon SNS sends it: JSON that says it is text", async () => {
    const app = startWith(CATCH_ALL);
    const key = app.newKey({ mode: "live" });
    const headers = { "content-type": "text/plain; charset=UTF-8" };
    const topic = { TopicArn: "arn:aws:sns:eu-west-1:1:bounces" };
    const SubscribeURL = "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=t";
    const confirmation = { ...topic, Type: "SubscriptionConfirmation", Message: "Confirm.", SubscribeURL };
    const subscribed = await report(app, key, JSON.stringify(confirmation), headers);
    expect(subscribed.body.confirmation).toEqual({ topic: topic.TopicArn, url: SubscribeURL });
    // Nobody but Amazon sees the response.
    const filters = { accountId: app.accountId(), actionBegin: "bounces." };
    const recorded = () => app.service.accounts.audit.list(filters, { before: null, limit: 10 });
    expect(recorded()).toMatchObject([{ action: "bounces.subscription", subject: SubscribeURL }]);
    const long = JSON.stringify({ ...confirmation, SubscribeURL: `${SubscribeURL}${"x".repeat(2_048)}` });
    expect((await report(app, key, long, headers)).body.counts).toMatchObject({ unreadable: 1 });
    const testKey = app.newKey({ mode: "test" });
    expect((await report(app, testKey, JSON.stringify(confirmation), headers)).status).toBe(200);
    expect(recorded()).toHaveLength(1);
    const recipient = {
      emailAddress: "anna@shop.example.com",
      status: "5.1.1",
      diagnosticCode: "smtp; 550 5.1.1 No user",
    };
    const bounce = {
      ...{ bounceType: "Permanent", bounceSubType: "General", bouncedRecipients: [recipient] },
      ...{ timestamp: "2026-01-01T00:00:00.000Z", feedbackId: "f" },
    };
    const Message = JSON.stringify({ notificationType: "Bounce", bounce });
    const sent = await report(app, key, JSON.stringify({ ...topic, Type: "Notification", Message }), headers);
    expect(sent.body.events).toMatchObject([{ outcome: "stored", kind: "hard" }]);
    // Raw message delivery.
    expect((await report(app, key, `\n${Message}`, headers)).body.counts).toMatchObject({ known: 1 });
    expect((await report(app, key, "{not JSON", headers)).status).toBe(400);
  });

  test("of an unknown format is a 400, and so is text that is no JSON", async () => {
    const app = startWith(CATCH_ALL);
    const key = app.newKey({ mode: "live" });
    for (const body of [{ hello: "world" }, [1, 2]])
      expect(await app.request("POST", PATH, { key, body })).toMatchObject({ status: 400 });
    expect((await app.request("POST", PATH, { key, body: "{" })).body.error).toBe("Request body must be valid JSON");
  });

  test("needs a key, which may be the password of HTTP Basic on this route only", async () => {
    const app = startWith(CATCH_ALL);
    const { key } = app.newKey({ mode: "live" });
    const send = async (method: string, path: string, password: string, more: Record<string, string> = {}) => {
      const authorization = `Basic ${Buffer.from(`bounces:${password}`).toString("base64")}`;
      const headers = { authorization, "content-type": "text/plain", ...more };
      const body = method === "POST" ? line("5.1.1") : null;
      const answer = await app.handle(new Request(`http://localhost${path}`, { method, headers, body }));
      return [answer.status, answer.headers.get("www-authenticate")];
    };
    expect(await send("POST", PATH, key)).toEqual([200, null]);
    expect(await send("POST", PATH, `${key}x`)).toEqual([401, 'Bearer realm="postwarden"']);
    // Amazon SNS sends a password only after this.
    const ofSns = { "x-amz-sns-message-type": "Notification" };
    expect(await send("POST", PATH, `${key}x`, ofSns)).toEqual([401, 'Basic realm="postwarden"']);
    expect(await send("GET", PATH, key, ofSns)).toEqual([401, 'Bearer realm="postwarden"']);
  });

  test("with a test key is answered the same, and not stored", async () => {
    const app = startWith(CATCH_ALL);
    const key = app.newKey({ mode: "test" });
    expect((await report(app, key, line("5.1.1"))).body.counts).toMatchObject({ stored: 1 });
    expect((await app.request("GET", PATH, { key })).body.bounces).toEqual([]);
    const live = app.newKey({ mode: "live" });
    await report(app, live, line("5.1.1"));
    expect((await app.request("GET", `${PATH}/summary`, { key })).body.providers).toEqual([]);
    expect((await app.request("GET", `${PATH}/summary`, { key: live })).body.providers).toHaveLength(1);
    app.db.sqlite.run("DELETE FROM bounces");
    await report(app, key, line("5.1.1"));
    expect(app.db.sqlite.query("SELECT id FROM bounces").all()).toEqual([]);
  });

  test("changes nothing of another account, which does not see it", async () => {
    const app = startWith(CATCH_ALL);
    app.newAccount("other", "growth");
    const [key, other] = [app.newKey({ mode: "live" }), app.newKey({ account: "other", mode: "live" })];
    const actor = { accountId: app.accountId(), mode: "live" as const };
    const { changed } = await watchOthers(app.db.sqlite, actor, () => report(app, key, line("5.1.1")));
    expect(changed).toContain("bounces");
    expect((await app.request("GET", PATH, { key: other })).body.bounces).toEqual([]);
    expect(await resultOf(app, other)).toMatchObject({ sub_status: "catch_all" });
  });
});

describe("the next check of the account", () => {
  test.each([
    ["5.1.1", "mailbox_not_found"],
    ["5.1.10", "mailbox_not_found"],
    ["5.1.2", "catch_all"],
    ["5.7.1", "catch_all"],
    ["4.2.2", "catch_all"],
    ["5.2.2", "catch_all"],
  ])("at a server that accepts everybody: after a bounce with %s it is %s", async (status, subStatus) => {
    const app = startWith(CATCH_ALL);
    const key = app.newKey({ mode: "live" });
    await report(app, key, line(status));
    expect(await resultOf(app, key)).toMatchObject({ sub_status: subStatus });
    expect(await resultOf(app, key, "bert@shop.example.com")).toMatchObject({ sub_status: "catch_all" });
    const listed = await app.request("GET", PATH, { key });
    expect(listed.body.bounces).toMatchObject([{ refuted_at: null }]);
  });

  test("names the bounce in its evidence", async () => {
    const app = startWith(CATCH_ALL);
    const key = app.newKey({ mode: "live" });
    await report(app, key, line("5.1.1"));
    const { id } = await app.verify(key, "anna@shop.example.com");
    const { body } = await app.request("GET", `/v1/email-verifications/${id}/evidence`, { key });
    expect(body.bounce).toMatchObject({ source: "postfix", status: "5.1.1" });
    expect(body.conclusion).toMatchObject({ because: expect.stringContaining("bounced on 20") });
  });

  test("that proves the mailbox wins over the bounce, also later at a server that accepts everybody", async () => {
    const server = { accepted: ["anna@"] };
    const app = startWith({
      rcpt: (address) =>
        server.accepted.some((start) => address.startsWith(start)) ? "250 2.1.5 Ok" : "550 5.1.1 User unknown",
    });
    const key = app.newKey({ mode: "live" });
    await report(app, key, line("5.1.1"));
    expect(await resultOf(app, key)).toMatchObject({ sub_status: "mailbox_exists" });
    const listed = await app.request("GET", PATH, { key });
    expect(listed.body.bounces).toMatchObject([{ refuted_at: expect.any(String) }]);
    server.accepted = [""];
    await app.advance(3 * 86_400_000);
    expect(await resultOf(app, key)).not.toMatchObject({ sub_status: "mailbox_not_found" });
  });

  test("keeps its result where the disk has no room to refute the bounce", async () => {
    const app = startWith(KNOWS_ANNA);
    const key = app.newKey({ mode: "live" });
    await report(app, key, line("5.1.1"));
    const full = () => Promise.reject(Object.assign(new Error("full"), { code: "SQLITE_FULL" }));
    const attempts = new BounceAwareAttempts(
      { db: { ...app.db, commit: full }, clock: app.clock },
      { attempts: app.service.engine.attempts.live, store: new BounceStore(app.db) },
    );
    const made = await attempts.make({
      ...{ submitted: "anna@shop.example.com", isCell: false, before: null, accountId: app.accountId() },
      ...{ onBehalfOf: OPERATOR, duringOutage: "conclude" },
    });
    expect(made).toMatchObject({ kind: "concluded", result: { sub_status: "mailbox_exists" } });
  });

  test("ends in a bug where the refutation does", async () => {
    const app = startWith(KNOWS_ANNA);
    await report(app, app.newKey({ mode: "live" }), line("5.1.1"));
    const bug = () => Promise.reject(new Error("a bug"));
    const attempts = new BounceAwareAttempts(
      { db: { ...app.db, commit: bug }, clock: app.clock },
      { attempts: app.service.engine.attempts.live, store: new BounceStore(app.db) },
    );
    const made = attempts.make({
      ...{ submitted: "anna@shop.example.com", isCell: false, before: null, accountId: app.accountId() },
      ...{ onBehalfOf: OPERATOR, duringOutage: "conclude" },
    });
    await expect(made).rejects.toThrow("a bug");
  });

  test.each([
    ["a server that knows it", KNOWS_ANNA, expect.any(String)],
    ["a server that accepts everybody", CATCH_ALL, null],
  ])("at %s, made after a bounce that is reported late, is no promise", async (_, script, refuted) => {
    const app = startWith(script);
    const key = app.newKey({ mode: "live" });
    await app.advance(86_400_000);
    await resultOf(app, key);
    await report(app, key, line("5.1.1"));
    const listed = await app.request("GET", PATH, { key });
    expect(listed.body.bounces).toMatchObject([{ promised: null, refuted_at: refuted }]);
  });

  test("with a test key is no promise", async () => {
    const app = startWith(CATCH_ALL);
    const key = app.newKey({ mode: "live" });
    const email = "mailbox_exists@shop.example.com";
    await app.verify(app.newKey(), email);
    await app.advance(86_400_000);
    await report(app, key, line("5.1.1", email).replace("2026-01-01", "2026-01-02"));
    const listed = await app.request("GET", PATH, { key });
    expect(listed.body.bounces).toMatchObject([{ promised: null, refuted_at: null }]);
  });

  test("of an address whose bounce is half a year old does not know it any more", async () => {
    const app = startWith(CATCH_ALL);
    const key = app.newKey({ mode: "live" });
    await report(app, key, line("5.1.1"));
    app.db.sqlite.run("UPDATE bounces SET bounced_at_ms = ?", [app.clock.nowMs() - 181 * 86_400_000]);
    expect(await resultOf(app, key)).toMatchObject({ sub_status: "catch_all" });
  });
});

describe("the summary", () => {
  test("compares bounces with the check before, by provider", async () => {
    const app = startWith(KNOWS_ANNA);
    const key = app.newKey({ mode: "live" });
    expect(await resultOf(app, key)).toMatchObject({ verdict: "deliverable" });
    await app.advance(2 * 86_400_000);
    const at = new Date(app.clock.nowMs()).toISOString().replace(".000Z", "+00:00");
    const now = (text: string) => text.replace("2026-01-01T00:00:00+00:00", at);
    await report(app, key, [now(line("5.1.1")), now(line("5.1.1", "bert@shop.example.com"))].join("\n"));
    const { body } = await app.request("GET", `${PATH}/summary`, { key });
    const kept = { deliverable_checks: 1, deliverable_bounced: 1, error_rate: 1 };
    const none = { deliverable_checks: 0, deliverable_bounced: 0, error_rate: null };
    const hard = { deliverable: 0, risky: 0, undeliverable: 0, not_verified: 0 };
    expect(body).toEqual({
      days: 30,
      checks_from: new Date(app.clock.nowMs() - 2 * 86_400_000).toISOString().slice(0, 10),
      total: kept,
      providers: [
        { provider: "example.com", hard: { ...hard, deliverable: 1 }, soft: 0, ...kept },
        { provider: null, hard: { ...hard, not_verified: 1 }, soft: 0, ...none },
      ],
    });
    const listed = await app.request("GET", `${PATH}?promised=deliverable`, { key });
    expect(listed.body.bounces).toMatchObject([{ promised_days: 2, provider: "example.com" }]);
  });

  test("counts each address once, however many bounces there are", async () => {
    const app = startWith(CATCH_ALL);
    const key = app.newKey({ mode: "live" });
    const accountId = app.accountId();
    app.newAccount("other", "growth");
    const otherId = app.accountId("other");
    const nowMs = app.clock.nowMs();
    const insert = app.db.sqlite.prepare(
      `INSERT INTO bounces (id, account_id, event_key, source, email, kind, promised, promised_at_ms, provider, bounced_at_ms, created_at_ms)
        VALUES (?1, ?2, ?1, 'ses', ?3, 'hard', 'deliverable', ?4, 'example.com', ?4, ?4)`,
    );
    app.db.sqlite.transaction(() => {
      for (let n = 0; n < 12_000; n++) {
        insert.run(`own ${n}`, accountId, `user${n % 6_000}@shop.example.com`, nowMs);
        if (n < 5) insert.run(`other ${n}`, otherId, `user${n}@shop.example.com`, nowMs);
      }
      insert.run("old", accountId, "old@shop.example.com", nowMs - 31 * 86_400_000);
      const day = Math.floor(nowMs / 86_400_000);
      app.db.sqlite.run("INSERT INTO deliverable_checks VALUES (?, ?, 'example.com', 8000)", [accountId, day]);
    })();
    const { body } = await app.request("GET", `${PATH}/summary`, { key });
    expect(body.total).toEqual({ deliverable_checks: 8_000, deliverable_bounced: 6_000, error_rate: 0.75 });
    expect(body.providers).toMatchObject([{ provider: "example.com", hard: { deliverable: 6_000 } }]);
  });

  test("counts promises of the days that it is asked for, and of no test key", async () => {
    const app = startWith({ rcpt: (to) => (/^[abc]@/.test(to) ? "250 2.1.5 Ok" : "550 5.1.1 User unknown") });
    const key = app.newKey({ mode: "live" });
    const at = () => new Date(app.clock.nowMs()).toISOString().replace(".000Z", "+00:00");
    const bounceOf = (email: string) =>
      report(app, key, line("5.1.1", email, email.slice(0, 1).repeat(6)).replace("2026-01-01T00:00:00+00:00", at()));
    for (const name of ["a", "b"]) await app.verify(key, `${name}@shop.example.com`);
    await app.verify(app.newKey(), "mailbox_exists@shop.example.com");
    await app.advance(20 * 86_400_000);
    await app.verify(key, "c@shop.example.com");
    for (const name of ["a", "x"]) await bounceOf(`${name}@shop.example.com`);
    const totalOf = async (days: number) =>
      (await app.request("GET", `${PATH}/summary?days=${days}`, { key })).body.total;
    expect(await totalOf(30)).toEqual({ deliverable_checks: 3, deliverable_bounced: 1, error_rate: 0.333_333 });
    // The promise to the address that bounced is older.
    expect(await totalOf(10)).toEqual({ deliverable_checks: 1, deliverable_bounced: 0, error_rate: 0 });
  });
});
