import { describe, expect, setSystemTime, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { settle } from "../testing/clock.ts";
import { createReceivers } from "../testing/receiver.ts";
import { createWebhookHarness, until } from "../testing/webhook-harness.ts";
import { LOOK_EVERY_MS, REST_MS } from "./dispatcher.ts";
import { FAST_MAX, SLOW_MAX } from "./delivery-slots.ts";
import { DELIVERY_ATTEMPTS_MAX } from "./schedule.ts";
import { SECRET_GRACE_MS } from "./secrets.ts";

const newWorld = createWebhookHarness();
const newReceiver = createReceivers();
const LIVE = { accountId: "account", mode: "live" } as const;
const TEST = { accountId: "account", mode: "test" } as const;
const WAITS_S = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];

describe("an event", () => {
  test("is sent within a second of being written, signed, and is then delivered", async () => {
    const [world, receiver] = [newWorld(), newReceiver()];
    world.dispatcher.start();
    await settle();
    const id = world.event(receiver.url, { n: 1 });
    await world.clock.advance(LOOK_EVERY_MS);
    await world.untilDelivered(id);
    expect(receiver.received).toHaveLength(1);
    const { headers, body, event } = receiver.received[0] ?? { headers: {}, body: "", event: {} };
    expect(event).toEqual({ type: "test.event", timestamp: "2026-01-01T00:00:00.000Z", data: { n: 1, mode: "live" } });
    expect(headers).toMatchObject({
      "webhook-id": id,
      "content-type": "application/json",
      "user-agent": "Postwarden/test",
    });
    const [secret = ""] = await world.secrets.signing(LIVE);
    setSystemTime(world.clock.nowMs());
    expect(() => new Webhook(secret).verify(body, headers)).not.toThrow();
    setSystemTime();
    expect(world.find(id)).toMatchObject({ status: "delivered", attempts: 1, lastHttpStatus: 204, lastProblem: null });
  });

  test("for nobody is never sent, and stays in the feed", async () => {
    const world = newWorld();
    const id = world.event(null);
    world.dispatcher.start();
    await until(() => world.events.waiting(1).length === 0);
    expect(world.store.find(id)).toBeUndefined();
    expect(
      world.events
        .window(LIVE, {})(null, 9, 9)
        .rows.map((event) => event.id),
    ).toEqual([id]);
  });

  test("goes to the default URL of its account and mode as well, under the same id, and to one URL once", async () => {
    const [world, own, ofAccount] = [newWorld(), newReceiver(), newReceiver()];
    world.defaults.set("account live", ofAccount.url);
    const ids = [world.event(own.url, {}, LIVE), world.event(null, {}, LIVE), world.event(ofAccount.url, {}, LIVE)];
    const other = world.event(own.url, {}, TEST);
    world.dispatcher.start();
    await world.untilDelivered(other);
    await ofAccount.untilReceived(3);
    const idsAt = (receiver: typeof own) => receiver.received.map(({ headers }) => headers["webhook-id"] ?? "");
    expect(idsAt(own).toSorted()).toEqual([ids[0] ?? "", other].toSorted());
    expect(idsAt(ofAccount)).toEqual(ids);
    await until(() => world.dispatcher.running() === 0);
    const rows = world.store.list(LIVE, {}, { before: null, limit: 9 });
    expect(rows.map(({ eventId, via, status }) => [eventId, via, status]).toSorted()).toEqual(
      [
        [ids[0] ?? "", "default", "delivered"],
        [ids[0] ?? "", "subject", "delivered"],
        [ids[1] ?? "", "default", "delivered"],
        [ids[2] ?? "", "both", "delivered"],
      ].toSorted(),
    );
  });

  test("is repeated at the times of the schedule under the same id, with a new signature, and given up at the end", async () => {
    const [world, receiver] = [newWorld(), newReceiver()];
    receiver.answer(503);
    const id = world.event(receiver.url);
    world.dispatcher.start();
    await world.untilAttempts(id, 1);
    for (const [at, waitS] of WAITS_S.entries()) {
      await world.skip(waitS * 1000 - 1);
      expect(receiver.received).toHaveLength(at + 1);
      await world.skip(1);
      await world.untilAttempts(id, at + 2);
    }
    expect(world.find(id)).toMatchObject({
      status: "failed",
      attempts: DELIVERY_ATTEMPTS_MAX,
      lastHttpStatus: 503,
      dueAtMs: null,
    });
    expect(new Set(receiver.received.map(({ headers }) => headers["webhook-id"]))).toEqual(new Set([id]));
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
    expect(new Set(receiver.received.map(({ headers }) => headers["webhook-signature"])).size).toBe(
      DELIVERY_ATTEMPTS_MAX,
    );
    expect(world.logged.join()).toContain("given up");
  });

  test.each([
    ["a redirect", 302],
    ["a client error", 400],
    ["a server error", 500],
  ])("is not delivered by %s", async (_, status) => {
    const [world, receiver] = [newWorld(), newReceiver()];
    receiver.answer(status);
    const id = world.event(receiver.url);
    world.dispatcher.start();
    await world.untilAttempts(id, 1);
    expect(world.find(id)).toMatchObject({
      status: "pending",
      lastHttpStatus: status,
      dueAtMs: world.clock.nowMs() + 5_000,
    });
    expect(world.find(id).lastProblem).toContain(String(status));
  });
});

describe("the events for one URL", () => {
  test("wait for an earlier one about the same subject only", async () => {
    const [world, receiver] = [newWorld(), newReceiver()];
    receiver.answer(({ event }) => new Response(null, { status: event.data.n === 1 ? 500 : 204 }));
    const about = (subject: string) => ({ ...LIVE, subject });
    const first = world.event(receiver.url, { n: 1 }, about("target:a"));
    const behind = world.event(receiver.url, { n: 2 }, about("target:a"));
    const other = world.event(receiver.url, { n: 3 }, about("target:b"));
    world.dispatcher.start();
    await world.untilDelivered(other);
    await world.untilAttempts(first, 1);
    expect([world.find(first), world.find(behind)]).toMatchObject([
      { status: "pending", attempts: 1 },
      { status: "pending", attempts: 0, dueAtMs: null },
    ]);
  });

  test("about one subject come in their order, and those behind a failure wait for it", async () => {
    const [world, receiver] = [newWorld(), newReceiver()];
    receiver.answer((_, number) => new Response(null, { status: number === 3 ? 500 : 200 }));
    const ids = Array.from({ length: 250 }, (_, n) => world.event(receiver.url, { n }));
    world.dispatcher.start();
    await world.untilAttempts(ids[2] ?? "", 1);
    expect(receiver.received).toHaveLength(3);
    await world.clock.advance(5_000 + LOOK_EVERY_MS);
    await world.untilDelivered(ids.at(-1) ?? "");
    const order = receiver.received.map(({ event }) => event.data.n);
    expect(order).toEqual([0, 1, 2, ...Array.from({ length: 248 }, (_, n) => n + 2)]);
  });

  test("end with the 410 of its receiver, and so do later ones, until it is sent again by hand", async () => {
    const [world, receiver] = [newWorld(), newReceiver()];
    receiver.answer(410);
    const ids = [world.event(receiver.url), world.event(receiver.url)];
    world.dispatcher.start();
    await until(() => ids.every((id) => world.store.find(id)?.status === "failed"));
    const later = world.event(receiver.url);
    await world.clock.advance(LOOK_EVERY_MS);
    await until(() => world.store.find(later)?.status === "failed");
    expect(receiver.received).toHaveLength(1);
    expect(world.find(later).lastProblem).toContain("410");
    expect(world.logged.join()).toContain("turned off");
  });
});

test("more events than may wait for a URL are not sent, which is said aloud and shown, and other URLs go on", async () => {
  const [world, dead, alive] = [newWorld({ pendingMax: 3 }), newReceiver(), newReceiver()];
  dead.answer(() => Promise.withResolvers<Response>().promise);
  const ids = Array.from({ length: 5 }, () => world.event(dead.url));
  const other = world.event(alive.url);
  world.dispatcher.start();
  await world.untilDelivered(other);
  expect(ids.map((id) => world.find(id).status)).toEqual(["pending", "pending", "pending", "failed", "failed"]);
  expect(world.find(ids[4] ?? "").lastProblem).toContain("3 events are waiting");
  expect(world.logged.join()).toContain("events are not sent");
});

describe("a slow receiver", () => {
  test("holds up no other URL, nor the same URL of another account", async () => {
    const [world, slow, quick] = [newWorld(), newReceiver(), newReceiver()];
    slow.answer((_, number) => (number === 1 ? Promise.withResolvers<Response>().promise : new Response()));
    world.event(slow.url, {}, { ...LIVE, accountId: "one" });
    world.dispatcher.start();
    await slow.untilReceived(1);
    const others = [
      world.event(quick.url, {}, { ...LIVE, accountId: "one" }),
      world.event(slow.url, {}, { ...LIVE, accountId: "two" }),
    ];
    await world.look();
    for (const id of others) await world.untilDelivered(id);
    expect(world.dispatcher.running()).toBe(1);
  });

  test("takes one of many places: more of them than there are places are all served in the end", async () => {
    const [world, receiver] = [newWorld(), newReceiver()];
    const ids = Array.from({ length: FAST_MAX + SLOW_MAX + 50 }, (_, n) => world.event(`${receiver.url}?${n}`));
    world.dispatcher.start();
    await until(() => ids.every((id) => world.store.find(id)?.status === "delivered"));
    expect(receiver.received).toHaveLength(ids.length);
  });
});

describe("nothing is sent to an address that may not be connected to", () => {
  test("when a host moves there between two attempts; the event waits on", async () => {
    const receiver = newReceiver();
    const zone: Record<string, { A: string[] }> = { "hook.example.com": { A: ["127.0.0.1"] } };
    const world = newWorld({ zone });
    receiver.answer(500);
    const id = world.event(receiver.url.replace("127.0.0.1", "hook.example.com"));
    world.dispatcher.start();
    await world.untilAttempts(id, 1);
    zone["hook.example.com"] = { A: ["127.0.0.1", "10.0.0.1"] };
    await world.clock.advance(5_000 + LOOK_EVERY_MS);
    await world.untilAttempts(id, 2);
    expect(receiver.received).toHaveLength(1);
    expect(world.find(id)).toMatchObject({ status: "pending", lastHttpStatus: null });
    expect(world.find(id).lastProblem).toContain("10.0.0.1");
  });
});

describe("after a restart", () => {
  test("what was waiting is sent at its time, under its id, and what was not recorded is sent again", async () => {
    const folder = mkdtempSync(join(tmpdir(), "postwarden-webhooks-"));
    const path = join(folder, "test.db");
    try {
      const receiver = newReceiver();
      receiver.answer(500);
      const before = newWorld({ path });
      const ids = [before.event(receiver.url), before.event(receiver.url)];
      before.dispatcher.start();
      await before.untilAttempts(ids[0] ?? "", 1);
      const unseen = before.event(receiver.url);
      const stopped = before.dispatcher.stop();
      await before.clock.advance(0);
      await stopped;
      before.close();

      receiver.answer(200);
      const after = newWorld({ path });
      after.dispatcher.start();
      await settle();
      expect(receiver.received).toHaveLength(1);
      await after.clock.advance(5_000 + LOOK_EVERY_MS);
      await after.untilDelivered(unseen);
      expect(receiver.received.map(({ headers }) => headers["webhook-id"])).toEqual([
        ids[0] ?? "",
        ids[0] ?? "",
        ids[1] ?? "",
        unseen,
      ]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

test("for a day after a rotation both secrets sign, then only the new one", async () => {
  const [world, receiver] = [newWorld(), newReceiver()];
  const [old] = world.secrets.current(LIVE);
  const [fresh] = world.secrets.rotate(LIVE);
  const first = world.event(receiver.url);
  world.dispatcher.start();
  await world.untilDelivered(first);
  await world.skip(SECRET_GRACE_MS);
  const id = world.event(receiver.url);
  await world.look();
  await world.untilDelivered(id);
  const signatures = receiver.received.map(({ headers }) => headers["webhook-signature"]?.split(" ").length);
  expect(signatures).toEqual([2, 1]);
  setSystemTime(world.clock.nowMs());
  const { body, headers } = receiver.received[1] ?? { body: "", headers: {} };
  expect(() => new Webhook(fresh?.secret ?? "").verify(body, headers)).not.toThrow();
  expect(() => new Webhook(old?.secret ?? "").verify(body, headers)).toThrow();
  setSystemTime();
});

test("while nothing can be recorded (disk full) a receiver does not get the same event again and again", async () => {
  const [world, receiver] = [newWorld(), newReceiver()];
  receiver.answer(503);
  const id = world.event(receiver.url);
  world.dispatcher.start();
  await world.untilAttempts(id, 1);
  receiver.answer(204);
  world.db.sqlite.run("PRAGMA query_only = ON");
  await world.clock.advance(5_000);
  await until(() => world.logged.some((line) => line.includes("could not be sent or recorded")), "the failure");
  for (let looks = 0; looks < 20; looks++) await world.look();
  await world.clock.advance(REST_MS - LOOK_EVERY_MS);
  for (let looks = 0; looks < 20; looks++) await world.look();
  expect(receiver.received).toHaveLength(2);
  world.db.sqlite.run("PRAGMA query_only = OFF");
  await world.clock.advance(LOOK_EVERY_MS);
  await world.untilDelivered(id);
  expect(receiver.received).toHaveLength(3);
});

describe("live and test events for one URL", () => {
  test("are signed, also what waited for its first attempt before its mode had a secret", async () => {
    const [world, receiver] = [newWorld(), newReceiver()];
    receiver.answer(503);
    const id = world.event(receiver.url, {}, TEST);
    world.dispatcher.start();
    await world.untilAttempts(id, 1);
    world.db.sqlite.run("DELETE FROM webhook_secrets");
    receiver.answer(204);
    await world.skip(5_000);
    await world.untilDelivered(id);
    const [secret = ""] = await world.secrets.signing(TEST);
    const { headers, body } = receiver.received[1] ?? { headers: {}, body: "" };
    setSystemTime(world.clock.nowMs());
    expect(() => new Webhook(secret).verify(body, headers)).not.toThrow();
    setSystemTime();
  });

  test("are signed with different secrets, and each tells its mode", async () => {
    const [world, receiver] = [newWorld(), newReceiver()];
    const ids = [world.event(receiver.url, { n: 1 }, LIVE), world.event(receiver.url, { n: 2 }, TEST)];
    world.dispatcher.start();
    for (const id of ids) await world.untilDelivered(id);
    setSystemTime(world.clock.nowMs());
    for (const { headers, body, event } of receiver.received) {
      const isLive = headers["webhook-id"] === ids[0];
      expect(event).toMatchObject({ data: isLive ? { n: 1, mode: "live" } : { n: 2, mode: "test" } });
      const [own, others] = isLive ? [LIVE, TEST] : [TEST, LIVE];
      const [secret = ""] = await world.secrets.signing(own);
      const [other = ""] = await world.secrets.signing(others);
      expect(() => new Webhook(secret).verify(body, headers)).not.toThrow();
      expect(() => new Webhook(other).verify(body, headers)).toThrow();
    }
    setSystemTime();
    expect(receiver.received).toHaveLength(2);
  });

  test("do not wait for each other, and a 410 turns the URL off for its own mode only", async () => {
    const [world, receiver] = [newWorld(), newReceiver()];
    receiver.answer(500);
    const failing = world.event(receiver.url, {}, TEST);
    world.dispatcher.start();
    await world.untilAttempts(failing, 1);
    receiver.answer(204);
    const live = world.event(receiver.url, {}, LIVE);
    await world.look();
    await world.untilDelivered(live);
    expect(world.find(failing).status).toBe("pending");
    receiver.answer(410);
    await world.skip(5_000);
    await world.untilAttempts(failing, 2);
    expect([world.store.isGone(TEST, receiver.url), world.store.isGone(LIVE, receiver.url)]).toEqual([true, false]);
    receiver.answer(204);
    const next = world.event(receiver.url, {}, LIVE);
    await world.look();
    await world.untilDelivered(next);
  });
});
