import { describe, expect, test } from "bun:test";
import { createWebhookHarness, deliveryResult } from "../../testing/webhook-harness.ts";
import type { DeliveryResult } from "./send.ts";
import { Endpoints } from "./endpoints.ts";

const newHarness = createWebhookHarness();
const OWNER = { accountId: "account", mode: "live" } as const;
const URL_A = "https://a.example/hook";
const URL_B = "https://b.example/hook";

/** A harness whose receivers answer what `answers` holds. */
const harnessOf = (answers: Record<string, Partial<DeliveryResult>>) => {
  const harness = newHarness({
    sender:
      () =>
      async ({ url }) =>
        deliveryResult(answers[url] ?? { delivered: true, httpStatus: 200 }),
  });
  const endpoints = new Endpoints({ db: harness.db, clock: harness.clock }, harness.store);
  harness.dispatcher.start();
  return { harness, endpoints };
};

const setDefault = ({ db }: ReturnType<typeof newHarness>, url: string, mode = "live"): void => {
  db.sqlite.run(
    "INSERT INTO account_notifications (account_id, mode, webhook_url, recipients, updated_at_ms) VALUES ('account', ?, ?, '[]', 0)",
    [mode, url],
  );
};

describe("the URLs of an account", () => {
  test("are those that are set and those that were called, the worst first", async () => {
    const failed = { problem: "The receiver responded 500.", httpStatus: 500, response: "oops" };
    const { harness, endpoints } = harnessOf({ [URL_B]: failed });
    setDefault(harness, "https://unused.example/");
    setDefault(harness, "https://test.example/", "test");
    const [good, bad] = [harness.event(URL_A), harness.event(URL_B, {}, { ...OWNER, subject: "target:2" })];
    await harness.untilDelivered(good);
    await harness.untilAttempts(bad, 1);
    harness.event(URL_B, {}, { ...OWNER, subject: "target:2" });
    harness.event(URL_B, {}, { accountId: "other", mode: "live" });
    await harness.look();
    expect(endpoints.list(OWNER)).toMatchObject([
      { url: URL_B, state: "failing", pending: 2, failures: 1, uses: [], lastAttempt: { problem: failed.problem } },
      { url: "https://unused.example/", state: "unused", uses: [{ use: "account", count: 1 }], lastAttempt: null },
      { url: URL_A, state: "working", pending: 0, failures: 0, lastAttempt: { httpStatus: 200, problem: null } },
    ]);
    expect(endpoints.list({ ...OWNER, mode: "test" })).toMatchObject([{ url: "https://test.example/" }]);
    expect(endpoints.list({ ...OWNER, accountId: "nobody" })).toEqual([]);
  });

  test("that fail say since when, until one is delivered", async () => {
    const answers: Record<string, Partial<DeliveryResult>> = { [URL_A]: { problem: "No." } };
    const { harness, endpoints } = harnessOf(answers);
    const id = harness.event(URL_A);
    await harness.untilAttempts(id, 1);
    const sinceMs = harness.clock.nowMs();
    await harness.skip(5_000);
    await harness.untilAttempts(id, 2);
    expect(endpoints.find(OWNER, URL_A)).toMatchObject({ state: "failing", failures: 2, sinceMs });
    expect(endpoints.attention(OWNER)).toMatchObject([
      { severity: "warn", sinceMs, detail: "No. 1 event waits.", title: "a.example does not take our events" },
    ]);
    answers[URL_A] = { delivered: true, httpStatus: 204 };
    await harness.skip(5 * 60_000);
    await harness.untilDelivered(id);
    expect(endpoints.find(OWNER, URL_A)).toMatchObject({ state: "working", failures: 0, sinceMs: null });
    expect(endpoints.attempts(id).map(({ problem, httpStatus }) => [problem, httpStatus])).toEqual([
      ["No.", null],
      ["No.", null],
      [null, 204],
    ]);
    expect(endpoints.attention(OWNER)).toEqual([]);
  });

  test("of one host that fail are named with their paths", async () => {
    const urls = ["https://crm.example/one", "https://crm.example/two"];
    const { harness, endpoints } = harnessOf(Object.fromEntries(urls.map((url) => [url, { problem: "No." }])));
    const ids = urls.map((url, at) => harness.event(url, {}, { ...OWNER, subject: `target:${at}` }));
    for (const id of ids) await harness.untilAttempts(id, 1);
    expect(
      endpoints
        .attention(OWNER)
        .map(({ title }) => title)
        .toSorted(),
    ).toEqual(["crm.example/one does not take our events", "crm.example/two does not take our events"]);
  });

  test("are disabled by a 410, and paused as their receiver asks", async () => {
    const { harness, endpoints } = harnessOf({
      [URL_A]: { gone: true, httpStatus: 410, problem: "Gone." },
      [URL_B]: { rateLimited: true, retryAfterMs: 60_000, httpStatus: 429, problem: "Slow down." },
    });
    const [gone, slow] = [harness.event(URL_A), harness.event(URL_B, {}, { ...OWNER, subject: "target:2" })];
    await harness.untilAttempts(gone, 1);
    await harness.untilAttempts(slow, 1);
    expect(endpoints.find(OWNER, URL_A)?.state).toBe("unset");
    expect(endpoints.attention(OWNER)).toEqual([]);
    setDefault(harness, URL_A);
    const nowMs = harness.clock.nowMs();
    expect(endpoints.list(OWNER)).toMatchObject([
      { url: URL_A, state: "disabled", sinceMs: nowMs, pending: 0 },
      { url: URL_B, state: "paused", sinceMs: nowMs + 60_000, pending: 1, nextDueMs: nowMs + 60_000 },
    ]);
    expect(endpoints.attention(OWNER)).toMatchObject([{ severity: "bad" }]);
    harness.db.transact((tx) => harness.store.clearGone(tx, OWNER, URL_A));
    expect(endpoints.find(OWNER, URL_A)?.state).toBe("failing");
  });

  test("are paused alone: what waits for another URL, account or mode keeps its time", async () => {
    const { harness } = harnessOf({ [URL_A]: { problem: "No." }, [URL_B]: { problem: "No." } });
    const ids = [
      harness.event(URL_A),
      harness.event(URL_B, {}, { ...OWNER, subject: "target:2" }),
      harness.event(URL_A, {}, { ...OWNER, accountId: "other" }),
      harness.event(URL_A, {}, { ...OWNER, mode: "test" }),
    ];
    for (const id of ids) await harness.untilAttempts(id, 1);
    const due = () => ids.map((id) => harness.store.find(id)?.dueAtMs);
    const before = due();
    const untilMs = harness.clock.nowMs() + 3_600_000;
    harness.db.transact((tx) => harness.store.pause(tx, { ...OWNER, url: URL_A }, untilMs));
    expect(due()).toEqual([untilMs, ...before.slice(1)]);
  });

  test("are not those of others, and no text that is no URL", async () => {
    const { harness, endpoints } = harnessOf({});
    setDefault(harness, URL_B);
    const id = harness.event(URL_A);
    await harness.untilDelivered(id);
    expect(endpoints.find(OWNER, URL_A)?.url).toBe(URL_A);
    expect(endpoints.find({ ...OWNER, accountId: "other" }, URL_A)).toBeNull();
    expect(endpoints.find({ ...OWNER, mode: "test" }, URL_A)).toBeNull();
    for (const text of ["", "x", "https://never.example/", `${URL_A}?`]) expect(endpoints.find(OWNER, text)).toBeNull();
  });
});

test("attempts are deleted with their delivery", async () => {
  const { harness, endpoints } = harnessOf({});
  const id = harness.event(URL_A);
  await harness.untilDelivered(id);
  expect(endpoints.attempts(id).length).toBe(1);
  const later = harness.clock.nowMs() + 1;
  expect(harness.db.transact((tx) => harness.store.purge(tx, later, 10))).toBe(1);
  expect(endpoints.attempts(id)).toEqual([]);
  expect(endpoints.list(OWNER)).toEqual([]);
});
