import { describe, expect, test } from "bun:test";
import { newId } from "../../foundation/base/secrets.ts";
import { createApps, type TestApp } from "../../testing/app.ts";
import { createReceivers } from "../../testing/receiver.ts";
import { until } from "../../testing/webhook-harness.ts";
import { deliveriesSchema } from "./schemas.ts";

const start = createApps();
const newReceiver = createReceivers();
const ALLOWED = { settings: { WEBHOOK_ALLOW_NETWORKS: "127.0.0.0/8" } };
const PATH = "/v1/webhooks/deliveries";

interface Made {
  readonly url: string | null;
  readonly subject?: string;
  readonly type?: string;
  readonly n?: number;
}

/** An event in the outbox, as a slice writes it. */
const event = (app: TestApp, { url, subject = "target:1", type = "blacklist.listed", n = 0 }: Made): string => {
  const id = newId();
  app.db.sqlite.run(
    "INSERT INTO outbox (id, account_id, mode, type, subject, data, url, created_at_ms) VALUES (?, ?, 'live', ?, ?, ?, ?, ?)",
    [id, app.accountId("main"), type, subject, JSON.stringify({ n }), url, app.clock.nowMs()],
  );
  return id;
};

const begin = ({ isStarted = true } = {}) => {
  const app = start(ALLOWED);
  const key = app.newKey({ mode: "live" });
  if (isStarted) app.service.notifications.dispatcher.start();
  const statusOf = (id: string) =>
    app.db.sqlite.query<{ status: string }, [string]>("SELECT status FROM webhook_deliveries WHERE id = ?").get(id)
      ?.status;
  return {
    app,
    key,
    statusOf,
    wake: () => app.service.notifications.dispatcher.wake(),
    untilStatus: (id: string, status: string) => until(() => statusOf(id) === status, `${id} ${status}`),
    untilTried: (id: string) =>
      until(
        () =>
          app.service.notifications.dispatcher.running === 0 &&
          app.db.sqlite.query("SELECT 1 FROM webhook_deliveries WHERE id = ? AND attempts > 0").get(id) !== null,
      ),
    list: async (query = "") =>
      deliveriesSchema.parse((await app.request("GET", `${PATH}${query}`, { key })).body).deliveries,
  };
};

describe("a delivery that is cancelled", () => {
  test("is not sent, and the next one of its queue is", async () => {
    const { app, key, untilTried, untilStatus, list } = begin();
    const receiver = newReceiver();
    receiver.answer(({ event: { data } }) => new Response(null, { status: data.n === 1 ? 500 : 204 }));
    const [stuck, behind] = [event(app, { url: receiver.url, n: 1 }), event(app, { url: receiver.url, n: 2 })];
    app.service.notifications.dispatcher.wake();
    await untilTried(stuck);
    const cancelled = await app.request("POST", `${PATH}/${stuck}/cancel`, { key });
    expect(cancelled).toMatchObject({ status: 200, body: { id: stuck, status: "cancelled", next_attempt_at: null } });
    await untilStatus(behind, "delivered");
    expect((await list("?status=cancelled")).map(({ id }) => id)).toEqual([stuck]);
    const again = await app.request("POST", `${PATH}/${behind}/cancel`, { key });
    expect(again).toMatchObject({ status: 409, body: { error: "conflict" } });
    expect((await app.request("POST", `${PATH}/${stuck}/cancel`, { key })).status).toBe(200);
  });

  test("while it waits in its queue is skipped", async () => {
    const { app, key, untilStatus } = begin();
    const receiver = newReceiver();
    const held = Promise.withResolvers<Response>();
    receiver.answer((_, number) => (number === 1 ? held.promise : new Response()));
    const ids = [1, 2, 3].map((n) => event(app, { url: receiver.url, n }));
    app.service.notifications.dispatcher.wake();
    await receiver.untilReceived(1);
    await app.request("POST", `${PATH}/${ids[1]}/cancel`, { key });
    held.resolve(new Response());
    await untilStatus(ids[2] ?? "", "delivered");
    expect(receiver.received.map(({ event: { data } }) => data.n)).toEqual([1, 3]);
  });

  test("is delivered if its request was already under way and succeeds", async () => {
    const { app, key, untilStatus } = begin();
    const receiver = newReceiver();
    const held = Promise.withResolvers<Response>();
    receiver.answer(() => held.promise);
    const id = event(app, { url: receiver.url });
    app.service.notifications.dispatcher.wake();
    await receiver.untilReceived(1);
    await app.request("POST", `${PATH}/${id}/cancel`, { key });
    held.resolve(new Response());
    await untilStatus(id, "delivered");
  });

  test("stays cancelled if its request was already under way and fails", async () => {
    const { app, key, statusOf } = begin();
    const receiver = newReceiver();
    const held = Promise.withResolvers<Response>();
    receiver.answer(() => held.promise);
    const id = event(app, { url: receiver.url });
    app.service.notifications.dispatcher.wake();
    await receiver.untilReceived(1);
    await app.request("POST", `${PATH}/${id}/cancel`, { key });
    held.resolve(new Response(null, { status: 500 }));
    await until(() => app.service.notifications.dispatcher.running === 0);
    expect(statusOf(id)).toBe("cancelled");
  });
});

test("a delivery that is sent again enables its URL, which a 410 had disabled, for later events", async () => {
  const { app, key, wake, untilStatus } = begin();
  const receiver = newReceiver();
  receiver.answer((_, number) => new Response(null, { status: number === 1 ? 410 : 204 }));
  const first = event(app, { url: receiver.url });
  wake();
  await untilStatus(first, "failed");
  expect((await app.request("POST", `${PATH}/${first}/redeliver`, { key })).status).toBe(202);
  await untilStatus(first, "delivered");
  const later = event(app, { url: receiver.url });
  wake();
  await untilStatus(later, "delivered");
});

describe("many deliveries", () => {
  test("that were rejected are redelivered in order once the receiver works", async () => {
    const { app, key, untilStatus } = begin({ isStarted: false });
    const receiver = newReceiver();
    const ids = Array.from({ length: 450 }, (_, n) => event(app, { url: receiver.url, n }));
    app.service.notifications.dispatcher.start();
    await untilStatus(ids.at(-1) ?? "", "delivered");
    app.db.sqlite.run("UPDATE webhook_deliveries SET status = 'rejected' WHERE id != ?", [ids[0] ?? ""]);
    const before = receiver.received.length;
    const answer = await app.request("POST", `${PATH}/redeliver`, { key, body: { type: "blacklist.listed" } });
    expect(answer).toMatchObject({ status: 202, body: { count: 449, next_cursor: null } });
    await untilStatus(ids.at(-1) ?? "", "delivered");
    expect(receiver.received.slice(before).map(({ event: { data } }) => data.n)).toEqual(
      Array.from({ length: 449 }, (_, n) => n + 1),
    );
  });

  test("are selected by status, URL, type, subject and time", async () => {
    const { app, key, list } = begin({ isStarted: false });
    const [one, two] = [newReceiver(), newReceiver()];
    for (const receiver of [one, two]) receiver.answer(503);
    event(app, { url: one.url, subject: "target:a" });
    event(app, { url: one.url, subject: "domain:b", type: "dmarc.new_source" });
    await app.clock.advance(60_000);
    event(app, { url: two.url, subject: "job:c", type: "bulk.completed" });
    app.service.notifications.dispatcher.start();
    await until(
      () =>
        one.received.length === 2 && two.received.length === 1 && app.service.notifications.dispatcher.running === 0,
    );
    const countOf = async (body: object) => (await app.request("POST", `${PATH}/redeliver`, { key, body })).body.count;
    await app.service.notifications.dispatcher.stop();
    expect(await countOf({})).toBe(0);
    expect(await countOf({ status: "pending" })).toBe(3);
    expect(await countOf({ status: "pending", url: one.url })).toBe(2);
    expect(await countOf({ status: "pending", subject: "job:c" })).toBe(1);
    expect(await countOf({ status: "pending", since: "2026-01-01T00:00:30Z" })).toBe(1);
    expect(await list("?since=2026-01-01T00:00:30Z")).toHaveLength(1);
    expect(await list("?until=2026-01-01T00:00:30Z&subject=target:a")).toHaveLength(1);
    const cancel = await app.request("POST", `${PATH}/cancel`, { key, body: { type: "bulk.completed" } });
    expect(cancel).toMatchObject({ status: 200, body: { count: 1, next_cursor: null } });
    expect((await app.request("POST", `${PATH}/cancel`, { key, body: {} })).body).toMatchObject({ count: 2 });
    expect(await list("?status=pending")).toEqual([]);
  });

  test("of other accounts are not changed, and invalid requests are refused", async () => {
    const { app, key, untilTried, statusOf } = begin();
    const receiver = newReceiver();
    receiver.answer(500);
    const id = event(app, { url: receiver.url });
    app.service.notifications.dispatcher.wake();
    await untilTried(id);
    for (const other of [app.newKey({ mode: "test" }), app.newKey({ mode: "live", account: "other" })]) {
      expect((await app.request("POST", `${PATH}/cancel`, { key: other, body: {} })).body).toMatchObject({ count: 0 });
      expect((await app.request("POST", `${PATH}/${id}/cancel`, { key: other })).status).toBe(404);
    }
    expect(statusOf(id)).toBe("pending");
    for (const body of [{ status: "gone" }, { since: "yesterday" }, { x: 1 }]) {
      expect((await app.request("POST", `${PATH}/redeliver`, { key, body })).status).toBe(400);
    }
    const badCursor = await app.request("POST", `${PATH}/cancel`, { key, body: { cursor: "x" } });
    expect(badCursor).toMatchObject({ status: 400, body: { error: "Invalid cursor" } });
    const reader = app.newKey({ scopes: ["webhooks:read"] });
    expect((await app.request("POST", `${PATH}/cancel`, { key: reader, body: {} })).status).toBe(403);
  });
});

describe("changing a URL moves its pending deliveries", () => {
  const TARGETS = "/v1/blacklist/targets";
  const stuck = async () => {
    const made = begin();
    const { app, key, untilTried } = made;
    const [old, fresh] = [newReceiver(), newReceiver()];
    old.answer(500);
    const { body } = await app.request("POST", TARGETS, { key, body: { target: "45.67.89.10", webhook_url: old.url } });
    const target = (body as { id: string }).id;
    const subject = `target:${target}`;
    const ids = [1, 2, 3].map((n) => event(app, { url: old.url, subject, n }));
    const other = event(app, { url: old.url, subject: "target:other" });
    app.service.notifications.dispatcher.wake();
    await untilTried(ids[0] ?? "");
    await untilTried(other);
    return { ...made, old, fresh, target, subject, ids, other };
  };

  test("in order, of that target only, with a new schedule", async () => {
    const { app, key, fresh, target, ids, other, untilStatus, statusOf } = await stuck();
    await app.request("PATCH", `${TARGETS}/${target}`, { key, body: { webhook_url: fresh.url } });
    app.service.notifications.dispatcher.wake();
    await untilStatus(ids[2] ?? "", "delivered");
    expect(fresh.received.map(({ event: { data } }) => data.n)).toEqual([1, 2, 3]);
    expect(statusOf(other)).toBe("pending");
  });

  test("and removing it cancels them", async () => {
    const { app, key, target, ids, statusOf } = await stuck();
    await app.request("PATCH", `${TARGETS}/${target}`, { key, body: { webhook_url: null } });
    expect(ids.map(statusOf)).toEqual(["cancelled", "cancelled", "cancelled"]);
  });

  test("including events that are not relayed yet", async () => {
    const { app, key, fresh, old, subject, target } = await stuck();
    const late = event(app, { url: old.url, subject, n: 4 });
    await app.request("PATCH", `${TARGETS}/${target}`, { key, body: { webhook_url: fresh.url } });
    app.service.notifications.dispatcher.wake();
    await fresh.untilReceived(4);
    expect(fresh.received.at(-1)?.headers["webhook-id"]).toBe(late);
  });

  test("of an account leaves deliveries of subjects with the same URL", async () => {
    const { app, key, untilTried, untilStatus, statusOf } = begin();
    const [old, fresh] = [newReceiver(), newReceiver()];
    old.answer(500);
    await app.request("PATCH", "/v1/notifications", { key, body: { webhook_url: old.url } });
    const byDefault = [1, 2].map((n) => event(app, { url: null, subject: "target:a", n }));
    const both = event(app, { url: old.url, subject: "target:b", n: 3 });
    app.service.notifications.dispatcher.wake();
    for (const id of [byDefault[0] ?? "", both]) await untilTried(id);
    await app.request("PATCH", "/v1/notifications", { key, body: { webhook_url: fresh.url } });
    app.service.notifications.dispatcher.wake();
    for (const id of byDefault) await untilStatus(id, "delivered");
    await fresh.untilReceived(3);
    const sent = fresh.received.map(({ event: { data } }) => data.n);
    expect([sent.toSorted(), sent.indexOf(1) < sent.indexOf(2)]).toEqual([[1, 2, 3], true]);
    expect(fresh.received.some(({ headers }) => headers["webhook-id"] === both)).toBe(true);
    // The target's own webhook is still the old URL.
    expect(statusOf(both)).toBe("pending");
    old.answer(204);
    await app.request("POST", `${PATH}/${both}/redeliver`, { key });
    await untilStatus(both, "delivered");
  });

  test("to the default of the account, where the same event is pending, merges them", async () => {
    const { app, key, list, untilTried, statusOf } = begin();
    const [own, ofAccount] = [newReceiver(), newReceiver()];
    for (const receiver of [own, ofAccount]) receiver.answer(500);
    await app.request("PATCH", "/v1/notifications", { key, body: { webhook_url: ofAccount.url } });
    const { body } = await app.request("POST", TARGETS, { key, body: { target: "45.67.89.10", webhook_url: own.url } });
    const target = (body as { id: string }).id;
    const id = event(app, { url: own.url, subject: `target:${target}` });
    app.service.notifications.dispatcher.wake();
    await untilTried(id);
    await app.request("PATCH", `${TARGETS}/${target}`, { key, body: { webhook_url: ofAccount.url } });
    expect(statusOf(id)).toBe("cancelled");
    expect((await list("?status=pending")).map(({ event_id, url }) => [event_id, url])).toEqual([[id, ofAccount.url]]);
  });
});
