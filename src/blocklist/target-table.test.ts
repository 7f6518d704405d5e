import { describe, expect, test } from "bun:test";
import { createBlocklistFixtures } from "../testing/blocklist-fixture.ts";
import type { TargetRow } from "./store.ts";
import { TargetTable, type TargetQuery, TargetTableStore } from "./target-table.ts";

const createFixture = createBlocklistFixtures();
const OWNER = { accountId: "account", mode: "live" } as const;

const startTable = () => {
  const fixture = createFixture();
  const store = new TargetTableStore(fixture.db);
  const table = new TargetTable({ db: fixture.db, store, targets: fixture.store });
  const add = (value: string, more: Partial<TargetRow> = {}) => fixture.add(value, { status: "clean", ...more });
  const values = async (query: Partial<TargetQuery> = {}) =>
    (await table.page(OWNER, { page: 1, perPage: 100, ...query })).targets.map(({ value }) => value);
  return { fixture, store, table, add, values };
};

/** One of each state, and others that must never be seen. */
const startWithAll = () => {
  const started = startTable();
  const { add } = started;
  add("clean.example", { kind: "domain", label: "web 100%" });
  add("9.9.9.10", { status: "pending", label: "out 10" });
  add("9.9.9.9", { status: "unknown", lastCheckedAtMs: 5, label: "out 9" });
  add("8.8.8.8", { status: "listed", severityRank: 2, listedOn: ["spamcop"], nextCheckAtMs: 1, lastCheckedAtMs: 9 });
  // The list of this target does not respond any more: the listing stands.
  add("8.8.4.4", { status: "unknown", severityRank: 5, listedOn: ["spamhaus-sbl", "spamcop"] });
  add("1.1.1.1", { status: "listed", severityRank: 4, listedOn: ["spamcop"], monitoringEnabled: false });
  add("8.8.0.0/30", { members: 4 });
  add("8.8.0.1", { rangeId: "range", status: "listed", severityRank: 5 });
  add("7.7.7.7", { accountId: "other", status: "listed", severityRank: 5 });
  add("7.7.7.8", { mode: "test", status: "listed", severityRank: 5 });
  return started;
};

describe("the table of targets", () => {
  test("counts each target in one state, of which paused wins, and the worst severity of what is monitored", () => {
    const { table } = startWithAll();
    expect(table.figures(OWNER)).toEqual({
      ...{ total: 7, listed: 2, unknown: 1, pending: 1, clean: 2, paused: 1 },
      worst: "critical",
    });
    expect(table.figures({ accountId: "nobody", mode: "live" })).toMatchObject({ total: 0, worst: null });
  });

  test("begins with the worst and ends with what is paused", async () => {
    const { values } = startWithAll();
    expect(await values()).toEqual([
      "8.8.4.4",
      "8.8.8.8",
      "9.9.9.9",
      "9.9.9.10",
      "8.8.0.0/30",
      "clean.example",
      "1.1.1.1",
    ]);
  });

  test.each<[Partial<TargetQuery>, string[]]>([
    [{ state: "listed" }, ["8.8.4.4", "8.8.8.8"]],
    [{ state: "unknown" }, ["9.9.9.9"]],
    [{ state: "pending" }, ["9.9.9.10"]],
    [{ state: "clean" }, ["8.8.0.0/30", "clean.example"]],
    [{ state: "paused" }, ["1.1.1.1"]],
    [{ severity: "high" }, ["1.1.1.1"]],
    [{ severity: "low", state: "listed" }, ["8.8.8.8"]],
    [{ severity: "high", state: "listed" }, []],
    [{ text: "8.8" }, ["8.8.4.4", "8.8.8.8", "8.8.0.0/30"]],
    [{ text: "OUT" }, ["9.9.9.9", "9.9.9.10"]],
    [{ text: "0%" }, ["clean.example"]],
    [{ text: "_" }, []],
    [{ label: "out 9" }, ["9.9.9.9"]],
    [{ listings: ["spamhaus-sbl", "none"] }, ["8.8.4.4"]],
    [{ listings: ["spamcop"], state: "paused" }, ["1.1.1.1"]],
    [{ order: "name" }, ["1.1.1.1", "8.8.0.0/30", "8.8.4.4", "8.8.8.8", "9.9.9.9", "9.9.9.10", "clean.example"]],
    [{ order: "label", text: ".", state: "pending" }, ["9.9.9.10"]],
    [{ order: "checked", state: "listed" }, ["8.8.4.4", "8.8.8.8"]],
    [{ order: "next", state: "listed" }, ["8.8.8.8", "8.8.4.4"]],
    [{ order: "newest", state: "listed" }, ["8.8.4.4", "8.8.8.8"]],
  ])("%j", async (query, expected) => {
    expect(await startWithAll().values(query)).toEqual(expected);
  });

  test("counts targets by what they are listed on", () => {
    const { store } = startWithAll();
    const counts = store.countListedOn(OWNER).toSorted((a, b) => a.listedOn.length - b.listedOn.length);
    expect(counts).toEqual([
      { listedOn: ["spamcop"], count: 2 },
      { listedOn: ["spamhaus-sbl", "spamcop"], count: 1 },
    ]);
  });

  test("sorts labels with numbers by their value, and what has none last", async () => {
    const { table } = startWithAll();
    const { targets } = await table.page(OWNER, { order: "label", page: 1, perPage: 4 });
    expect(targets.map(({ label }) => label)).toEqual(["out 9", "out 10", "web 100%", null]);
    expect(table.labels(OWNER)).toEqual(["out 10", "out 9", "web 100%"]);
  });

  test.each<[Partial<TargetQuery>]>([[{}], [{ order: "newest" }], [{ text: "8" }]])(
    "pages of %j have every target once and the same total",
    async (query) => {
      const { table, values } = startWithAll();
      const all = await values(query);
      const paged: string[] = [];
      for (let page = 1; page <= all.length; page++) {
        const { targets, total } = await table.page(OWNER, { ...query, page, perPage: 1 });
        expect(total).toBe(all.length);
        paged.push(...targets.map(({ value }) => value));
      }
      expect(paged).toEqual(all);
      expect((await table.page(OWNER, { ...query, page: 99, perPage: 1 })).targets).toEqual([]);
    },
  );

  test("finds what lies beyond the first step of rows", async () => {
    const { fixture, add, values, table } = startTable();
    add("last.example", { kind: "domain", monitoringEnabled: false, label: "far" });
    fixture.db.transact(() => {
      for (let n = 0; n < 5_003; n++) add(`h${n}.example`, { kind: "domain" });
    });
    expect(await values({ label: "far" })).toEqual(["last.example"]);
    const { total } = await table.page(OWNER, { order: "name", page: 1, perPage: 1 });
    expect(total).toBe(5_004);
    let exported = 0;
    for await (const rows of table.all(OWNER, {}, 500)) exported += rows.length;
    expect(exported).toBe(5_004);
  });

  test("reads the index only for figures and the first order", () => {
    const { fixture } = startTable();
    const plan = (sql: string) =>
      fixture.db.sqlite
        .query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`)
        .all()
        .map(({ detail }) => detail)
        .join("\n");
    const of = "account_id = 'a' AND mode = 'live' AND range_id = ''";
    const by = "ORDER BY monitoring_enabled DESC, severity_rank DESC, status DESC, id DESC LIMIT 50 OFFSET 5000";
    for (const state of ["", " AND monitoring_enabled = 1 AND severity_rank > 0"]) {
      const read = plan(`SELECT id FROM blocklist_targets WHERE ${of}${state} ${by}`);
      expect(read).toContain("USING COVERING INDEX blocklist_targets_by_state");
      expect(read).not.toContain("TEMP B-TREE");
    }
  });
});
