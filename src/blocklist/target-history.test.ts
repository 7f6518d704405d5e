import { describe, expect, test } from "bun:test";
import { createApps } from "../testing/app.ts";

const start = createApps();
const PATH = "/v1/blacklist/targets";
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** A target of a test key, checked once. */
const startListed = async (target = "listed.example", more: object = {}) => {
  const app = start();
  const key = app.newKey({ name: "ops" });
  const { id } = await app.request("POST", PATH, { key, body: { target, ...more } });
  const { blocklist } = app.service;
  const pass = async (ms: number) => {
    await app.advance(ms);
    await blocklist.mutes.endDue();
    await blocklist.scheduler.checkDue();
  };
  await pass(2 * MINUTE_MS);
  const owner = { accountId: app.accountId(), mode: "test" } as const;
  const row = () => blocklist.targets.find(owner, id);
  return { app, key, id, owner, blocklist, pass, row, changes: () => blocklist.history.changes(row(), 10) };
};

const WEBHOOK = "https://example.com/hook";
const BY = { by: "ops@example.com", reason: "known", untilMs: null };

describe("the history of a target", () => {
  test("has the state of each list, and pages of checks with filters", async () => {
    const { blocklist, pass, row, id } = await startListed();
    await pass(2 * HOUR_MS);
    expect(blocklist.history.timelines(row())).toMatchObject([
      { list: "test-list", now: "listed", spans: [{ state: "listed", toMs: Date.parse("2026-01-01T02:02:00Z") }] },
    ]);
    const page = (filter: object, at = 1) => blocklist.history.page(id, filter, { page: at, perPage: 1 });
    expect(page({})).toMatchObject({ total: 2, checks: [{ status: "listed", added: [] }] });
    expect(page({}, 2)).toMatchObject({ total: 2, checks: [{ added: ["test-list"], mailed_to: 0 }] });
    expect(page({ isChange: true })).toMatchObject({ total: 1, checks: [{ added: ["test-list"] }] });
    expect(page({ trigger: "manual" })).toEqual({ total: 0, checks: [] });
    expect(page({ status: "listed", trigger: "scheduled" })).toMatchObject({ total: 2 });
  });

  test("says which lists had no entry", async () => {
    const { blocklist, id } = await startListed("clean.example");
    expect(blocklist.history.page(id, {}, { page: 1, perPage: 1 }).checks[0]?.not_listed).toEqual(["test-list"]);
  });
});

describe("changes", () => {
  test("name the listing, and how they were sent", async () => {
    const { app, changes, id } = await startListed("listed.example", { webhook_url: WEBHOOK });
    const added = { change: "listed", listing: "test-list", name: "The test list", address: null, mailedTo: 0 };
    expect(changes()).toMatchObject([{ ...added, webhook: "waiting", sinceMs: null, reason: null }]);
    app.db.sqlite.run("UPDATE outbox SET delivered_at_ms = created_at_ms + 5");
    expect(changes()).toMatchObject([{ webhook: "none" }]);
    const deliver = (status: string) => {
      app.db.sqlite.run("DELETE FROM webhook_deliveries");
      app.db.sqlite.run(
        `INSERT INTO webhook_deliveries (id, event_id, account_id, mode, url, subject, type, body, status, created_at_ms)
          SELECT 'd', id, account_id, mode, '${WEBHOOK}', subject, type, '', '${status}', 1 FROM outbox`,
      );
    };
    for (const [status, webhook] of [
      ["delivered", "delivered"],
      ["pending", "waiting"],
      ["rejected", "failed"],
    ] as const) {
      deliver(status);
      expect(changes()).toMatchObject([{ webhook }]);
    }
    app.db.sqlite.run("DELETE FROM outbox");
    expect(changes()).toMatchObject([{ ...added, webhook: null }]);
    expect(id).not.toBe("");
  });

  test("below the threshold are in the feed only", async () => {
    const { changes } = await startListed("listed.example", { webhook_url: WEBHOOK, alert_severity_min: "critical" });
    expect(changes()).toMatchObject([{ webhook: "feed_only" }]);
  });

  test("of a range name the address", async () => {
    const { changes } = await startListed("1.2.3.4-1.2.3.5");
    expect(changes()).toMatchObject([{ change: "listed", address: "1.2.3.4", webhook: "waiting" }]);
  });
});

describe("a mute", () => {
  test("removes the listing at once, is a change with its reason, and can be ended", async () => {
    const { app, blocklist, owner, id, row, changes, pass } = await startListed();
    await app.advance(MINUTE_MS);
    await blocklist.mutes.mute(owner, id, "test-list", BY);
    expect(row()).toMatchObject({ status: "unknown", listedOn: [], mutedLists: ["test-list"] });
    const atMs = Date.parse("2026-01-01T00:03:00Z");
    expect(blocklist.mutes.of(row())).toEqual([{ muted: "test-list", order: { ...BY, atMs } }]);
    const removed = { change: "delisted", reason: "list_muted", atMs, sinceMs: atMs - MINUTE_MS };
    expect(changes()).toMatchObject([removed, { change: "listed", reason: null }]);
    await blocklist.mutes.unmute(owner, id, "test-list");
    expect(blocklist.mutes.of(row())).toEqual([]);
    await pass(2 * HOUR_MS);
    expect(row().listedOn).toEqual(["test-list"]);
  });

  test("ends at its time, and the target is checked again", async () => {
    const { blocklist, owner, id, row, pass, app } = await startListed();
    const untilMs = app.clock.nowMs() + HOUR_MS;
    await blocklist.mutes.mute(owner, id, "test-list", { ...BY, untilMs });
    await pass(HOUR_MS - MINUTE_MS);
    expect(row().mutedLists).toEqual(["test-list"]);
    await pass(MINUTE_MS);
    expect(row()).toMatchObject({ mutedLists: [], listedOn: ["test-list"] });
  });

  test("of a range applies to its addresses", async () => {
    const { blocklist, owner, id, row, pass, app } = await startListed("1.2.3.4-1.2.3.5");
    await blocklist.mutes.mute(owner, id, "test-list", { ...BY, untilMs: app.clock.nowMs() + HOUR_MS });
    expect(row().listedOn).toEqual([]);
    await pass(HOUR_MS);
    expect(row().listedOn).toEqual(["test-list"]);
  });

  test("that was ended by the API leaves no reason and end for the next one", async () => {
    const { app, key, blocklist, owner, id, row, pass } = await startListed();
    const setMuted = (muted_lists: readonly string[]) =>
      app.request("PATCH", `${PATH}/${id}`, { key, body: { muted_lists } });
    await blocklist.mutes.mute(owner, id, "test-list", { ...BY, untilMs: app.clock.nowMs() + HOUR_MS });
    await setMuted([]);
    await setMuted(["test-list"]);
    await pass(2 * HOUR_MS);
    expect(blocklist.mutes.of(row())).toEqual([{ muted: "test-list", order: null }]);
  });

  test("of an unknown list, in the past, or of another account is refused and leaves nothing", async () => {
    const { app, blocklist, owner, id, row } = await startListed();
    const issue = (path: string) => ({ code: "Invalid request body", details: { issues: [{ path }] } });
    expect(blocklist.mutes.mute(owner, id, "spamkop", BY)).rejects.toMatchObject(issue("muted_lists.0"));
    const past = { ...BY, untilMs: app.clock.nowMs() };
    expect(blocklist.mutes.mute(owner, id, "test-list", past)).rejects.toMatchObject(issue("until"));
    const other = { accountId: app.newAccount("other", "scale"), mode: "test" } as const;
    expect(blocklist.mutes.mute(other, id, "test-list", BY)).rejects.toMatchObject({ code: "not_found" });
    expect(blocklist.mutes.unmute(other, id, "test-list")).rejects.toMatchObject({ code: "not_found" });
    await app.advance(1);
    expect(row().mutedLists).toEqual([]);
    expect(app.db.sqlite.query("SELECT count(*) n FROM blocklist_mutes").get()).toEqual({ n: 0 });
  });

  test("is removed with its target", async () => {
    const { app, blocklist, owner, id } = await startListed();
    await blocklist.mutes.mute(owner, id, "test-list", BY);
    await blocklist.targets.remove(owner, id);
    expect(app.db.sqlite.query("SELECT count(*) n FROM blocklist_mutes").get()).toEqual({ n: 0 });
  });
});

describe("actions on many targets", () => {
  test("check soon, pause, resume and remove; nothing for somebody else's target", async () => {
    const { app, blocklist, owner, id, row } = await startListed();
    const { actions } = blocklist;
    await actions.checkSoon(owner, [id]);
    expect(row().nextCheckAtMs).toBe(app.clock.nowMs());
    await actions.setMonitoring(owner, [id], false);
    expect(row().monitoringEnabled).toBe(false);
    await actions.setMonitoring(owner, [id], true);
    expect(row().monitoringEnabled).toBe(true);
    const other = { accountId: app.newAccount("other", "scale"), mode: "test" } as const;
    for (const act of [
      () => actions.checkSoon(other, [id]),
      () => actions.setMonitoring(other, [id], false),
      () => actions.remove(other, [id]),
      () => actions.remove(owner, [id, "018f0000-0000-7000-8000-000000000000"]),
    ])
      expect(act()).rejects.toMatchObject({ code: "not_found" });
    expect(row().monitoringEnabled).toBe(true);
    await actions.remove(owner, [id]);
    expect(() => row()).toThrow();
  });

  test("a range is checked soon with its addresses", async () => {
    const { app, blocklist, owner, id } = await startListed("1.2.3.4-1.2.3.5");
    await blocklist.actions.checkSoon(owner, [id]);
    const due = app.db.sqlite.query<{ n: number }, [number]>(
      "SELECT count(*) n FROM blocklist_targets WHERE next_check_at_ms <= ?",
    );
    expect(due.get(app.clock.nowMs())?.n).toBe(3);
  });
});
