import { describe, expect, test } from "bun:test";
import { newId } from "../../foundation/base/secrets.ts";
import { EVENT_DOCS, EVENT_TYPES } from "../../service/event-docs.ts";
import { createApps, type TestApp } from "../../testing/app.ts";
import { createReceivers } from "../../testing/receiver.ts";
import { until } from "../../testing/webhook-harness.ts";
import { eventsSchema } from "./schemas.ts";

const start = createApps();
const newReceiver = createReceivers();
const DAY_MS = 24 * 60 * 60_000;
const ALLOWED = { settings: { WEBHOOK_ALLOW_NETWORKS: "127.0.0.0/8" } };

const event = (app: TestApp, more: Partial<Record<"type" | "subject" | "mode" | "account", string>> = {}): string => {
  const { type = "blacklist.listed", subject = "target:1", mode = "live", account = "main" } = more;
  const id = newId();
  app.db.sqlite.run(
    "INSERT INTO outbox (id, account_id, mode, type, subject, data, url, created_at_ms) VALUES (?, ?, ?, ?, ?, '{\"x\":1}', NULL, ?)",
    [id, app.accountId(account), mode, type, subject, app.clock.nowMs()],
  );
  return id;
};

const begin = () => {
  const app = start(ALLOWED);
  const key = app.newKey({ mode: "live" });
  const feed = async (query = "", by = key) =>
    eventsSchema.parse((await app.request("GET", `/v1/events${query}`, { key: by })).body);
  return { app, key, feed, ids: async (query = "") => (await feed(query)).events.map(({ id }) => id) };
};

describe("the feed", () => {
  test("has every event, oldest first, in pages, before and after they are relayed", async () => {
    const { app, feed, ids } = begin();
    const made = [event(app), event(app, { type: "dmarc.new_source", subject: "domain:2" }), event(app)];
    expect(await ids()).toEqual(made);
    app.service.notifications.dispatcher.start();
    await until(() => app.db.sqlite.query("SELECT 1 FROM outbox WHERE delivered_at_ms IS NULL").get() === null);
    const first = await feed("?limit=2");
    expect(first.events[0]).toEqual({
      id: made[0] ?? "",
      type: "blacklist.listed",
      subject: "target:1",
      timestamp: "2026-01-01T00:00:00.000Z",
      data: { x: 1, mode: "live" },
    });
    expect(await ids(`?limit=2&cursor=${first.next_cursor}`)).toEqual([made[2] ?? ""]);
    expect(await ids(`?after=${made[0]}`)).toEqual(made.slice(1));
  });

  test("is filtered by time, type and subject", async () => {
    const { app, ids } = begin();
    const [one, two] = [event(app), event(app, { type: "dmarc.new_source", subject: "domain:2" })];
    await app.clock.advance(1_000);
    const three = event(app, { subject: "target:3" });
    expect(await ids("?since=2026-01-01T00:00:01Z")).toEqual([three]);
    expect(await ids("?type=blacklist.listed")).toEqual([one, three]);
    expect(await ids("?type=blacklist.listed&limit=1")).toEqual([one]);
    expect(await ids("?subject=domain:2")).toEqual([two]);
  });

  test("is limited to the account and mode and needs the scope", async () => {
    const { app, feed, ids } = begin();
    const own = event(app);
    app.newKey({ account: "other" });
    event(app, { account: "other" });
    const ofTest = event(app, { mode: "test" });
    expect(await ids()).toEqual([own]);
    expect((await feed("", app.newKey({ mode: "test" }))).events.map(({ id }) => id)).toEqual([ofTest]);
    const other = app.newKey({ scopes: ["blacklist:read"] });
    expect((await app.request("GET", "/v1/events", { key: other })).status).toBe(403);
  });

  test.each(["since=yesterday", "type=x", "after=x", "sort=id"])("refuses ?%s", async (query) => {
    const { app, key } = begin();
    expect((await app.request("GET", `/v1/events?${query}`, { key })).status).toBe(400);
  });

  test("is kept for 30 days; events not relayed yet are kept", async () => {
    const { app, ids } = begin();
    const old = Array.from({ length: 1_200 }, () => event(app));
    app.db.sqlite.run("UPDATE outbox SET delivered_at_ms = 0 WHERE id != ?", [old[0] ?? ""]);
    await app.clock.advance(30 * DAY_MS + 1);
    const fresh = event(app);
    await app.service.notifications.webhooks.purge();
    expect(await ids()).toEqual([old[0] ?? "", fresh]);
  });
});

describe("a test event", () => {
  test.each(EVENT_TYPES)(
    "of type %s has the data of the documented example, and says that it is a test",
    async (type) => {
      const { app, key } = begin();
      const receiver = newReceiver();
      const answer = await app.request("POST", "/v1/webhooks/test", { key, body: { url: receiver.url, type } });
      expect(answer.body).toMatchObject({ delivered: true, type });
      const doc = EVENT_DOCS.find((candidate) => candidate.type === type);
      const { data, ...rest } = receiver.received[0]?.event ?? { data: {} };
      expect(rest).toMatchObject({ type, timestamp: "2026-01-01T00:00:00.000Z" });
      expect(data).toEqual({ ...(doc?.example as object), test: true, mode: "live" });
      expect(doc?.data.safeParse(data).success).toBe(true);
    },
  );

  test("of a type that does not exist is refused", async () => {
    const { app, key } = begin();
    const body = { url: "https://example.com/hook", type: "blacklist.lister" };
    expect((await app.request("POST", "/v1/webhooks/test", { key, body })).status).toBe(400);
  });
});
