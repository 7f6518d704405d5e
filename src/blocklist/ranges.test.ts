import { describe, expect, test } from "bun:test";
import { z } from "zod";
import { createApps } from "../testing/app.ts";
import { checksSchema, membersSchema, targetSchema, targetsSchema } from "./schemas.ts";

const start = createApps();
const PATH = "/v1/blacklist/targets";
/** 1.2.3.4, which test keys find listed, is in it. */
const RANGE = "1.2.3.0/29";
const HOUR_MS = 60 * 60_000;

const startWithRange = async (more = {}) => {
  const app = start();
  const key = app.newKey();
  const call = (method: string, path: string, body?: unknown) =>
    app.request(method, path, { key, ...(body === undefined ? {} : { body }) });
  const added = await call("POST", PATH, { target: RANGE, label: "out", ...more });
  const path = `${PATH}/${added.id}`;
  const members = async (query = "") =>
    membersSchema.parse((await call("GET", `${path}/members${query}`)).body).members;
  const range = async () => targetSchema.parse((await call("GET", path)).body);
  const pass = async () => {
    await app.advance(HOUR_MS / 2);
    await app.service.blocklist.scheduler.checkDue();
  };
  return { app, key, call, added, path, members, range, pass };
};

describe("a range", () => {
  test("is one target with its addresses, also in another spelling", async () => {
    const { call, added, members } = await startWithRange();
    expect(added).toMatchObject({
      status: 201,
      body: { kind: "ipv4", value: RANGE, members: 8, range_id: null, status: "pending", label: "out" },
    });
    expect((await members()).map(({ value }) => value).toSorted()).toEqual(
      [0, 1, 2, 3, 4, 5, 6, 7].map((n) => `1.2.3.${n}`),
    );
    expect((await members()).every(({ range_id }) => range_id === added.id)).toBe(true);
    const again = await call("POST", PATH, { target: "1.2.3.0-1.2.3.7" });
    expect([again.status, again.id]).toEqual([200, added.id]);
    expect(targetsSchema.parse((await call("GET", PATH)).body).targets).toHaveLength(1);
    expect(targetsSchema.parse((await call("GET", `${PATH}?target=1.2.3.0-1.2.3.7`)).body).targets).toHaveLength(1);
    // An address may be watched by itself as well.
    expect((await call("POST", PATH, { target: "1.2.3.4" })).status).toBe(201);
  });

  test("has the worst status of its addresses, and its history names the address", async () => {
    const { app, call, path, added, members, range, pass } = await startWithRange();
    await pass();
    expect(await range()).toMatchObject({
      ...{ status: "listed", severity: "high", listed_on: ["test-list"], listings_count: 1 },
      listings: [{ id: "test-list", address: "1.2.3.4" }],
    });
    const { listings, seen_at: seenAt } = await range();
    expect(seenAt).toBe(listings[0]?.last_seen_at ?? "no listing");
    expect((await members("?status=listed")).map(({ value }) => value)).toEqual(["1.2.3.4"]);
    expect((await members("?severity=high&list=test-list")).map(({ value }) => value)).toEqual(["1.2.3.4"]);
    const { checks } = checksSchema.parse((await call("GET", `${path}/checks`)).body);
    expect(checks).toMatchObject([{ address: "1.2.3.4", added: ["test-list"] }]);
    const events = app.db.sqlite.query<{ subject: string; data: string }, []>("SELECT subject, data FROM outbox").all();
    expect(events.map(({ subject }) => subject)).toEqual([`target:${added.id}`]);
    expect(JSON.parse(events[0]?.data ?? "")).toMatchObject({ target_id: added.id, target: "1.2.3.4", range: RANGE });
  });

  test("is checked on demand, address by address", async () => {
    const { call, path } = await startWithRange();
    const { status, body } = await call("POST", `${path}/check`);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      target: { status: "listed" },
      check: {
        trigger: "manual",
        status: "listed",
        counts: { listed: 1, not_listed: 7 },
        results: [{ address: "1.2.3.4" }],
      },
    });
    const { checks } = checksSchema.parse((await call("GET", `${path}/checks`)).body);
    expect(checks).toHaveLength(2);
  });

  test("is changed, muted, paused and removed as a whole, never a single address", async () => {
    const { app, call, path, members, range, pass } = await startWithRange();
    await pass();
    await call("PATCH", path, {
      label: "new",
      alert_severity_min: "high",
      muted_lists: ["test-list"],
      monitoring_enabled: false,
    });
    expect(await range()).toMatchObject({
      status: "unknown",
      severity: null,
      listed_on: [],
      listings: [],
      label: "new",
    });
    for (const member of await members()) {
      expect(member).toMatchObject({
        label: "new",
        alert_severity_min: "high",
        muted_lists: ["test-list"],
        monitoring_enabled: false,
      });
    }
    expect(app.service.blocklist.store.dueTargets(app.clock.nowMs() + 24 * HOUR_MS, 99)).toEqual([]);
    const [{ id } = { id: "" }] = await members();
    expect((await call("PATCH", `${PATH}/${id}`, { label: "x" })).status).toBe(409);
    expect((await call("DELETE", `${PATH}/${id}`)).status).toBe(409);
    expect((await call("DELETE", path)).status).toBe(204);
    const left = z
      .array(z.object({ n: z.number() }))
      .parse(
        ["targets", "checks", "listings"].map((name) =>
          app.db.sqlite.query(`SELECT count(*) n FROM blocklist_${name}`).get(),
        ),
      );
    expect(left).toEqual([{ n: 0 }, { n: 0 }, { n: 0 }]);
  });

  test("has notes for a listing of all its addresses", async () => {
    const { call, path, pass } = await startWithRange();
    await pass();
    const noted = await call("PATCH", `${path}/listings/test-list`, { delisting_requested: true });
    expect(noted).toMatchObject({
      status: 200,
      body: { listings: [{ address: "1.2.3.4", delisting_requested: { by: expect.any(String) } }] },
    });
  });

  test("spreads its first checks, and is never due itself", async () => {
    const { app } = await startWithRange();
    const due = app.service.blocklist.store.dueTargets(app.clock.nowMs() + HOUR_MS, 99);
    expect(due.map(({ nextCheckAtMs }) => nextCheckAtMs - (due[0]?.nextCheckAtMs ?? 0))).toEqual(
      Array.from({ length: 8 }, (_, at) => at * 1000),
    );
    expect(due.every(({ members }) => members === null)).toBe(true);
  });

  test("belongs to its account and mode", async () => {
    const { app, path } = await startWithRange();
    for (const key of [app.newKey({ mode: "live" }), app.newKey({ account: "other" })]) {
      expect((await app.request("GET", `${path}/members`, { key })).status).toBe(404);
    }
    expect((await app.request("GET", `${path}/members`, { key: app.newKey({ scopes: ["bulk:read"] }) })).status).toBe(
      403,
    );
  });

  test.each([["10.0.0.0/24"], ["1.2.3.4/29"], ["8.0.0.0/21"], ["2001:db8::/64"]])("%s is refused", async (target) => {
    const app = start();
    const answer = await app.request("POST", PATH, { key: app.newKey(), body: { target } });
    expect(answer).toMatchObject({ status: 400, body: { issues: [{ path: "target" }] } });
  });
});
