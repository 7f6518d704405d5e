import { describe, expect, test } from "bun:test";
import type { IssuedKey } from "../../accounts/keys.ts";
import { newId } from "../../foundation/base/secrets.ts";
import { createApps, type TestApp } from "../../testing/app.ts";
import { createReceivers } from "../../testing/receiver.ts";
import { until } from "../../testing/webhook-harness.ts";

const start = createApps();
const newReceiver = createReceivers();
const ALLOWED = { settings: { WEBHOOK_ALLOW_NETWORKS: "127.0.0.0/8" } };

const event = (app: TestApp, url: string, { account = "main", mode = "live" } = {}): string => {
  const id = newId();
  app.db.sqlite.run(
    "INSERT INTO outbox (id, account_id, mode, type, data, url, created_at_ms) VALUES (?, ?, ?, 'test.event', '{}', ?, ?)",
    [id, app.accountId(account), mode, url, app.clock.nowMs()],
  );
  return id;
};

const isDelivered = (app: TestApp, id: string) => () =>
  app.db.sqlite.query("SELECT 1 FROM webhook_deliveries WHERE id = ? AND status = 'delivered'").get(id) !== null;

describe("the deliveries", () => {
  test("are listed newest first, in pages, with the event", async () => {
    const app = start(ALLOWED);
    const key = app.newKey({ mode: "live" });
    const receiver = newReceiver();
    const ids = [1, 2, 3].map(() => event(app, receiver.url));
    app.service.notifications.dispatcher.start();
    await until(isDelivered(app, ids[2] ?? ""));
    const first = await app.request("GET", "/v1/webhooks/deliveries?limit=2", { key });
    expect(first.body.deliveries).toMatchObject([
      { id: ids[2], status: "delivered", event: { type: "test.event" } },
      { id: ids[1] },
    ]);
    const second = await app.request("GET", `/v1/webhooks/deliveries?limit=2&cursor=${first.body.next_cursor}`, {
      key,
    });
    expect(second.body).toMatchObject({ deliveries: [{ id: ids[0] }], next_cursor: null });
    const none = await app.request("GET", "/v1/webhooks/deliveries?status=pending", { key });
    expect(none.body).toEqual({ deliveries: [], next_cursor: null });
    expect((await app.request("GET", "/v1/webhooks/deliveries?page=2", { key })).status).toBe(400);
  });

  test("are shown by id; an unknown event type is refused", async () => {
    const app = start(ALLOWED);
    const key = app.newKey({ mode: "live" });
    const id = event(app, newReceiver().url);
    app.service.notifications.dispatcher.start();
    await until(isDelivered(app, id));
    const one = await app.request("GET", `/v1/webhooks/deliveries/${id}`, { key });
    const all = await app.request("GET", "/v1/webhooks/deliveries", { key });
    expect(all.body.deliveries).toEqual([one.body]);
    expect((await app.request("GET", `/v1/webhooks/deliveries/${newId()}`, { key })).status).toBe(404);
    for (const type of ["x", "bulk.complete", "webhook.test"]) {
      const { status, body } = await app.request("GET", `/v1/webhooks/deliveries?type=${type}`, { key });
      expect([status, body.error]).toEqual([400, "Invalid query"]);
    }
  });

  test("of another account or mode are a 404", async () => {
    const app = start(ALLOWED);
    const [owner, test_, other] = [
      app.newKey({ mode: "live" }),
      app.newKey({ mode: "test" }),
      app.newKey({ mode: "live", account: "other" }),
    ];
    const receiver = newReceiver();
    const id = event(app, receiver.url);
    app.service.notifications.dispatcher.start();
    await until(isDelivered(app, id));
    for (const key of [test_, other]) {
      expect((await app.request("GET", "/v1/webhooks/deliveries", { key })).body.deliveries).toEqual([]);
      expect((await app.request("GET", `/v1/webhooks/deliveries/${id}`, { key })).status).toBe(404);
      expect((await app.request("POST", `/v1/webhooks/deliveries/${id}/redeliver`, { key })).status).toBe(404);
    }
    expect((await app.request("POST", `/v1/webhooks/deliveries/${newId()}/redeliver`, { key: owner })).status).toBe(
      404,
    );
    expect((await app.request("POST", "/v1/webhooks/deliveries/1/redeliver", { key: owner })).status).toBe(404);
  });

  test("can be redelivered: delivered ones, pending ones, and those whose URL was gone", async () => {
    const app = start(ALLOWED);
    const key = app.newKey({ mode: "live" });
    const receiver = newReceiver();
    app.service.notifications.dispatcher.start();
    for (const status of [204, 500, 410]) {
      const before = receiver.received.length;
      receiver.answer(status);
      const id = event(app, receiver.url);
      app.service.notifications.dispatcher.wake();
      await receiver.untilReceived(before + 1);
      await until(() => app.service.notifications.dispatcher.running === 0);
      receiver.answer(200);
      const again = await app.request("POST", `/v1/webhooks/deliveries/${id}/redeliver`, { key });
      expect(again.status).toBe(202);
      expect(again.body).toMatchObject({ id, status: "pending" });
      await until(isDelivered(app, id));
      expect(receiver.received.slice(before).map(({ headers }) => headers["webhook-id"])).toEqual([id, id]);
    }
  });
});

test("a redelivered event becomes the only due one of its queue", async () => {
  const app = start(ALLOWED);
  const key = app.newKey({ mode: "live" });
  const receiver = newReceiver();
  const times = () =>
    app.db.sqlite.query("SELECT id FROM webhook_deliveries WHERE due_at_ms IS NOT NULL").all() as { id: string }[];
  const first = event(app, receiver.url);
  app.service.notifications.dispatcher.start();
  await until(isDelivered(app, first));
  receiver.answer(500);
  const second = event(app, receiver.url);
  app.service.notifications.dispatcher.wake();
  await until(() => times().length === 1 && app.service.notifications.dispatcher.running === 0);
  expect(times()).toEqual([{ id: second }]);
  await app.service.notifications.dispatcher.stop();
  await app.request("POST", `/v1/webhooks/deliveries/${first}/redeliver`, { key });
  expect(times()).toEqual([{ id: first }]);
});

describe("a test call", () => {
  test("sends a signed webhook.test and returns the result", async () => {
    const app = start(ALLOWED);
    const receiver = newReceiver();
    const answer = await app.request("POST", "/v1/webhooks/test", { key: app.newKey(), body: { url: receiver.url } });
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ url: receiver.url, delivered: true, http_status: 204, problem: null });
    expect(receiver.received[0]?.event).toMatchObject({ type: "webhook.test", data: { mode: "test" } });
    expect(receiver.received[0]?.headers["webhook-id"]).toBe(answer.id);
  });

  test("returns a refusal as a 200", async () => {
    const app = start(ALLOWED);
    const receiver = newReceiver();
    receiver.answer(() => new Response("no\nsuch\thook", { status: 404 }));
    const answer = await app.request("POST", "/v1/webhooks/test", { key: app.newKey(), body: { url: receiver.url } });
    expect(answer.body).toMatchObject({
      delivered: false,
      http_status: 404,
      problem: "The receiver responded 404: no such hook.",
    });
  });

  test.each([
    ["no URL", {}],
    ["a URL that is not https", { url: "http://example.com/" }],
    ["a private address", { url: "https://192.168.0.1/" }],
    ["a password", { url: "https://a:b@example.com/" }],
    ["an unknown field", { url: "https://example.com/", x: 1 }],
  ])("with %s is a 400 with a reason", async (_, body) => {
    const app = start();
    const answer = await app.request("POST", "/v1/webhooks/test", { key: app.newKey(), body });
    expect(answer).toMatchObject({ status: 400, body: { error: "Invalid request body" } });
    expect(answer.body.issues).toHaveLength(1);
  });
});

test("secrets are created once, shown with the scope to write, and rotated", async () => {
  const app = start();
  const key = app.newKey();
  const secretsOf = async (method: string, path: string): Promise<Array<Record<string, unknown>>> =>
    (await app.request(method, path, { key })).body.secrets as Array<Record<string, unknown>>;
  const [first] = await secretsOf("GET", "/v1/webhooks/secret");
  expect(await secretsOf("GET", "/v1/webhooks/secret")).toEqual([first ?? {}]);
  const rotated = await secretsOf("POST", "/v1/webhooks/secret/rotate");
  expect(rotated).toHaveLength(2);
  expect(rotated[0]).toMatchObject({ valid_until: null });
  expect(rotated[1]).toMatchObject({ secret: first?.secret, valid_until: "2026-01-02T00:00:00.000Z" });
  const reader = app.newKey({ scopes: ["webhooks:read"] });
  expect((await app.request("GET", "/v1/webhooks/secret", { key: reader })).status).toBe(403);
});

test("a test key reads and rotates the secret of test events only", async () => {
  const app = start();
  const [live, test_] = [app.newKey({ mode: "live" }), app.newKey({ mode: "test" })];
  const secretsOf = async (key: IssuedKey, method = "GET", path = "") =>
    (await app.request(method, `/v1/webhooks/secret${path}`, { key })).body.secrets;
  const before = await secretsOf(live);
  expect(await secretsOf(test_)).not.toEqual(before);
  expect(await secretsOf(test_, "POST", "/rotate")).toHaveLength(2);
  expect(await secretsOf(live)).toEqual(before);
});
