import { describe, expect, test } from "bun:test";
import { createIngestHarness, insertDomain } from "../../../testing/ingest-harness.ts";
import { createZoneResolver, type Zone } from "../../../testing/dns-zone.ts";
import { observeRecords, type ObservedRecord } from "./observed-records.ts";
import { recordChangeView } from "../queries/record-history-routes.ts";
import { RecordHistoryStore } from "./record-history.ts";
import { createHealthDns } from "./section-report.ts";

const newWorld = createIngestHarness();
const KEY = "mail._domainkey.example.com";
const PAGE = { before: null, limit: 2_000 };

const start = () => {
  const { db } = newWorld();
  const store = new RecordHistoryStore(db);
  const { number } = insertDomain(db, "example.com");
  const observe = (observed: readonly ObservedRecord[], atMs = 1) =>
    db.transact((tx) => store.observe(tx, number, observed, atMs));
  const shown = () =>
    store
      .list(number, PAGE)
      .map(recordChangeView)
      .map(({ kind, before, records }) => [kind, before, records] as const);
  return { db, store, number, observe, shown };
};

const spf = (...values: string[]): ObservedRecord => ({ kind: "spf", host: "example.com", values });
const dkim = (...values: string[]): ObservedRecord => ({ kind: "dkim", host: KEY, values });

describe("a record", () => {
  test("is stored when it is first seen and when it changes, newest first", () => {
    const { observe, shown, store, number } = start();
    for (const values of [["v=spf1 -all"], ["v=spf1 -all"], [], [], ["v=spf1 mx -all"]]) observe([spf(...values)]);
    expect(shown()).toEqual([
      ["spf", [], ["v=spf1 mx -all"]],
      ["spf", ["v=spf1 -all"], []],
      ["spf", null, ["v=spf1 -all"]],
    ]);
    expect(store.changes(number, 10)).toHaveLength(2);
  });

  test("that the DNS does not respond about does not change", () => {
    const { observe, shown } = start();
    observe([spf("v=spf1 -all")]);
    observe([]);
    expect(shown()).toHaveLength(1);
  });

  test("of a key that never was there is not stored, because anybody can name it in a report", () => {
    const { observe, shown } = start();
    observe([dkim()]);
    expect(shown()).toEqual([]);
    observe([dkim("v=DKIM1; p=a")]);
    observe([dkim()]);
    expect(shown()).toEqual([
      ["dkim", ["v=DKIM1; p=a"], []],
      ["dkim", null, ["v=DKIM1; p=a"]],
    ]);
  });

  test("of a deleted domain is not stored, and other domains have their own", () => {
    const { db, store, observe, shown } = start();
    const other = insertDomain(db, "other.com");
    observe([spf("v=spf1 -all")]);
    db.transact((tx) => store.observe(tx, other.number, [spf("v=spf1 ~all")], 1));
    expect(shown()).toHaveLength(1);
    db.sqlite.run("UPDATE dmarc_domains SET deleted_at_ms = 1");
    observe([spf()]);
    expect(shown()).toHaveLength(1);
  });

  test("has a limit of entries", () => {
    const { observe, shown } = start();
    for (let at = 0; at < 1_010; at++) observe([spf(`v=spf1 ip4:10.0.0.${at} -all`)], at);
    expect(shown()).toHaveLength(1_000);
    expect(shown()[0]?.[2]).toEqual(["v=spf1 ip4:10.0.0.1009 -all"]);
  });
});

test("records are read from the DNS by their kind, and not where it does not respond", async () => {
  const zone: Zone = {
    "example.com": {
      TXT: ["v=spf1 -all", "other"],
      MX: [
        [20, "b.example"],
        [10, "a.example"],
      ],
    },
    "_dmarc.example.com": "servfail",
    [KEY]: { TXT: ["v=DKIM1; p=a"] },
  };
  expect(await observeRecords(createHealthDns(createZoneResolver(zone)), "example.com", [KEY])).toEqual([
    { kind: "spf", host: "example.com", values: ["v=spf1 -all"] },
    { kind: "mx", host: "example.com", values: ["10 a.example", "20 b.example"] },
    { kind: "mta_sts", host: "_mta-sts.example.com", values: [] },
    { kind: "dkim", host: KEY, values: ["v=DKIM1; p=a"] },
  ]);
});
