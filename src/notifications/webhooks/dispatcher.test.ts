import { describe, expect, setSystemTime, spyOn, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import type { Fact } from "../../foundation/db/facts.ts";
import { settle } from "../../testing/clock.ts";
import { createReceivers } from "../../testing/receiver.ts";
import { createWebhookHarness, deliveryResult, until } from "../../testing/webhook-harness.ts";
import { POLL_MS, COOLDOWN_MS } from "./dispatcher.ts";
import { FAST_MAX, SLOW_MAX } from "./delivery-slots.ts";
import { DELIVERY_ATTEMPTS_MAX } from "./send.ts";
import { SECRET_GRACE_MS } from "./secret-store.ts";

const newHarness = createWebhookHarness();
const newReceiver = createReceivers();
const LIVE = { accountId: "account", mode: "live" } as const;
const TEST = { accountId: "account", mode: "test" } as const;
const WAITS_S = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];

test("every attempt is counted by what followed, with the age of its event", async () => {
  const facts: Fact[] = [];
  const results = [deliveryResult({ problem: "500" }), deliveryResult({ delivered: true, httpStatus: 204 })];
  const harness = newHarness({ sender: () => async () => results.shift() ?? deliveryResult({}) });
  harness.db.onCommitted((fact) => facts.push(fact));
  harness.dispatcher.start();
  await settle();
  const id = harness.event("https://example.com/hook");
  await harness.clock.advance(POLL_MS);
  await until(() => facts.length === 1);
  await harness.clock.advance(10_000);
  await harness.untilDelivered(id);
  const ages = facts.map((fact) => (fact.kind === "webhook" ? [fact.status, fact.ageMs] : []));
  expect(ages[0]).toEqual(["pending", POLL_MS]);
  expect(ages[1]?.[0]).toBe("delivered");
  expect(Number(ages[1]?.[1])).toBeGreaterThanOrEqual(5_000);
});

describe("an event", () => {
  test("is sent signed within a second and is then delivered", async () => {
    const [harness, receiver] = [newHarness(), newReceiver()];
    harness.dispatcher.start();
    await settle();
    const id = harness.event(receiver.url, { n: 1 });
    await harness.clock.advance(POLL_MS);
    await harness.untilDelivered(id);
    expect(receiver.received).toHaveLength(1);
    const { headers, body, event } = receiver.received[0] ?? { headers: {}, body: "", event: {} };
    expect(event).toEqual({ type: "test.event", timestamp: "2026-01-01T00:00:00.000Z", data: { n: 1, mode: "live" } });
    expect(headers).toMatchObject({
      "webhook-id": id,
      "content-type": "application/json",
      "user-agent": "Postwarden/test",
    });
    const [secret = ""] = await harness.secrets.signing(LIVE);
    setSystemTime(harness.clock.nowMs());
    expect(() => new Webhook(secret).verify(body, headers)).not.toThrow();
    setSystemTime();
    expect(harness.find(id)).toMatchObject({
      status: "delivered",
      attempts: 1,
      lastHttpStatus: 204,
      lastProblem: null,
    });
  });

  test("without a URL is not sent but listed in the feed", async () => {
    const harness = newHarness();
    const id = harness.event(null);
    harness.dispatcher.start();
    await until(() => harness.events.waiting(1).length === 0);
    expect(harness.store.find(id)).toBeUndefined();
    expect(
      harness.events
        .window(LIVE, {})(null, 9, 9)
        .rows.map((event) => event.id),
    ).toEqual([id]);
  });

  test("is also sent to the default URL of its account and mode, with the same id, and once if both are equal", async () => {
    const [harness, own, ofAccount] = [newHarness(), newReceiver(), newReceiver()];
    harness.defaults.set("account live", ofAccount.url);
    const ids = [
      harness.event(own.url, {}, LIVE),
      harness.event(null, {}, LIVE),
      harness.event(ofAccount.url, {}, LIVE),
    ];
    const other = harness.event(own.url, {}, TEST);
    harness.dispatcher.start();
    await harness.untilDelivered(other);
    await ofAccount.untilReceived(3);
    const idsAt = (receiver: typeof own) => receiver.received.map(({ headers }) => headers["webhook-id"] ?? "");
    expect(idsAt(own).toSorted()).toEqual([ids[0] ?? "", other].toSorted());
    expect(idsAt(ofAccount)).toEqual(ids);
    await until(() => harness.dispatcher.running === 0);
    const rows = harness.store.list(LIVE, {}, { before: null, limit: 9 });
    expect(rows.map(({ eventId, via, status }) => [eventId, via, status]).toSorted()).toEqual(
      [
        [ids[0] ?? "", "default", "delivered"],
        [ids[0] ?? "", "subject", "delivered"],
        [ids[1] ?? "", "default", "delivered"],
        [ids[2] ?? "", "both", "delivered"],
      ].toSorted(),
    );
  });

  test("is repeated on schedule with the same id and a new signature, and fails at the end", async () => {
    const [harness, receiver] = [newHarness(), newReceiver()];
    receiver.answer(503);
    const id = harness.event(receiver.url);
    harness.dispatcher.start();
    await harness.untilAttempts(id, 1);
    for (const [at, waitS] of WAITS_S.entries()) {
      await harness.skip(waitS * 1000 - 1);
      expect(receiver.received).toHaveLength(at + 1);
      await harness.skip(1);
      await harness.untilAttempts(id, at + 2);
    }
    expect(harness.find(id)).toMatchObject({
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
    expect(harness.logged.join()).toContain("webhook failed after");
  });

  test.each([
    ["a redirect", 302],
    ["a client error", 400],
    ["a server error", 500],
  ])("is not delivered by %s", async (_, status) => {
    const [harness, receiver] = [newHarness(), newReceiver()];
    receiver.answer(status);
    const id = harness.event(receiver.url);
    harness.dispatcher.start();
    await harness.untilAttempts(id, 1);
    expect(harness.find(id)).toMatchObject({
      status: "pending",
      lastHttpStatus: status,
      dueAtMs: harness.clock.nowMs() + 5_000,
    });
    expect(harness.find(id).lastProblem).toContain(String(status));
  });
});

describe("the events for one URL", () => {
  test("wait only for an earlier one about the same subject", async () => {
    const [harness, receiver] = [newHarness(), newReceiver()];
    receiver.answer(({ event }) => new Response(null, { status: event.data.n === 1 ? 500 : 204 }));
    const about = (subject: string) => ({ ...LIVE, subject });
    const first = harness.event(receiver.url, { n: 1 }, about("target:a"));
    const behind = harness.event(receiver.url, { n: 2 }, about("target:a"));
    const other = harness.event(receiver.url, { n: 3 }, about("target:b"));
    harness.dispatcher.start();
    await harness.untilDelivered(other);
    await harness.untilAttempts(first, 1);
    expect([harness.find(first), harness.find(behind)]).toMatchObject([
      { status: "pending", attempts: 1 },
      { status: "pending", attempts: 0, dueAtMs: null },
    ]);
  });

  test("about one subject are sent in order and wait for a failed one", async () => {
    const [harness, receiver] = [newHarness(), newReceiver()];
    receiver.answer((_, number) => new Response(null, { status: number === 3 ? 500 : 200 }));
    const ids = Array.from({ length: 250 }, (_, n) => harness.event(receiver.url, { n }));
    harness.dispatcher.start();
    await harness.untilAttempts(ids[2] ?? "", 1);
    expect(receiver.received).toHaveLength(3);
    await harness.clock.advance(5_000 + POLL_MS);
    await harness.untilDelivered(ids.at(-1) ?? "");
    const order = receiver.received.map(({ event }) => event.data.n);
    expect(order).toEqual([0, 1, 2, ...Array.from({ length: 248 }, (_, n) => n + 2)]);
  });

  test("fail after a 410, and so do later ones, until one is redelivered", async () => {
    const [harness, receiver] = [newHarness(), newReceiver()];
    receiver.answer(410);
    const ids = [harness.event(receiver.url), harness.event(receiver.url)];
    harness.dispatcher.start();
    await until(() => ids.every((id) => harness.store.find(id)?.status === "failed"));
    const later = harness.event(receiver.url);
    await harness.clock.advance(POLL_MS);
    await until(() => harness.store.find(later)?.status === "failed");
    expect(receiver.received).toHaveLength(1);
    expect(harness.find(later).lastProblem).toContain("that the URL is gone");
    expect(harness.logged.join()).toContain("is disabled");
  });
});

test("more events than may be pending for a URL are not sent, which is logged and shown; other URLs are not affected", async () => {
  const [harness, dead, alive] = [newHarness({ pendingMax: 3 }), newReceiver(), newReceiver()];
  dead.answer(() => Promise.withResolvers<Response>().promise);
  const ids = Array.from({ length: 5 }, () => harness.event(dead.url));
  const other = harness.event(alive.url);
  harness.dispatcher.start();
  await harness.untilDelivered(other);
  expect(ids.map((id) => harness.find(id).status)).toEqual(["pending", "pending", "pending", "failed", "failed"]);
  expect(harness.find(ids[4] ?? "").lastProblem).toContain("3 events are already waiting");
  expect(harness.logged.join()).toContain("events are not sent");
});

describe("a slow endpoint", () => {
  test("delays neither other URLs nor the same URL of another account", async () => {
    const [harness, slow, quick] = [newHarness(), newReceiver(), newReceiver()];
    slow.answer((_, number) => (number === 1 ? Promise.withResolvers<Response>().promise : new Response()));
    harness.event(slow.url, {}, { ...LIVE, accountId: "one" });
    harness.dispatcher.start();
    await slow.untilReceived(1);
    const others = [
      harness.event(quick.url, {}, { ...LIVE, accountId: "one" }),
      harness.event(slow.url, {}, { ...LIVE, accountId: "two" }),
    ];
    await harness.look();
    for (const id of others) await harness.untilDelivered(id);
    expect(harness.dispatcher.running).toBe(1);
  });

  test("takes one slot: more slow endpoints than slots are all served", async () => {
    const [harness, receiver] = [newHarness(), newReceiver()];
    const ids = Array.from({ length: FAST_MAX + SLOW_MAX + 50 }, (_, n) => harness.event(`${receiver.url}?${n}`));
    harness.dispatcher.start();
    await until(() => ids.every((id) => harness.store.find(id)?.status === "delivered"));
    expect(receiver.received).toHaveLength(ids.length);
  });
});

describe("nothing is sent to a forbidden address", () => {
  test("when a host moves there between two attempts; the event stays pending", async () => {
    const receiver = newReceiver();
    const zone: Record<string, { A: string[] }> = { "hook.example.com": { A: ["127.0.0.1"] } };
    const harness = newHarness({ zone });
    receiver.answer(500);
    const id = harness.event(receiver.url.replace("127.0.0.1", "hook.example.com"));
    harness.dispatcher.start();
    await harness.untilAttempts(id, 1);
    zone["hook.example.com"] = { A: ["127.0.0.1", "10.0.0.1"] };
    await harness.clock.advance(5_000 + POLL_MS);
    await harness.untilAttempts(id, 2);
    expect(receiver.received).toHaveLength(1);
    expect(harness.find(id)).toMatchObject({ status: "pending", lastHttpStatus: null });
    expect(harness.find(id).lastProblem).toContain("10.0.0.1");
  });
});

describe("after a restart", () => {
  test("pending events are sent on time with their ids, and unrecorded attempts are repeated", async () => {
    const folder = mkdtempSync(join(tmpdir(), "postwarden-webhooks-"));
    const path = join(folder, "test.db");
    try {
      const receiver = newReceiver();
      receiver.answer(500);
      const before = newHarness({ path });
      const ids = [before.event(receiver.url), before.event(receiver.url)];
      before.dispatcher.start();
      await before.untilAttempts(ids[0] ?? "", 1);
      const unseen = before.event(receiver.url);
      const stopped = before.dispatcher.stop();
      await before.clock.advance(0);
      await stopped;
      before.close();

      receiver.answer(200);
      const after = newHarness({ path });
      after.dispatcher.start();
      await settle();
      expect(receiver.received).toHaveLength(1);
      await after.clock.advance(5_000 + POLL_MS);
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
  const [harness, receiver] = [newHarness(), newReceiver()];
  const [old] = harness.secrets.current(LIVE);
  const [fresh] = harness.secrets.rotate(LIVE);
  const first = harness.event(receiver.url);
  harness.dispatcher.start();
  await harness.untilDelivered(first);
  await harness.skip(SECRET_GRACE_MS);
  const id = harness.event(receiver.url);
  await harness.look();
  await harness.untilDelivered(id);
  const signatures = receiver.received.map(({ headers }) => headers["webhook-signature"]?.split(" ").length);
  expect(signatures).toEqual([2, 1]);
  setSystemTime(harness.clock.nowMs());
  const { body, headers } = receiver.received[1] ?? { body: "", headers: {} };
  expect(() => new Webhook(fresh?.secret ?? "").verify(body, headers)).not.toThrow();
  expect(() => new Webhook(old?.secret ?? "").verify(body, headers)).toThrow();
  setSystemTime();
});

describe("a read of the database that fails", () => {
  const fail = () => {
    throw Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR_READ" });
  };

  test("in a poll is logged once, and what waits is sent when a poll succeeds", async () => {
    const [harness, receiver] = [newHarness(), newReceiver()];
    const id = harness.event(receiver.url);
    const reads = spyOn(harness.events, "waiting").mockImplementation(fail);
    harness.dispatcher.start();
    await harness.clock.advance(3 * POLL_MS);
    expect([reads.mock.calls.length, harness.logged.length]).toEqual([4, 1]);
    expect(harness.logged[0]).toContain("webhook dispatch failed");
    reads.mockRestore();
    await harness.clock.advance(POLL_MS);
    await harness.untilDelivered(id);
    expect(harness.logged).toHaveLength(1);
  });

  test("after a delivery, when the next queues are started, is logged once, and they start with a poll", async () => {
    const [harness, receiver] = [newHarness(), newReceiver()];
    harness.dispatcher.start();
    await settle();
    const ids = ["target:1", "target:2"].map((subject) => harness.event(receiver.url, {}, { ...LIVE, subject }));
    const reads = spyOn(harness.store, "dueHeads");
    const held = Promise.withResolvers<Response>();
    receiver.answer(() => held.promise);
    await harness.look();
    await receiver.untilReceived(1);
    reads.mockImplementation(fail);
    held.resolve(new Response(null, { status: 204 }));
    await until(() => harness.logged.length > 0, "the failure");
    expect(harness.logged[0]).toContain("starting of webhook queues failed");
    reads.mockRestore();
    await harness.clock.advance(POLL_MS);
    for (const id of ids) await harness.untilDelivered(id);
    expect(harness.logged).toHaveLength(1);
  });
});

test("while nothing can be recorded (disk full) an event is not sent repeatedly", async () => {
  const [harness, receiver] = [newHarness(), newReceiver()];
  receiver.answer(503);
  const id = harness.event(receiver.url);
  harness.dispatcher.start();
  await harness.untilAttempts(id, 1);
  receiver.answer(204);
  harness.db.sqlite.run("PRAGMA query_only = ON");
  await harness.clock.advance(5_000);
  await until(() => harness.logged.some((line) => line.includes("could not send or record")), "the failure");
  for (let looks = 0; looks < 20; looks++) await harness.look();
  await harness.clock.advance(COOLDOWN_MS - POLL_MS);
  for (let looks = 0; looks < 20; looks++) await harness.look();
  expect(receiver.received).toHaveLength(2);
  harness.db.sqlite.run("PRAGMA query_only = OFF");
  await harness.clock.advance(POLL_MS);
  await harness.untilDelivered(id);
  expect(receiver.received).toHaveLength(3);
});

describe("live and test events for one URL", () => {
  test("are signed, including those from before their mode had a secret", async () => {
    const [harness, receiver] = [newHarness(), newReceiver()];
    receiver.answer(503);
    const id = harness.event(receiver.url, {}, TEST);
    harness.dispatcher.start();
    await harness.untilAttempts(id, 1);
    harness.db.sqlite.run("DELETE FROM webhook_secrets");
    receiver.answer(204);
    await harness.skip(5_000);
    await harness.untilDelivered(id);
    const [secret = ""] = await harness.secrets.signing(TEST);
    const { headers, body } = receiver.received[1] ?? { headers: {}, body: "" };
    setSystemTime(harness.clock.nowMs());
    expect(() => new Webhook(secret).verify(body, headers)).not.toThrow();
    setSystemTime();
  });

  test("are signed with different secrets and include their mode", async () => {
    const [harness, receiver] = [newHarness(), newReceiver()];
    const ids = [harness.event(receiver.url, { n: 1 }, LIVE), harness.event(receiver.url, { n: 2 }, TEST)];
    harness.dispatcher.start();
    for (const id of ids) await harness.untilDelivered(id);
    setSystemTime(harness.clock.nowMs());
    for (const { headers, body, event } of receiver.received) {
      const isLive = headers["webhook-id"] === ids[0];
      expect(event).toMatchObject({ data: isLive ? { n: 1, mode: "live" } : { n: 2, mode: "test" } });
      const [own, others] = isLive ? [LIVE, TEST] : [TEST, LIVE];
      const [secret = ""] = await harness.secrets.signing(own);
      const [other = ""] = await harness.secrets.signing(others);
      expect(() => new Webhook(secret).verify(body, headers)).not.toThrow();
      expect(() => new Webhook(other).verify(body, headers)).toThrow();
    }
    setSystemTime();
    expect(receiver.received).toHaveLength(2);
  });

  test("do not wait for each other, and a 410 disables the URL for its mode only", async () => {
    const [harness, receiver] = [newHarness(), newReceiver()];
    receiver.answer(500);
    const failing = harness.event(receiver.url, {}, TEST);
    harness.dispatcher.start();
    await harness.untilAttempts(failing, 1);
    receiver.answer(204);
    const live = harness.event(receiver.url, {}, LIVE);
    await harness.look();
    await harness.untilDelivered(live);
    expect(harness.find(failing).status).toBe("pending");
    receiver.answer(410);
    await harness.skip(5_000);
    await harness.untilAttempts(failing, 2);
    expect([TEST, LIVE].map((owner) => harness.store.goneSince(owner, receiver.url) !== undefined)).toEqual([
      true,
      false,
    ]);
    receiver.answer(204);
    const next = harness.event(receiver.url, {}, LIVE);
    await harness.look();
    await harness.untilDelivered(next);
  });
});

describe("the system's clock", () => {
  test("set back: a retry still comes after its wait, and a pause ends", async () => {
    const [harness, receiver] = [newHarness(), newReceiver()];
    receiver.answer((_, number) => new Response(null, { status: number === 1 ? 500 : 204 }));
    const paused = newReceiver();
    paused.answer((_, number) =>
      number === 1 ? new Response(null, { status: 429, headers: { "retry-after": "60" } }) : new Response(null),
    );
    const id = harness.event(receiver.url);
    const pausedId = harness.event(paused.url, {}, { ...LIVE, subject: "target:2" });
    harness.dispatcher.start();
    await harness.untilAttempts(id, 1);
    await harness.untilAttempts(pausedId, 1);
    harness.clock.setWall(-365 * 24 * 3_600_000);
    await harness.look();
    expect(receiver.received).toHaveLength(1);
    await harness.skip(5_000);
    await harness.untilDelivered(id);
    await harness.skip(60_000);
    await harness.untilDelivered(pausedId);
    expect(harness.logged.filter((line) => line.includes("set back"))).toHaveLength(1);
  });
});
