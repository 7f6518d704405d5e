import { afterEach } from "bun:test";
import { createBreaker } from "../blocklist/breaker.ts";
import { type AlertDefaults, createChangeNotifier } from "../blocklist/change-notifier.ts";
import { createListingStore } from "../blocklist/listing-store.ts";
import { createListings } from "../blocklist/listings.ts";
import { createRangeStore } from "../blocklist/range-store.ts";
import { createMonitor } from "../blocklist/monitor.ts";
import { createCheckScheduler } from "../blocklist/check-scheduler.ts";
import { createBlocklistStore, type TargetRow } from "../blocklist/store.ts";
import { createLog } from "../base/log.ts";
import { newId } from "../base/secrets.ts";
import { openDb } from "../db/open.ts";
import type { Blocklist, Severity } from "../dnsbl/blocklist.ts";
import { noPacing } from "../dnsbl/budget.ts";
import { readEmbeddedCatalogue } from "../dnsbl/catalogue.ts";
import { createDnsbl } from "../dnsbl/dnsbl.ts";
import { createTestClock } from "./clock.ts";
import { createZoneResolver, type ZoneFailure, type ZoneRecords } from "./dns-zone.ts";

/** Answers by which the lists of a fixture pass their tests. */
const HEALTHY = {
  "2.0.0.127.bl.spamcop.net": { A: ["127.0.0.2"] },
  "2.0.0.127.zen.spamhaus.org": { A: ["127.0.0.2", "127.0.0.4", "127.0.0.10"] },
};
const LISTS = ["spamhaus-zen", "spamcop"];

const openInMemory = () => {
  const opened = openDb(":memory:");
  if (!opened.ok) throw new Error(opened.error.kind);
  return opened.value;
};

const catalogueList = (id: string): Blocklist => {
  const list = readEmbeddedCatalogue().lists.find((candidate) => candidate.id === id);
  if (list === undefined) throw new Error(`no list ${id}`);
  return list;
};

/** An event as it stands in the outbox. */
export interface WrittenEvent {
  readonly type: string;
  readonly url: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Monitoring of Spamhaus ZEN and SpamCop over a literal zone, for the tests of one file. */
export const createBlocklistFixtures = () => {
  const closers: Array<() => void> = [];
  afterEach(() => {
    for (const close of closers.splice(0)) close();
  });

  return ({
    retentionDays = 90,
    pbl = "medium",
  }: { readonly retentionDays?: number; readonly pbl?: Severity } = {}) => {
    const clock = createTestClock();
    const db = openInMemory();
    closers.push(() => db.close());
    const zone: Record<string, ZoneRecords | ZoneFailure> = { ...HEALTHY };
    const resolver = createZoneResolver(zone);
    const random = { integer: () => 0 };
    const registrableDomain = (domain: string) => domain.split(".").slice(-2).join(".");
    const { lookup, health } = createDnsbl({ resolver, clock, random, registrableDomain, pacing: noPacing });
    const logged: string[] = [];
    const log = createLog("info", clock, (line) => logged.push(line));
    const store = createBlocklistStore(db);
    const lists = LISTS.map(catalogueList).map((list) => ({
      ...list,
      codes: list.codes.map((code) => (code.id === "spamhaus-pbl" ? { ...code, severity: pbl } : code)),
    }));
    const defaults: string[] = [];
    const breaker = createBreaker({ clock, log, health, countTargets: store.countWatched });
    const account: { blacklistSeverityMin: AlertDefaults["blacklistSeverityMin"] } = { blacklistSeverityMin: null };
    const ranges = createRangeStore(db);
    const listings = createListings({ store: createListingStore(db), targets: store, ranges });
    const announce = createChangeNotifier({
      store,
      hasMail: true,
      findDefaults: () => ({ recipients: defaults, ...account }),
    });
    const monitor = createMonitor({ db, store, lists, lookup, breaker, listings, announce, clock });
    const scheduler = createCheckScheduler({ db, store, monitor, health, lists, listings, clock, log, retentionDays });

    const find = (id: string): TargetRow => {
      const target = store.findTarget(id);
      if (target === undefined) throw new Error(`no target ${id}`);
      return target;
    };
    return {
      clock,
      db,
      zone,
      resolver,
      logged,
      store,
      lists,
      health,
      monitor,
      scheduler,
      find,
      /** Recipients of the account; empty at first. */
      defaults,
      /** What else the account has set. */
      account,
      listings,
      add(value: string, more: Partial<TargetRow> = {}): string {
        const id = newId();
        const nowMs = clock.nowMs();
        const row: TargetRow = {
          id,
          accountId: "account",
          mode: "live",
          kind: "ipv4",
          value,
          rangeId: "",
          members: null,
          label: null,
          status: "pending",
          listedOn: [],
          severityRank: 0,
          alertSeverityMin: null,
          mutedLists: [],
          monitoringEnabled: true,
          recipients: [],
          webhookUrl: "https://example.com/hook",
          unknownChecks: 0,
          lastCheckedAtMs: null,
          nextCheckAtMs: nowMs,
          createdAtMs: nowMs,
          ...more,
        };
        db.transact((tx) => store.insertTarget(tx, row));
        return id;
      },
      /** Lists an address on SpamCop, or takes it off. */
      spamcop(address: string, answer: ZoneRecords | ZoneFailure | null): void {
        const name = `${address.split(".").toReversed().join(".")}.bl.spamcop.net`;
        if (answer === null) delete zone[name];
        else zone[name] = answer;
      },
      zen(address: string, answer: ZoneRecords | ZoneFailure | null): void {
        const name = `${address.split(".").toReversed().join(".")}.zen.spamhaus.org`;
        if (answer === null) delete zone[name];
        else zone[name] = answer;
      },
      check: async (id: string) => (await monitor.check(find(id), "manual").done)?.target,
      /** What has been written to the outbox so far, in order. */
      events: (): WrittenEvent[] =>
        db.sqlite
          .query<{ type: string; url: string; data: string }, []>("SELECT type, url, data FROM outbox ORDER BY id")
          .all()
          .map(({ type, url, data }) => ({ type, url, data: JSON.parse(data) })),
    };
  };
};
