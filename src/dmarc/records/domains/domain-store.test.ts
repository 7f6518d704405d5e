import { describe, expect, test } from "bun:test";
import { newId } from "../../../foundation/base/secrets.ts";
import { createDomainHarness, LIVE, TEST } from "../../../testing/monitored-domains.ts";

const newHarness = createDomainHarness();
const ALL = { before: null, limit: 100 };

describe("a domain", () => {
  test("is found by id, number, token and name, until it is deleted; then by none of them", () => {
    const { db, store, insert } = newHarness();
    const row = insert({ token: "abc", recipients: ["a@example.com"], alerts: { new_source: false } });
    const find = () => [
      store.findById(row.id),
      store.findByNumber(row.number),
      store.findByToken("abc"),
      store.findSame(LIVE, "example.com"),
      store.findCovering(LIVE, "a.example.com"),
      store.list(LIVE, {}, ALL)[0],
    ];
    expect(find()).toEqual(Array(6).fill(row));
    expect(store.findSame(TEST, "example.com")).toBeUndefined();
    expect(store.findSame({ ...LIVE, accountId: "other" }, "example.com")).toBeUndefined();
    db.transact((tx) => store.markDeleted(tx, row.number, 7));
    expect(find()).toEqual(Array(6).fill(undefined));
    expect(store.count(LIVE)).toBe(0);
    expect(store.deleted(10)).toMatchObject([{ number: row.number, deletedAtMs: 7 }]);
  });

  test("can be enrolled again when it was deleted, but not beside itself", () => {
    const { db, store, insert } = newHarness();
    const row = insert({ token: "abc" });
    expect(() => insert()).toThrow();
    expect(() => insert({ domain: "other.com", token: "abc" })).toThrow();
    db.transact((tx) => store.markDeleted(tx, row.number, 7));
    const again = insert({ token: "abc" });
    expect(again.number).not.toBe(row.number);
    db.transact((tx) => store.remove(tx, row.number));
    expect(store.deleted(10)).toEqual([]);
    expect(store.findByToken("abc")?.id).toBe(again.id);
  });

  test("that is enrolled and deleted again and again is there once, with the address of its test key", async () => {
    const { store, domains, enrol } = newHarness();
    const [first, second] = [await enrol("a.example", TEST), await enrol("b.a.example", TEST)];
    let last = second.domain;
    for (let n = 0; n < 3; n++) {
      await domains.remove(TEST, last.id);
      expect(store.findCovering(TEST, "c.b.a.example")?.id).toBe(first.domain.id);
      const { created, domain } = await enrol("b.a.example", TEST);
      expect([created, domain.token]).toEqual([true, second.domain.token]);
      expect(store.findByToken(domain.token)?.id).toBe(domain.id);
      expect(store.findCovering(TEST, "c.b.a.example")?.id).toBe(domain.id);
      expect(store.count(TEST)).toBe(2);
      expect(store.list(TEST, {}, ALL).map(({ id }) => id)).toEqual([domain.id, first.domain.id]);
      last = domain;
    }
    expect(store.deleted(10)).toHaveLength(3);
  });

  test("covers the names below it, the nearest one first", () => {
    const { store, insert } = newHarness();
    const top = insert();
    const below = insert({ domain: "news.example.com" });
    expect(store.findCovering(LIVE, "example.com")?.id).toBe(top.id);
    expect(store.findCovering(LIVE, "a.b.example.com")?.id).toBe(top.id);
    expect(store.findCovering(LIVE, "a.news.example.com")?.id).toBe(below.id);
    expect(store.findCovering(LIVE, "badexample.com")).toBeUndefined();
    expect(store.findCovering(LIVE, "com")).toBeUndefined();
  });

  test("is due when its time has come, unless it is paused, deleted or a test key's", () => {
    const { db, store, insert } = newHarness();
    const due = (nowMs: number) => store.due(nowMs, 10).map(({ domain }) => domain);
    insert({ domain: "late.com", nextCheckAtMs: 20 });
    insert({ domain: "early.com", nextCheckAtMs: 10 });
    insert({ domain: "paused.com", nextCheckAtMs: 10, monitoringEnabled: false });
    insert({ domain: "test.com", nextCheckAtMs: 10, mode: "test" });
    const gone = insert({ domain: "gone.com", nextCheckAtMs: 10 });
    db.transact((tx) => store.markDeleted(tx, gone.number, 1));
    expect([due(9), due(10), due(20)]).toEqual([[], ["early.com"], ["early.com", "late.com"]]);
    expect(store.countDue(20)).toBe(2);
  });

  test("is looked for among the due ones by the index", () => {
    const { db } = newHarness();
    const plan = db.sqlite
      .query<{ detail: string }, []>(
        "EXPLAIN QUERY PLAN SELECT * FROM dmarc_domains WHERE (deleted_at_ms is null and monitoring_enabled = 1) AND next_check_at_ms <= 5 ORDER BY next_check_at_ms LIMIT 1",
      )
      .all();
    expect(plan.map(({ detail }) => detail).join()).toContain("dmarc_domains_due");
  });

  test("is listed newest first, by pages and filters", () => {
    const { store, insert } = newHarness();
    const rows = ["a.com", "b.com", "c.com"].map((domain) => insert({ domain }));
    const active = insert({ domain: "d.com", status: "active", monitoringEnabled: false });
    insert({ domain: "e.com", mode: "test" });
    const ids = (filters: Parameters<typeof store.list>[1], page = ALL as Parameters<typeof store.list>[2]) =>
      store.list(LIVE, filters, page).map(({ id }) => id);
    expect(ids({})).toEqual([...rows.map(({ id }) => id), active.id].toReversed());
    expect(ids({}, { before: rows[1]?.id ?? "", limit: 5 })).toEqual([rows[0]?.id ?? ""]);
    expect(ids({}, { before: null, limit: 1 })).toEqual([active.id]);
    expect(ids({ status: "active" })).toEqual([active.id]);
    expect(ids({ domain: "b.com" })).toEqual([rows[1]?.id ?? ""]);
    expect(ids({ monitoringEnabled: false })).toEqual([active.id]);
  });
});

test("history is read newest first and forgotten oldest first, in chunks", () => {
  const { db, store } = newHarness();
  const ids = [1, 2, 3, 4].map((atMs) => {
    const id = newId();
    db.transact((tx) => store.insertHistory(tx, { id, domain: 1, trigger: "scheduled", atMs, body: "{}" }));
    return id;
  });
  db.transact((tx) => store.insertHistory(tx, { id: newId(), domain: 2, trigger: "manual", atMs: 0, body: "{}" }));
  const read = (page = ALL as Parameters<typeof store.listHistory>[1]) =>
    store.listHistory(1, page).map(({ id }) => id);
  expect(read()).toEqual(ids.toReversed());
  expect(read({ before: ids[2] ?? "", limit: 1 })).toEqual([ids[1] ?? ""]);
  expect(db.transact((tx) => store.removeHistory(tx, 1, { limit: 10, beforeMs: 2 }))).toBe(1);
  expect(db.transact((tx) => store.removeHistory(tx, 1, { limit: 2 }))).toBe(2);
  expect(read()).toEqual([ids[3] ?? ""]);
  expect(db.transact((tx) => store.removeHistory(tx, 1, { limit: 2 }))).toBe(1);
  expect(db.transact((tx) => store.removeHistory(tx, 1, { limit: 2 }))).toBe(0);
  expect(store.listHistory(2, ALL)).toHaveLength(1);
});
