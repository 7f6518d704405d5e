import { describe, expect, test } from "bun:test";
import type { z } from "zod";
import { createApps } from "../testing/app.ts";
import { batchResultSchema } from "./batch.ts";
import { overviewSchema } from "./overview.ts";
import { targetSchema, targetsSchema } from "./schemas.ts";

const start = createApps();
const PATH = "/v1/blacklist/targets";
const OVERVIEW = "/v1/blacklist/overview";
const MINUTE_MS = 60_000;

type Target = z.output<typeof targetSchema>;

const startWithKey = (options: Parameters<typeof start>[0] = {}) => {
  const app = start(options);
  const key = app.newKey({ name: "ops" });
  const call = (method: string, path: string, body?: unknown) =>
    app.request(method, path, { key, ...(body === undefined ? {} : { body }) });
  const add = async (target: string, more = {}): Promise<Target> =>
    targetSchema.parse((await call("POST", PATH, { target, ...more })).body);
  const targets = async (query: string): Promise<string[]> =>
    targetsSchema.parse((await call("GET", `${PATH}${query}`)).body).targets.map(({ value }) => value);
  return { app, key, call, add, targets };
};

describe("the overview", () => {
  test("counts targets and listings, and has the most severe targets and the changes", async () => {
    const { app, call, add } = startWithKey();
    const { id } = await add("listed.example", { label: "ours" });
    await add("clean.example");
    await add("refused.example");
    await app.service.blocklist.scheduler.checkDue();
    await app.advance(2 * MINUTE_MS);
    await app.service.blocklist.scheduler.checkDue();
    const { status, body } = await call("GET", OVERVIEW);
    expect(status).toBe(200);
    expect(overviewSchema.parse(body)).toMatchObject({
      since: "2025-12-31T00:02:00.000Z",
      targets: {
        ...{ total: 3, addresses_in_ranges: 0, ranges: 0, listed: 1, paused: 0 },
        by_status: { pending: 0, clean: 1, listed: 1, unknown: 1 },
        by_kind: { ipv4: 0, ipv6: 0, domain: 3 },
      },
      listings: { total: 1, acknowledged: 0, by_severity: { critical: 0, high: 1, medium: 0, low: 0, info: 0 } },
      worst: [{ id, value: "listed.example", severity: "high", listings: [{ id: "test-list" }] }],
      changes: {
        listed: 1,
        delisted: 0,
        is_complete: true,
        recent: [{ change: "listed", target_id: id, label: "ours" }],
      },
      lists_in_trouble: [],
    });
    const later = await call("GET", `${OVERVIEW}?since=2026-01-02T00:00:00Z`);
    expect(later.body).toMatchObject({ changes: { listed: 0, recent: [] } });
    expect((await call("GET", `${OVERVIEW}?since=yesterday`)).status).toBe(400);
  });

  test("is for the account and mode, and needs the scope", async () => {
    const { app, add } = startWithKey();
    await add("listed.example");
    await app.advance(2 * MINUTE_MS);
    await app.service.blocklist.scheduler.checkDue();
    for (const key of [app.newKey({ mode: "live" }), app.newKey({ account: "other" })]) {
      const { body } = await app.request("GET", OVERVIEW, { key });
      expect(body).toMatchObject({ targets: { total: 0 }, listings: { total: 0 }, worst: [], changes: { listed: 0 } });
    }
    const key = app.newKey({ scopes: ["webhooks:read"] });
    expect((await app.request("GET", OVERVIEW, { key })).status).toBe(403);
  });
});

describe("filters", () => {
  test("find by severity, list, label and known listings; pages by severity", async () => {
    const { app, call, add, targets } = startWithKey();
    const listed = await add("listed.example", { label: "a" });
    await add("clean.example", { label: "b" });
    await add("1.2.3.4");
    await app.advance(2 * MINUTE_MS);
    await app.service.blocklist.scheduler.checkDue();
    expect(await targets("?severity=medium")).toEqual(["1.2.3.4", "listed.example"]);
    expect(await targets("?severity=critical")).toEqual([]);
    expect(await targets("?list=test-list&label=a")).toEqual(["listed.example"]);
    expect(await targets("?label=b")).toEqual(["clean.example"]);
    expect(await targets("?sort=severity")).toEqual(["1.2.3.4", "listed.example", "clean.example"]);
    app.db.sqlite.run("UPDATE blocklist_targets SET status = 'unknown' WHERE id = ?", [listed.id]);
    expect(await targets("?status=listed")).toEqual(["1.2.3.4", "listed.example"]);
    const pages: string[] = [];
    for (let cursor: string | null = ""; cursor !== null;) {
      const page = targetsSchema.parse(
        (await call("GET", `${PATH}?sort=severity&limit=1${cursor === "" ? "" : `&cursor=${cursor}`}`)).body,
      );
      pages.push(...page.targets.map(({ value }) => value));
      cursor = page.next_cursor;
    }
    expect(pages).toEqual(["1.2.3.4", "listed.example", "clean.example"]);
    const plain = targetsSchema.parse((await call("GET", `${PATH}?limit=1`)).body);
    expect((await call("GET", `${PATH}?sort=severity&cursor=${plain.next_cursor}`)).body).toEqual({
      error: "Invalid cursor",
      message: "Send the `next_cursor` of the last page as `cursor`, with the other parameters unchanged.",
    });
    const unknown = await call("GET", `${PATH}?list=test-lst`);
    expect(unknown).toMatchObject({ status: 400, body: { issues: [{ path: "list" }] } });
    expect(unknown.text).toContain("test-list");
  });
});

describe("a batch", () => {
  test("adds valid rows and returns one result per row", async () => {
    const { call, add, targets } = startWithKey();
    await add("clean.example");
    const { status, body } = await call("POST", `${PATH}/batch`, {
      label: "all",
      targets: [
        "listed.example",
        { target: "Clean.example" },
        "10.0.0.1",
        7,
        { target: "8.8.8.8", label: "dns" },
        { label: "x" },
      ],
    });
    expect(status).toBe(200);
    expect(batchResultSchema.parse(body)).toMatchObject({
      ...{ created: 2, exists: 1, invalid: 3 },
      results: [
        { row: 1, given: "listed.example", status: "created", value: "listed.example" },
        { row: 2, given: "Clean.example", status: "exists", value: "clean.example" },
        { row: 3, status: "invalid", id: null, problem: expect.stringContaining("not a public address") },
        { row: 4, given: "7", status: "invalid" },
        { row: 5, status: "created", value: "8.8.8.8" },
        { row: 6, status: "invalid", problem: expect.stringContaining("equired") },
      ],
    });
    expect(await targets("?label=all")).toEqual(["listed.example"]);
  });

  test("is read from CSV, with a header or without", async () => {
    const { app, key, targets } = startWithKey();
    const send = (body: string, query = "") =>
      app.request("POST", `${PATH}/batch${query}`, {
        key,
        body,
        headers: { "content-type": "text/csv; charset=utf-8" },
      });
    const plain = await send('8.8.8.8,"dns, google"\r\nlisted.example\r\n', "?label=rest");
    expect(plain.body).toMatchObject({ created: 2, invalid: 0 });
    expect(await targets("?label=rest")).toEqual(["listed.example"]);
    expect(await targets("?label=dns,%20google")).toEqual(["8.8.8.8"]);
    const named = await send("label,target,alert_severity_min\nours,clean.example,high\n,8.8.4.4,nonsense\n");
    expect(named.body).toMatchObject({ created: 1, invalid: 1, results: [{ row: 1 }, { row: 2, status: "invalid" }] });
    expect((await send("target,nme\nx,y\n")).status).toBe(400);
    expect((await send('a"b,"c\n')).status).toBe(400);
    expect((await send("")).status).toBe(400);
    expect((await send(`a.example,${"x".repeat(9_000)}\n`)).status).toBe(400);
    expect((await send("a.example\n".repeat(10_001))).status).toBe(400);
    expect((await send(",".repeat(9_000))).status).toBe(400);
    expect((await send(`${",".repeat(20)}\n`)).status).toBe(400);
  });

  test("has 1 to 10,000 targets", async () => {
    const { call } = startWithKey();
    expect((await call("POST", `${PATH}/batch`, { targets: [] })).status).toBe(400);
    const many = Array.from({ length: 10_001 }, (_, n) => `d${n}.example`);
    expect((await call("POST", `${PATH}/batch`, { targets: many })).status).toBe(400);
    // Most of them are invalid, because each that is created takes its time.
    const most = [...many.slice(0, 300), ...Array.from({ length: 9_700 }, (_, n) => `-${n}`)];
    expect((await call("POST", `${PATH}/batch`, { targets: most })).body).toMatchObject({
      created: 300,
      exists: 0,
      invalid: 9_700,
    });
  });
});

describe("notes about a listing", () => {
  const listed = async () => {
    const fixture = startWithKey();
    const { id } = await fixture.add("listed.example");
    await fixture.app.advance(2 * MINUTE_MS);
    await fixture.app.service.blocklist.scheduler.checkDue();
    return { ...fixture, id, path: `${PATH}/${id}/listings/test-list` };
  };

  test("have key and time, can be changed in part and removed", async () => {
    const { call, path } = await listed();
    const first = await call("PATCH", path, { acknowledged: true, delisting_requested: true, note: "ticket 1" });
    const mark = { at: "2026-01-01T00:02:00.000Z", by: "ops" };
    expect(first).toMatchObject({
      status: 200,
      body: { listings: [{ acknowledged: mark, delisting_requested: mark, note: { text: "ticket 1", ...mark } }] },
    });
    const second = await call("PATCH", path, { acknowledged: false, note: null });
    expect(second.body).toMatchObject({ listings: [{ acknowledged: null, delisting_requested: mark, note: null }] });
    expect((await call("PATCH", path, { acknowledged: "yes" })).status).toBe(400);
    expect((await call("PATCH", path, {})).body).toEqual(second.body);
  });

  test("move a target behind others in the overview, and are removed with the listing", async () => {
    const { app, call, path, id } = await listed();
    const other = await call("POST", PATH, { target: "1.2.3.4" });
    await app.advance(2 * MINUTE_MS);
    await app.service.blocklist.scheduler.checkDue();
    await call("PATCH", `${PATH}/${other.id}/listings/test-list`, { acknowledged: true });
    expect((await call("GET", OVERVIEW)).body).toMatchObject({
      listings: { acknowledged: 1 },
      worst: [{ id }, { id: other.id }],
    });
    await call("PATCH", path, { acknowledged: true });
    await call("PATCH", `${PATH}/${id}`, { muted_lists: ["test-list"] });
    expect((await call("PATCH", path, { acknowledged: true })).status).toBe(404);
    await call("PATCH", `${PATH}/${id}`, { muted_lists: [] });
    expect((await call("POST", `${PATH}/${id}/check`)).body).toMatchObject({ target: { severity: "high" } });
    expect((await call("GET", `${PATH}/${id}`)).body).toMatchObject({ listings: [{ acknowledged: null }] });
  });

  test("are for keys of the account and mode with the scope", async () => {
    const { app, path } = await listed();
    const body = { acknowledged: true };
    for (const key of [app.newKey({ mode: "live" }), app.newKey({ account: "other" })]) {
      expect((await app.request("PATCH", path, { key, body })).status).toBe(404);
    }
    const reader = app.newKey({ scopes: ["blacklist:read"] });
    expect((await app.request("PATCH", path, { key: reader, body })).status).toBe(403);
  });
});
