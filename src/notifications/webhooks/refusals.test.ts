import { describe, expect, test } from "bun:test";
import { err } from "../../foundation/base/errors.ts";
import { createTestClock } from "../../testing/clock.ts";
import { createReceivers } from "../../testing/receiver.ts";
import { createWebhookHarness, until } from "../../testing/webhook-harness.ts";
import { createSender } from "./send.ts";

const newHarness = createWebhookHarness();
const newReceiver = createReceivers();
const LIVE = { accountId: "account", mode: "live" } as const;
const S_MS = 1_000;

/** Answers with a header that asks to wait. */
const limit = (status: number, retryAfter: string) => () =>
  new Response("slow down", { status, headers: { "retry-after": retryAfter } });

describe("an event that its receiver permanently refuses", () => {
  test.each([400, 403, 404, 413, 422])(
    "with %i steps aside after three attempts, and what is behind it goes on",
    async (status) => {
      const [harness, receiver] = [newHarness(), newReceiver()];
      const said = `${"x".repeat(2_000)}`;
      receiver.answer(({ event }) => (event.data.n === 1 ? new Response(said, { status }) : new Response()));
      const bad = harness.event(receiver.url, { n: 1 });
      const behind = harness.event(receiver.url, { n: 2 });
      harness.dispatcher.start();
      await harness.untilAttempts(bad, 1);
      await harness.skip(5 * S_MS);
      await harness.untilAttempts(bad, 2);
      expect(harness.find(behind)).toMatchObject({ status: "pending", attempts: 0 });
      await harness.skip(300 * S_MS);
      await harness.untilDelivered(behind);
      expect(harness.find(bad)).toMatchObject({
        status: "rejected",
        attempts: 3,
        lastHttpStatus: status,
        lastAnswer: "x".repeat(1_024),
        dueAtMs: null,
      });
      expect(harness.logged.join()).toContain("rejected by its receiver");
    },
  );

  test.each([408, 409, 425, 429, 500, 302])("is not meant by %i: the schedule continues", async (status) => {
    const [harness, receiver] = [newHarness(), newReceiver()];
    receiver.answer(status);
    const id = harness.event(receiver.url);
    harness.dispatcher.start();
    for (const [at, waitS] of [0, 5, 300].entries()) {
      if (waitS > 0) await harness.skip(waitS * S_MS);
      await harness.untilAttempts(id, at + 1);
    }
    expect(harness.find(id)).toMatchObject({ status: "pending", attempts: 3, rejections: 0 });
  });

  test("is rejected after three refusals; other failures do not count", async () => {
    const [harness, receiver] = [newHarness(), newReceiver()];
    receiver.answer((_, number) => new Response(null, { status: number <= 2 ? 500 : 400 }));
    const id = harness.event(receiver.url);
    harness.dispatcher.start();
    for (const [at, waitS] of [0, 5, 300, 1_800].entries()) {
      if (waitS > 0) await harness.skip(waitS * S_MS);
      await harness.untilAttempts(id, at + 1);
      expect(harness.find(id).status).toBe("pending");
    }
    await harness.skip(7_200 * S_MS);
    await harness.untilAttempts(id, 5);
    expect(harness.find(id).status).toBe("rejected");
  });
});

test("a delivery that is answered with 410 says so itself; those behind it say that an earlier one was", async () => {
  const [harness, receiver] = [newHarness(), newReceiver()];
  receiver.answer(410);
  const [id, behind] = [harness.event(receiver.url), harness.event(receiver.url)];
  harness.dispatcher.start();
  await harness.untilAttempts(id, 1);
  expect(harness.find(id)).toMatchObject({ status: "failed", attempts: 1, lastHttpStatus: 410 });
  expect(harness.find(id).lastProblem).not.toContain("earlier event");
  expect(harness.find(behind)).toMatchObject({
    status: "failed",
    attempts: 0,
    lastProblem: "Not sent: the receiver responded to an earlier event that the URL is gone.",
  });
});

describe("Retry-After", () => {
  test.each<[string, number]>([
    ["120", 120],
    ["Thu, 01 Jan 2026 00:02:00 GMT", 120],
    ["1", 5],
    ["99999999", 86_400],
    ["soon", 5],
  ])("%s: the next attempt is after %i s, never before the schedule's", async (header, waitS) => {
    const [harness, receiver] = [newHarness(), newReceiver()];
    receiver.answer(limit(503, header));
    const id = harness.event(receiver.url);
    harness.dispatcher.start();
    await harness.untilAttempts(id, 1);
    expect(harness.find(id).dueAtMs).toBe(harness.clock.nowMs() + waitS * S_MS);
  });

  test("of a 429 applies to all deliveries to the URL, also later ones", async () => {
    const [harness, receiver] = [newHarness(), newReceiver()];
    receiver.answer(limit(429, "60"));
    const first = harness.event(receiver.url, {}, { ...LIVE, subject: "target:a" });
    harness.dispatcher.start();
    await harness.untilAttempts(first, 1);
    receiver.answer(204);
    const others = ["b", "c"].map((name) => harness.event(receiver.url, {}, { ...LIVE, subject: `target:${name}` }));
    await harness.look();
    await until(() => others.every((id) => harness.store.find(id) !== undefined));
    await harness.skip(59 * S_MS);
    expect(receiver.received).toHaveLength(1);
    await harness.skip(1 * S_MS);
    for (const id of [first, ...others]) await harness.untilDelivered(id);
  });

  test("of a 429 is kept while nothing can be recorded (disk full)", async () => {
    const [harness, receiver] = [newHarness(), newReceiver()];
    receiver.answer(({ event }) => limit(500, event.data.n === 1 ? "5" : "10")());
    const [first, other] = [1, 2].map((n) => harness.event(receiver.url, { n }, { ...LIVE, subject: `target:${n}` }));
    harness.dispatcher.start();
    for (const id of [first, other]) await harness.untilAttempts(id ?? "", 1);
    receiver.answer(limit(429, "60"));
    harness.db.sqlite.run("PRAGMA query_only = ON");
    await harness.clock.advance(5 * S_MS);
    await until(() => harness.logged.some((line) => line.includes("could not send or record")), "the failure");
    for (let seconds = 0; seconds < 20; seconds++) await harness.clock.advance(1 * S_MS);
    expect(receiver.received).toHaveLength(3);
    harness.db.sqlite.run("PRAGMA query_only = OFF");
    receiver.answer(204);
    await harness.skip(60 * S_MS);
    for (const id of [first, other]) await harness.untilDelivered(id ?? "");
  });

  test("of a 500 applies to its own event only", async () => {
    const [harness, receiver] = [newHarness(), newReceiver()];
    receiver.answer(({ event }) => (event.data.n === 1 ? limit(500, "60")() : new Response()));
    const first = harness.event(receiver.url, { n: 1 }, { ...LIVE, subject: "target:a" });
    harness.dispatcher.start();
    await harness.untilAttempts(first, 1);
    const other = harness.event(receiver.url, { n: 2 }, { ...LIVE, subject: "target:b" });
    await harness.look();
    await harness.untilDelivered(other);
    expect(harness.find(first).dueAtMs).toBe(harness.clock.nowMs() + 60 * S_MS);
  });
});

test.each([
  ["timeout", true],
  ["aborted", true],
  ["connection", false],
  ["dns", false],
  ["address_refused", false],
  ["url_refused", false],
] as const)("a request that ends with %s is no response; it timed out: %p", async (kind, timedOut) => {
  const send = createSender({
    post: async () => err({ kind, problem: "No." }),
    ...{ clock: createTestClock(), userAgent: "test", baseUrl: null, loadDocs: async () => [] },
  });
  const result = await send({ id: "a", url: "https://a.example/", body: "{}", secrets: [] });
  expect(result).toMatchObject({ delivered: false, rejected: false, httpStatus: null, problem: "No.", timedOut });
});
