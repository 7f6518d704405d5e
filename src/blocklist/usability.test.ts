import { afterEach, expect, test } from "bun:test";
import { createLog } from "../foundation/base/log.ts";
import { newId } from "../foundation/base/secrets.ts";
import { openDb } from "../foundation/db/open.ts";
import { readEmbeddedCatalogue } from "./lists/catalogue.ts";
import type { HealthState } from "./lists/list-client.ts";
import type { DnsblHealth } from "./lists/health.ts";
import { createTestClock } from "../testing/clock.ts";
import { BLOCKLIST_EVENTS } from "./event-docs.ts";
import { ListingMailQueue, UsabilityStore } from "./listing-store.ts";
import { BlocklistStore } from "./store.ts";
import { ListUsability } from "./usability.ts";

const closers: Array<() => void> = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

const LISTS = readEmbeddedCatalogue().lists.filter(({ id }) => ["spamcop", "psbl", "uribl-multi"].includes(id));

const start = () => {
  const opened = openDb(":memory:");
  if (!opened.ok) throw new Error(opened.error.kind);
  const db = opened.value;
  closers.push(() => db.close());
  const clock = createTestClock();
  const states = new Map<string, HealthState>();
  const stateOf = (id: string): HealthState => states.get(id) ?? "healthy";
  let testedAtMs = 1;
  const healthOf: DnsblHealth["of"] = ({ id }, kind) => {
    const state = stateOf(id);
    const isGood = state === "healthy";
    return {
      list: id,
      kind,
      state,
      reason: isGood ? null : "It refuses.",
      remedy: isGood ? null : "Register.",
      testedAtMs,
    };
  };
  const health = { of: healthOf };
  const logged: string[] = [];
  const log = createLog("info", clock, (line) => logged.push(line));
  const store = new BlocklistStore(db);
  const mailQueue = new ListingMailQueue(db);
  const defaults = { findDefaults: () => ({ recipients: ["ops@example.com"], blacklistSeverityMin: null }) };
  const create = () =>
    new ListUsability(
      { db, clock, log, random: { integer: () => 0 } },
      { store: new UsabilityStore(db), health, lists: LISTS, mailQueue, defaults },
    );
  let usability = create();
  const events = () =>
    db.sqlite
      .query<{ type: string; subject: string; account_id: string; data: string }, []>(
        "SELECT type, subject, account_id, data FROM outbox ORDER BY id",
      )
      .all();
  return {
    db,
    states,
    logged,
    store,
    mailQueue,
    events,
    findings: () => usability.findings(),
    usable: () => Object.fromEntries(usability.usableLists()),
    restart: () => (usability = create()),
    /** A test of all lists, and what follows from it. */
    async test(): Promise<void> {
      testedAtMs += 1;
      await usability.observe();
    },
    observe: () => usability.observe(),
    watch(accountId: string, kind: "ipv4" | "domain", mode: "live" | "test" = "live"): void {
      const id = newId();
      const nothing = { label: null, webhookUrl: null, alertSeverityMin: null, lastCheckedAtMs: null, members: null };
      db.transact((tx) =>
        store.insertTarget(tx, {
          ...{ id, accountId, mode, kind, value: id, ...nothing, status: "pending", listedOn: [], mutedLists: [] },
          ...{ monitoringEnabled: true, recipients: [], unknownChecks: 0, severityRank: 0, rangeId: "" },
          ...{ nextCheckAtMs: 0, createdAtMs: 0 },
        }),
      );
    },
  };
};

test("tells for each tested list whether it can be used, and nothing about one that was not tested", async () => {
  const { states, usable, test } = start();
  await test();
  const all = usable();
  expect(Object.values(all)).not.toContain(false);
  states.set("spamcop", "refused");
  await test();
  expect(usable()).toEqual({ ...all, spamcop: false });
});

test("accounts are notified once, after two tests, about a list that cannot be used", async () => {
  const { watch, states, test, observe, events, mailQueue, logged } = start();
  watch("addresses", "ipv4");
  watch("domains", "domain");
  watch("tests", "ipv4", "test");
  states.set("spamcop", "refused");
  await test();
  await observe();
  expect(events()).toEqual([]);
  await test();
  await test();
  expect(events()).toMatchObject([
    { type: "blacklist.list_unusable", subject: "list:spamcop", account_id: "addresses" },
  ]);
  expect(mailQueue.rowsFor("ops@example.com")).toHaveLength(1);
  expect(logged.filter((line) => line.includes("cannot be used"))).toHaveLength(1);
});

test("accounts are notified after two tests about a list that can be used again, also after a restart", async () => {
  const { watch, states, test, events, restart } = start();
  watch("addresses", "ipv4");
  states.set("spamcop", "silent");
  await test();
  await test();
  restart();
  states.delete("spamcop");
  await test();
  states.set("spamcop", "silent");
  await test();
  states.delete("spamcop");
  await test();
  expect(events()).toHaveLength(1);
  await test();
  expect(events().map(({ type }) => type)).toEqual(["blacklist.list_unusable", "blacklist.list_usable"]);
  for (const { type, data } of events()) {
    const facts = JSON.parse(data);
    expect(BLOCKLIST_EVENTS.find((event) => event.type === type)?.data.parse(facts)).toEqual(facts);
  }
});

test("all lists at once have one cause: one event, one finding, one line in the log, each way", async () => {
  const { watch, states, test, events, findings, logged } = start();
  watch("one", "ipv4");
  expect(findings()).toEqual([]);
  for (const { id } of LISTS) states.set(id, "unreachable");
  await test();
  await test();
  expect(events().map(({ type, subject }) => `${type} ${subject}`)).toEqual(["blacklist.list_unusable list:all"]);
  expect(findings()).toEqual([expect.stringContaining("POSTWARDEN_DNS_SERVERS")]);
  expect(logged).toHaveLength(1);
  states.clear();
  await test();
  await test();
  expect(events().map(({ type }) => type)).toEqual(["blacklist.list_unusable", "blacklist.list_usable"]);
  expect(findings()).toEqual([]);
});

test("a finding names the list, the reason and the remedy", async () => {
  const { states, findings } = start();
  states.set("psbl", "refused");
  expect(findings()).toEqual(["Passive Spam Block List cannot be used: It refuses. Register."]);
});
