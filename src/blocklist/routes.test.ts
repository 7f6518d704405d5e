import blocklists from "../../fixtures/blocklists.json" with { type: "json" };
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { newId } from "../foundation/base/secrets.ts";
import { createApps, type TestApp } from "../testing/app.ts";
import { createReceivers } from "../testing/receiver.ts";
import { until } from "../testing/webhook-harness.ts";
import { targetCheckSchema } from "./check-result.ts";
import { checkedSchema, checksSchema, targetSchema, targetsSchema } from "./schemas.ts";
import { listsSchema } from "./list-status.ts";

const start = createApps();
const newReceiver = createReceivers();
const PATH = "/v1/blacklist/targets";
const folder = mkdtempSync(join(tmpdir(), "postwarden-blocklist-"));
afterAll(() => rmSync(folder, { recursive: true }));
const ALLOWED = { settings: { WEBHOOK_ALLOW_NETWORKS: "127.0.0.0/8" } };

const startWithKey = (options: Parameters<typeof start>[0] = {}) => {
  const app = start(options);
  const key = app.newKey();
  const call = (method: string, path: string, body?: unknown) =>
    app.request(method, path, { key, ...(body === undefined ? {} : { body }) });
  return { app, key, call };
};

describe("a target", () => {
  test("is added as pending, normalized, with the time of its first check", async () => {
    const { call } = startWithKey();
    const answer = await call("POST", PATH, { target: " Listed.Example. ", label: "ours" });
    expect(answer.status).toBe(201);
    expect(answer.headers.get("location")).toBe(`${PATH}/${answer.id}`);
    expect(answer.body).toEqual({
      id: answer.id,
      kind: "domain",
      value: "listed.example",
      members: null,
      range_id: null,
      label: "ours",
      status: "pending",
      severity: null,
      monitoring_enabled: true,
      listed_on: [],
      listings: [],
      listings_count: 0,
      seen_at: null,
      muted_lists: [],
      last_checked_at: null,
      next_check_at: "2026-01-01T00:01:00.000Z",
      webhook_configured: false,
      recipients: [],
      alert_severity_min: null,
      created_at: "2026-01-01T00:00:00.000Z",
    });
    expect((await call("GET", `${PATH}/${answer.id}`)).body).toEqual(answer.body);
  });

  test("that exists is returned with 200, unchanged", async () => {
    const { call } = startWithKey();
    const first = await call("POST", PATH, { target: "clean.example" });
    const again = await call("POST", PATH, { target: "CLEAN.example", label: "other" });
    expect(again.status).toBe(200);
    expect(again.body).toEqual(first.body);
    const both = await Promise.all([
      call("POST", PATH, { target: "8.8.8.8" }),
      call("POST", PATH, { target: "::ffff:8.8.8.8" }),
    ]);
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 201]);
    expect(both[0]?.id).toBe(both[1]?.id);
  });

  test.each([
    [{ target: "http://x/" }, "target"],
    [{ target: "1.2.3" }, "target"],
    [{ target: "10.0.0.1" }, "target"],
    [{ target: "" }, "target"],
    [{ target: "x".repeat(400) }, "target"],
    [{ target: 1 }, "target"],
    [{}, "target"],
    [{ target: "a.example", label: "" }, "label"],
    [{ target: "a.example", label: "x".repeat(201) }, "label"],
    [{ target: "a.example", monitoring_enabled: "yes" }, "monitoring_enabled"],
    [{ target: "a.example", webhook_url: "http://example.com/" }, "webhook_url"],
    [{ target: "a.example", webhook_url: "https://127.0.0.1/" }, "webhook_url"],
    [{ target: "a.example", webhook_url: "" }, "webhook_url"],
    [{ target: "a.example", webhook: "https://example.com/" }, "webhook"],
  ])("is not made of %p", async (body, path) => {
    const answer = await startWithKey().call("POST", PATH, body);
    expect(answer).toMatchObject({ status: 400, body: { error: "Invalid request body", issues: [{ path }] } });
  });

  test("changes only the given fields", async () => {
    const { call } = startWithKey();
    const { id } = await call("POST", PATH, {
      target: "a.example",
      label: "one",
      webhook_url: "https://example.com/hook",
    });
    const paused = await call("PATCH", `${PATH}/${id}`, { monitoring_enabled: false });
    expect(paused.body).toMatchObject({ monitoring_enabled: false, label: "one", webhook_configured: true });
    const bare = await call("PATCH", `${PATH}/${id}`, { webhook_url: null, label: null });
    expect(bare.body).toMatchObject({ monitoring_enabled: false, label: null, webhook_configured: false });
    expect((await call("PATCH", `${PATH}/${id}`, {})).body).toEqual(bare.body);
    for (const wrong of [{ muted_lists: ["no-such-list"] }, { target: "b.example" }, { webhook_url: "x" }]) {
      expect((await call("PATCH", `${PATH}/${id}`, wrong)).status).toBe(400);
    }
  });

  test("that is paused shows when it would be checked if it were resumed now, never a time in the past", async () => {
    const { app, call } = startWithKey();
    const { id } = await call("POST", PATH, { target: "a.example", monitoring_enabled: false });
    await app.advance(3 * 3_600_000 + 1);
    expect((await call("GET", `${PATH}/${id}`)).body.next_check_at).toBe("2026-01-01T03:01:00.000Z");
    const resumed = await call("PATCH", `${PATH}/${id}`, { monitoring_enabled: true });
    expect(resumed.body.next_check_at).toBe("2026-01-01T03:01:00.000Z");
  });

  test("of another account or mode does not exist", async () => {
    const { app, call } = startWithKey();
    const { id } = await call("POST", PATH, { target: "a.example" });
    for (const key of [app.newKey({ account: "other" }), app.newKey({ mode: "live" })]) {
      for (const [method, path] of [
        ["GET", `${PATH}/${id}`],
        ["PATCH", `${PATH}/${id}`],
        ["DELETE", `${PATH}/${id}`],
        ["POST", `${PATH}/${id}/check`],
        ["GET", `${PATH}/${id}/checks`],
      ] as const) {
        const answer = await app.request(method, path, { key, ...(method === "PATCH" ? { body: {} } : {}) });
        expect(answer).toMatchObject({ status: 404, body: { error: "not_found" } });
      }
      expect((await app.request("GET", PATH, { key })).body.targets).toEqual([]);
    }
    for (const wrong of ["1", newId()]) expect((await call("GET", `${PATH}/${wrong}`)).status).toBe(404);
  });

  test("is removed with its history", async () => {
    const { app, call } = startWithKey();
    const { id } = await call("POST", PATH, { target: "a.example" });
    await call("POST", `${PATH}/${id}/check`);
    const gone = await call("DELETE", `${PATH}/${id}`);
    expect(gone).toMatchObject({ status: 204, text: "" });
    expect((await call("DELETE", `${PATH}/${id}`)).status).toBe(404);
    expect(app.db.sqlite.query("SELECT * FROM blocklist_checks").all()).toEqual([]);
  });

  test("needs the scope", async () => {
    const { app } = startWithKey();
    const reader = app.newKey({ scopes: ["blacklist:read"] });
    expect((await app.request("GET", PATH, { key: reader })).status).toBe(200);
    expect((await app.request("POST", PATH, { key: reader, body: { target: "a.example" } })).status).toBe(403);
    expect((await app.request("GET", PATH, { key: app.newKey({ scopes: ["bulk:write"] }) })).status).toBe(403);
    expect((await app.request("GET", PATH)).status).toBe(401);
  });
});

test("targets are listed newest first, by pages and filters", async () => {
  const { call } = startWithKey();
  const ids: string[] = [];
  for (const target of ["a.example", "listed.example", "1.2.3.4", "2606:4700::1"])
    ids.push((await call("POST", PATH, { target })).id);
  await call("POST", `${PATH}/${ids[1]}/check`);
  await call("PATCH", `${PATH}/${ids[0]}`, { monitoring_enabled: false });
  const first = await call("GET", `${PATH}?limit=3`);
  const second = await call("GET", `${PATH}?limit=3&cursor=${first.body.next_cursor}`);
  const idsOf = (body: Readonly<Record<string, unknown>>) =>
    (body.targets as Array<{ id: string }>).map(({ id }) => id);
  expect([...idsOf(first.body), ...idsOf(second.body)]).toEqual(ids.toReversed());
  expect(second.body.next_cursor).toBeNull();
  expect(idsOf((await call("GET", `${PATH}?status=listed`)).body)).toEqual([ids[1] ?? ""]);
  expect(idsOf((await call("GET", `${PATH}?kind=ipv6`)).body)).toEqual([ids[3] ?? ""]);
  expect(idsOf((await call("GET", `${PATH}?target=::ffff:1.2.3.4`)).body)).toEqual([ids[2] ?? ""]);
  expect(idsOf((await call("GET", `${PATH}?monitoring_enabled=false`)).body)).toEqual([ids[0] ?? ""]);
  for (const [query, error] of [
    ["limit=0", "Invalid limit"],
    ["cursor=x", "Invalid cursor"],
    ["status=bad", "Invalid query"],
    ["target=1.2.3", "Invalid query"],
    ["page=2", "Invalid query"],
  ]) {
    expect((await call("GET", `${PATH}?${query}`)).body.error).toBe(error ?? "");
  }
});

describe("a check with a test key", () => {
  test.each([
    ["listed.example", "listed", ["test-list"]],
    ["1.2.3.4", "listed", ["test-list"]],
    ["refused.example", "unknown", []],
    ["other.example", "clean", []],
    ["8.8.8.8", "clean", []],
  ] as const)("of %s makes it %s, without a DNS query", async (target, status, listedOn) => {
    const { app, call } = startWithKey();
    const { id } = await call("POST", PATH, { target });
    const answer = await call("POST", `${PATH}/${id}/check`);
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({
      target: { id, status, listed_on: listedOn, last_checked_at: "2026-01-01T00:00:00.000Z" },
      check: { trigger: "manual", status, listed_on: listedOn, finished_at: "2026-01-01T00:00:00.000Z" },
    });
    expect((await call("GET", `${PATH}/${id}/checks`)).body).toEqual({
      checks: [answer.body.check],
      next_cursor: null,
    });
    expect(app.resolver.queries).toEqual([]);
  });

  test("of a muted list: the listing goes at once, with its reason", async () => {
    const { app, call } = startWithKey(ALLOWED);
    const { id } = await call("POST", PATH, { target: "listed.example", webhook_url: "https://example.com/hook" });
    await call("POST", `${PATH}/${id}/check`);
    const muted = await call("PATCH", `${PATH}/${id}`, { muted_lists: ["test-list"] });
    // No list is left that could say so: no answer is no "clean".
    expect(muted.body).toMatchObject({ status: "unknown", listed_on: [], muted_lists: ["test-list"] });
    const events = app.db.sqlite
      .query<{ type: string; data: string }, []>("SELECT type, data FROM outbox ORDER BY id")
      .all();
    expect(events.map(({ type }) => type)).toEqual(["blacklist.listed", "blacklist.delisted"]);
    expect(JSON.parse(events[1]?.data ?? "")).toMatchObject({
      reason: "list_muted",
      listing: "test-list",
      status: "unknown",
    });
  });

  test("may mute any list of the catalogue too", async () => {
    const { call } = startWithKey();
    const { id } = await call("POST", PATH, { target: "listed.example" });
    const muted = await call("PATCH", `${PATH}/${id}`, { muted_lists: ["spamcop", "spamcop"] });
    expect(muted.body.muted_lists).toEqual(["spamcop"]);
  });

  test("refuses an invalid timeout", async () => {
    const { call } = startWithKey();
    const { id } = await call("POST", PATH, { target: "a.example" });
    expect((await call("POST", `${PATH}/${id}/check?timeout=0`)).body.error).toBe("Invalid timeout");
  });

  test("the history is paged, newest first", async () => {
    const { call } = startWithKey();
    const { id } = await call("POST", PATH, { target: "a.example" });
    for (let n = 0; n < 3; n++) await call("POST", `${PATH}/${id}/check`);
    const first = await call("GET", `${PATH}/${id}/checks?limit=2`);
    const second = await call("GET", `${PATH}/${id}/checks?limit=2&cursor=${first.body.next_cursor}`);
    const idsOf = (body: Readonly<Record<string, unknown>>) =>
      (body.checks as Array<{ id: string }>).map(({ id }) => id);
    const ids = [...idsOf(first.body), ...idsOf(second.body)];
    expect(ids).toHaveLength(3);
    expect(ids.toSorted().toReversed()).toEqual(ids);
  });
});

describe("with a live key", () => {
  const ZONE = {
    "2.0.0.127.bl.spamcop.net": { A: ["127.0.0.2"] },
    "8.8.8.8.bl.spamcop.net": { A: ["127.0.0.2"], TXT: ["Blocked"] },
  };

  /** Lets checks take their turns at the lists while the clock is moved on. */
  const withTime = async <T>(app: TestApp, work: Promise<T>): Promise<T> => {
    let isDone = false;
    void work.finally(() => {
      isDone = true;
    });
    for (let step = 0; step < 200 && !isDone; step++) await app.advance(100);
    return work;
  };

  test("a listing and then a delisting are delivered to the webhook, signed", async () => {
    const zone: Record<string, { A: string[] }> = { ...ZONE };
    const app = start({ zone, ...ALLOWED });
    const key = app.newKey({ mode: "live" });
    const receiver = newReceiver();
    app.service.notifications.dispatcher.start();
    const { id } = await app.request("POST", PATH, { key, body: { target: "8.8.8.8", webhook_url: receiver.url } });
    await app.advance(60_000);
    await withTime(app, app.service.blocklist.scheduler.checkDue());
    expect((await app.request("GET", `${PATH}/${id}`, { key })).body).toMatchObject({
      status: "listed",
      listed_on: ["spamcop"],
    });
    await app.advance(1_000);
    await receiver.untilReceived(1);
    delete zone["8.8.8.8.bl.spamcop.net"];
    const again = await withTime(app, app.request("POST", `${PATH}/${id}/check?timeout=60`, { key }));
    expect(again).toMatchObject({
      status: 200,
      body: { target: { status: "clean" }, check: { removed: ["spamcop"] } },
    });
    await app.advance(1_000);
    await receiver.untilReceived(2);
    expect(receiver.received.map(({ event }) => [event.type, event.data.listing])).toEqual([
      ["blacklist.listed", "spamcop"],
      ["blacklist.delisted", "spamcop"],
    ]);
    await until(() => app.service.notifications.dispatcher.running === 0);
  });

  test("a URL whose receiver responded 410 is not a configured webhook until it is set again", async () => {
    const app = start({ zone: ZONE, ...ALLOWED });
    const key = app.newKey({ mode: "live" });
    const receiver = newReceiver();
    receiver.answer(410);
    app.service.notifications.dispatcher.start();
    const webhook_url = receiver.url;
    const { id } = await app.request("POST", PATH, { key, body: { target: "8.8.8.8", webhook_url } });
    const isConfigured = async () => (await app.request("GET", `${PATH}/${id}`, { key })).body.webhook_configured;
    expect(await isConfigured()).toBe(true);
    await withTime(app, app.request("POST", `${PATH}/${id}/check?timeout=60`, { key }));
    await app.advance(1_000);
    await receiver.untilReceived(1);
    await until(() => app.service.notifications.dispatcher.running === 0);
    expect(await isConfigured()).toBe(false);
    await app.request("PATCH", `${PATH}/${id}`, { key, body: { webhook_url } });
    expect(await isConfigured()).toBe(true);
  });

  test.each([
    ["all others failed", "servfail", "unknown"],
    ["another says no", null, "clean"],
  ] as const)("muting the only list that lists a target, when %s, makes it %p → %s", async (_, other, status) => {
    const lists = blocklists.lists.filter(({ id }) => id === "spamcop" || id === "spamhaus-zen");
    const path = join(folder, `mute-${status}.json`);
    await Bun.write(path, JSON.stringify({ ...blocklists, lists }));
    const zone = {
      ...ZONE,
      "2.0.0.127.zen.spamhaus.org": { A: ["127.0.0.2", "127.0.0.4", "127.0.0.10"] },
      ...(other === null ? {} : { "8.8.8.8.zen.spamhaus.org": other }),
    };
    const app = start({ zone, settings: { ...ALLOWED.settings, BLOCKLIST_CATALOGUE: path } });
    const key = app.newKey({ mode: "live" });
    const webhook_url = "https://example.com/hook";
    const { id } = await app.request("POST", PATH, { key, body: { target: "8.8.8.8", webhook_url } });
    const checked = await withTime(app, app.request("POST", `${PATH}/${id}/check?timeout=60`, { key }));
    expect(checked.body).toMatchObject({ target: { listed_on: ["spamcop"] } });
    const muted = await app.request("PATCH", `${PATH}/${id}`, { key, body: { muted_lists: ["spamcop"] } });
    expect(muted.body).toMatchObject({ status, listed_on: [] });
    const last = app.db.sqlite
      .query<{ data: string }, []>("SELECT data FROM outbox WHERE type = 'blacklist.delisted'")
      .get();
    expect(JSON.parse(last?.data ?? "")).toMatchObject({ reason: "list_muted", status, previous_status: "listed" });
  });

  test("a check that takes longer than the timeout returns 202 and continues", async () => {
    const lists = blocklists.lists.filter(({ id }) => id === "spamcop");
    const path = join(folder, "slow.json");
    const budget = { queries_per_day: null, spacing_ms: 300 };
    await Bun.write(path, JSON.stringify({ ...blocklists, lists: lists.map((list) => ({ ...list, budget })) }));
    const app = start({ zone: ZONE, settings: { BLOCKLIST_CATALOGUE: path } });
    const key = app.newKey({ mode: "live" });
    const { id } = await app.request("POST", PATH, { key, body: { target: "8.8.8.8" } });
    // The list wants a pause between two queries, and several are needed.
    const asked = [1, 2].map(() => app.request("POST", `${PATH}/${id}/check?timeout=1`, { key }));
    const answers = await withTime(app, Promise.all(asked));
    expect(answers.map(({ status }) => status)).toEqual([202, 202]);
    const [checkId] = answers.map(({ body }) => (body.check as { id: string }).id);
    for (const { body, headers } of answers) {
      expect(headers.get("location")).toBe(`${PATH}/${id}/checks`);
      expect(body).toMatchObject({
        target: { status: "pending" },
        check: { id: checkId, status: "running", finished_at: null },
      });
    }
    await withTime(
      app,
      until(() => app.service.blocklist.store.findTarget(id)?.status === "listed"),
    );
    const { body } = await app.request("GET", `${PATH}/${id}/checks`, { key });
    expect(body.checks).toMatchObject([{ id: checkId, status: "listed", trigger: "manual" }]);
  });
});

test("every response matches its documented schema exactly", async () => {
  const { call } = startWithKey();
  const { id, ...added } = await call("POST", PATH, { target: "listed.example", label: "one" });
  const strict = (schema: z.ZodObject) => z.strictObject(schema.shape);
  const fits = (schema: z.ZodObject, body: unknown) => expect(strict(schema).safeParse(body).error).toBeUndefined();
  fits(targetSchema, added.body);
  fits(checkedSchema, (await call("POST", `${PATH}/${id}/check`)).body);
  const [check] = (await call("GET", `${PATH}/${id}/checks`)).body.checks as unknown[];
  fits(targetCheckSchema, check);
  fits(checksSchema, (await call("GET", `${PATH}/${id}/checks`)).body);
  fits(targetsSchema, (await call("GET", PATH)).body);
  fits(listsSchema, (await call("GET", "/v1/blacklist/lists")).body);
});

test("the catalogue has meanings, delisting pages and health", async () => {
  const { app, call } = startWithKey({ settings: { BLOCKLIST_KEYS: "spamhaus-zen=secretkey" } });
  const { body, text } = await call("GET", "/v1/blacklist/lists");
  const lists = body.lists as Array<Record<string, unknown>>;
  expect(lists.length).toBeGreaterThan(20);
  expect(lists.find(({ id }) => id === "spamhaus-zen")).toMatchObject({
    enabled: true,
    severity: "critical",
    zone: "{key}.zen.dq.spamhaus.net",
    listings: expect.arrayContaining([expect.objectContaining({ id: "spamhaus-sbl", severity: "critical" })]),
    health: [{ kind: "ipv4", state: "unknown", tested_at: null }, { kind: "ipv6" }],
  });
  expect(text).not.toContain("secretkey");
  expect(lists[0]).toMatchObject({ id: "test-list", enabled: true });
  const live = await app.request("GET", "/v1/blacklist/lists", { key: app.newKey({ mode: "live" }) });
  expect(live.text).not.toContain("test-list");
});

describe("recipients of alert mail", () => {
  const MAIL = {
    settings: { NOTIFY_SMTP_URL: "smtp://user:hunter2@127.0.0.1", NOTIFY_FROM: "postwarden@example.com" },
  };

  test("are kept in their normal form, each once", async () => {
    const { call } = startWithKey(MAIL);
    const { id, body } = await call("POST", PATH, {
      target: "a.example",
      recipients: ["Ops@Example.com", "ops@example.com"],
    });
    expect(body.recipients).toEqual(["ops@example.com"]);
    expect((await call("PATCH", `${PATH}/${id}`, { recipients: [] })).body.recipients).toEqual([]);
    expect((await call("PATCH", `${PATH}/${id}`, { recipients: ["nobody"] })).status).toBe(400);
  });

  test("are refused when the service cannot send mail", async () => {
    const { call } = startWithKey();
    const answer = await call("POST", PATH, { target: "a.example", recipients: ["ops@example.com"] });
    expect(answer).toMatchObject({ status: 400, body: { issues: [{ path: "recipients" }] } });
  });
});
