import { describe, expect, test } from "bun:test";
import { newId } from "../../foundation/base/secrets.ts";
import { createApps, type TestApp } from "../../testing/app.ts";
import { signIn } from "../../testing/dashboard.ts";
import { createReceivers } from "../../testing/receiver.ts";
import { until } from "../../testing/webhook-harness.ts";

const start = createApps();
const newReceiver = createReceivers();
const ALLOWED = { settings: { WEBHOOK_ALLOW_NETWORKS: "127.0.0.0/8" } };
const HOSTILE = "<script>alert(1)</script>";

const event = (app: TestApp, url: string, { account = "main", mode = "live", data = "{}" } = {}): string => {
  const id = newId();
  app.db.sqlite.run(
    "INSERT INTO outbox (id, account_id, mode, type, data, url, created_at_ms) VALUES (?, ?, ?, 'blacklist.listed', ?, ?, ?)",
    [id, app.accountId(account), mode, data, url, app.clock.nowMs()],
  );
  return id;
};

const hasAttempt = (app: TestApp, id: string) => () =>
  app.db.sqlite.query("SELECT 1 FROM webhook_attempts WHERE delivery_id = ?").get(id) !== null;

/** An event that the receiver answered with this status. */
const sent = async (status: number, response = "no") => {
  const app = start(ALLOWED);
  const visitor = await signIn(app);
  const receiver = newReceiver();
  receiver.answer(() => new Response(status === 204 ? null : response, { status }));
  const id = event(app, receiver.url, { data: JSON.stringify({ name: HOSTILE }) });
  app.service.notifications.dispatcher.start();
  await until(hasAttempt(app, id));
  return { app, visitor, receiver, id, path: `/webhooks/deliveries?url=${encodeURIComponent(receiver.url)}` };
};

describe("the page of webhooks", () => {
  test("teaches while there is no URL, and sets the first one from there", async () => {
    const app = start(ALLOWED);
    const visitor = await signIn(app);
    const empty = await visitor.get("/webhooks");
    expect(empty.status).toBe(200);
    expect(empty.text).toContain("No URL is set yet. ");
    expect(empty.text).toContain("Events can be sent to your own systems");
    const url = "https://example.com/hook";
    const saved = await visitor.submit("/webhooks/default", { webhook_url: url });
    expect(saved.text).toContain("Every event goes there from now on. Send a test event to try it.");
    expect(saved.text).toContain("https://example.com/hook Not used yet all events 0 none in 30 days");
    const wrong = await visitor.post("/webhooks/default", { webhook_url: "ftp://example.com" });
    expect([wrong.status, wrong.html]).toEqual([400, expect.stringContaining("ftp://example.com")]);
    expect((await visitor.submit("/webhooks/default", { webhook_url: "" })).text).toContain("No URL is set yet.");
    expect((await visitor.get("/test/webhooks")).text).toContain("No URL is set yet.");
  });

  test("says that a URL fails, with the way to its deliveries", async () => {
    const { visitor, path } = await sent(500, HOSTILE);
    const { text, html } = await visitor.get("/webhooks");
    expect(text).toContain("One URL does not take its events.");
    expect(text).toContain("Failing nothing now 1");
    expect(html).toContain(`href="${path.replaceAll("&", "&amp;")}"`);
    const deliveries = await visitor.get(path);
    expect(deliveries.text).toContain("The receiver does not take our events");
    expect(deliveries.text).toContain("1 attempt failed since");
    expect(deliveries.text).toContain("1 event waits; the next is sent");
    expect(deliveries.html).not.toContain(HOSTILE);
    expect((await visitor.get("/")).text).toContain("does not take our events");
  });

  test("of another account or mode shows none of it", async () => {
    const { app, path, id } = await sent(200);
    const stranger = await signIn(app, { account: "other" });
    expect((await stranger.get("/webhooks")).text).toContain("No URL is set yet.");
    expect((await stranger.get(path)).status).toBe(404);
    expect((await stranger.get("/webhooks/deliveries")).text).toContain("No event matches");
    for (const action of ["", "/redeliver", "/cancel"]) {
      const target = `/webhooks/deliveries/${id}${action}`;
      expect((await (action === "" ? stranger.get(target) : stranger.post(target))).status).toBe(404);
    }
    expect((await stranger.get("/webhooks/deliveries.csv")).html.trim().split("\r\n").length).toBe(1);
    const visitor = await signIn(app, { email: "two@example.com" });
    expect((await visitor.get(`/test/webhooks/deliveries/${id}`)).status).toBe(404);
    expect((await visitor.get(`/webhooks/deliveries/${id}`)).status).toBe(200);
  });
});

describe("a delivery", () => {
  test("shows its attempts, the request body and the response, escaped", async () => {
    const { visitor, id } = await sent(503, `${HOSTILE} busy`);
    const { text, html, status } = await visitor.get(`/webhooks/deliveries/${id}`);
    expect(status).toBe(200);
    expect(text).toContain("1 attempt failed; we try again");
    expect(text).toContain("The receiver responded 503");
    expect(text).toContain(`${HOSTILE} busy`);
    expect(text).toContain(`"name": "${HOSTILE}"`);
    expect(html).not.toContain(HOSTILE);
  });

  test("is sent again and cancelled, by form and with the token only", async () => {
    const { app, visitor, id, receiver } = await sent(500);
    const cancelled = await visitor.submit(`/webhooks/deliveries/${id}/cancel`);
    expect(cancelled.text).toContain("Cancelled. The event will not be sent.");
    expect(cancelled.text).toContain("It was cancelled before it was delivered");
    expect((await visitor.post(`/webhooks/deliveries/${id}/cancel`)).status).toBe(303);
    const before = receiver.received.length;
    expect((await visitor.post(`/webhooks/deliveries/${id}/redeliver`, {}, "wrong")).status).toBe(403);
    const again = await visitor.submit(`/webhooks/deliveries/${id}/redeliver`);
    expect(again.text).toContain("The event will be sent again now.");
    await until(() => receiver.received.length > before && app.service.notifications.dispatcher.running === 0);
    expect((await visitor.get(`/webhooks/deliveries/${id}`)).text).toContain("2 attempts");
  });

  test("is found by the filters, in pages and as CSV", async () => {
    const app = start(ALLOWED);
    const visitor = await signIn(app);
    const receiver = newReceiver();
    for (let at = 0; at < 55; at += 1) event(app, receiver.url);
    app.service.notifications.dispatcher.start();
    const count = () => app.db.sqlite.query<{ n: number }, []>("SELECT count(*) AS n FROM webhook_attempts").get()?.n;
    await until(() => count() === 55);
    const first = await visitor.get("/webhooks/deliveries?status=delivered");
    expect(first.html.split("/webhooks/deliveries/0").length - 1).toBe(50);
    const next = /href="([^"]*cursor=[^"]*)"/.exec(first.html)?.[1]?.replaceAll("&amp;", "&") ?? "";
    expect((await visitor.get(next)).html.split("/webhooks/deliveries/0").length - 1).toBe(5);
    expect((await visitor.get("/webhooks/deliveries?status=failed")).text).toContain("No event matches");
    expect((await visitor.get("/webhooks/deliveries?type=bulk.completed")).text).toContain("No event matches");
    const csv = await visitor.get("/webhooks/deliveries.csv?status=delivered");
    expect(csv.headers.get("content-type")).toContain("text/csv");
    const [titles, ...lines] = csv.html.trim().split("\r\n");
    expect(titles).toBe(
      "id,event_id,type,subject,url,status,attempts,created_at,next_attempt_at,finished_at,last_attempt_at,last_http_status,last_problem",
    );
    expect(lines.length).toBe(55);
    expect((await visitor.get("/webhooks/deliveries?status=x&cursor=y")).status).toBe(200);
  });
});

describe("a test event", () => {
  test("says how the receiver responded, and enables a disabled URL", async () => {
    const app = start(ALLOWED);
    const visitor = await signIn(app);
    const receiver = newReceiver();
    receiver.answer(410);
    const id = event(app, receiver.url);
    app.service.notifications.dispatcher.start();
    await until(hasAttempt(app, id));
    app.db.sqlite.run(
      "INSERT INTO account_notifications (account_id, mode, webhook_url, recipients, updated_at_ms) VALUES (?, 'live', ?, '[]', 0)",
      [app.accountId(), receiver.url],
    );
    const path = `/webhooks/deliveries?url=${encodeURIComponent(receiver.url)}`;
    expect((await visitor.get(path)).text).toContain("Nothing is sent: the receiver responded that the URL is gone");
    const fields = { url: receiver.url, type: "webhook.test" };
    expect((await visitor.submit("/webhooks/test", fields)).text).toContain(
      "Not delivered: The receiver responded 410",
    );
    receiver.answer(204);
    const delivered = await visitor.submit("/webhooks/test", fields);
    expect(delivered.text).toContain("Delivered: the receiver responded 204");
    expect(delivered.text).not.toContain("Disabled");
  });

  test("goes to no address that webhooks may not reach", async () => {
    const app = start();
    const visitor = await signIn(app);
    for (const url of ["http://127.0.0.1/", "https://10.0.0.1/", "file:///etc/passwd", ""]) {
      const { status, html } = await visitor.post("/webhooks/test", { url, type: "webhook.test" });
      expect([status, html]).toEqual([400, expect.stringContaining("aria-invalid")]);
    }
    expect((await visitor.post("/webhooks/test", { url: "https://example.com/", type: "x" })).status).toBe(400);
  });
});

describe("the signing secret", () => {
  test("is shown when an owner asks, and rotated with an overlap and an entry in the audit log", async () => {
    const app = start();
    const visitor = await signIn(app);
    expect((await visitor.get("/webhooks/secret")).text).not.toContain("whsec_");
    const shown = await visitor.post("/webhooks/secret/show");
    expect(shown.headers.get("cache-control")).toBe("no-store");
    const secret = /whsec_[A-Za-z0-9+/=]+/.exec(shown.text)?.[0] ?? "none";
    const rotated = await visitor.post("/webhooks/secret/rotate");
    expect(rotated.text).toContain("Current secret");
    expect(rotated.text).toContain("Old secret");
    expect(rotated.text).toContain(secret);
    expect(new Set(rotated.text.match(/whsec_[A-Za-z0-9+/=]+/g)).size).toBe(2);
    const [entry] = app.service.accounts.audit.list({}, { before: null, limit: 1 });
    expect(entry).toMatchObject({ action: "webhooks.rotate", subject: "live", user: expect.stringMatching(/^user /) });
    expect((await visitor.post("/test/webhooks/secret/show")).text).not.toContain(secret);
    expect((await visitor.post("/webhooks/secret/show", {}, "wrong")).status).toBe(403);
  });

  test("is not for members", async () => {
    const app = start();
    const member = await signIn(app, { role: "member", isOperator: false });
    expect((await member.get("/webhooks")).text).not.toContain("Signing secret");
    expect((await member.get("/webhooks/secret")).status).toBe(403);
    for (const act of ["show", "rotate"]) expect((await member.post(`/webhooks/secret/${act}`)).status).toBe(403);
  });
});
