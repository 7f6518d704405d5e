import { afterEach } from "bun:test";
import { MuteStore, ListingStore, ListingMailQueue } from "../blocklist/listing-store.ts";
import { Muting } from "../blocklist/muting.ts";
import { Targets } from "../blocklist/targets.ts";
import { createUrlPolicy } from "../foundation/net/fetch-url.ts";
import { WebhookUrls } from "../notifications/webhooks/url-store.ts";
import { ListBreaker, createLiveLookup, createTestLookup, listsByMode } from "../blocklist/target-lookup.ts";
import { ChangeNotifier } from "../blocklist/change-notifier.ts";
import type { NotificationDefaults } from "../notifications/settings/store.ts";
import { Listings } from "../blocklist/listings.ts";
import { RangeStore } from "../blocklist/range-store.ts";
import { BlocklistMonitor, CheckScheduler } from "../blocklist/monitor.ts";
import { BlocklistStore, type TargetRow } from "../blocklist/store.ts";
import { createLog } from "../foundation/base/log.ts";
import { newId } from "../foundation/base/secrets.ts";
import { openDb } from "../foundation/db/open.ts";
import type { Blocklist } from "../blocklist/lists/blocklist.ts";
import type { Severity } from "../foundation/base/severity.ts";
import { noPacing } from "../blocklist/lists/list-client.ts";
import { readEmbeddedCatalogue } from "../blocklist/lists/catalogue.ts";
import { createDnsbl, type Dnsbl } from "../blocklist/lists/open.ts";
import { createTestClock } from "./clock.ts";
import { createZoneResolver, type ZoneFailure, type ZoneRecords } from "./dns-zone.ts";

/** Records with which the lists pass their tests. */
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

/** An event in the outbox. */
export interface WrittenEvent {
  readonly type: string;
  readonly url: string;
  readonly data: Readonly<Record<string, unknown>>;
}

interface FixtureOptions {
  readonly retentionDays?: number;
  /** The severity of the listing `spamhaus-pbl`. */
  readonly pbl?: Severity;
}

/** Monitoring of Spamhaus ZEN and SpamCop over a literal zone. */
class BlocklistFixture {
  readonly clock = createTestClock();
  readonly db = openInMemory();
  readonly zone: Record<string, ZoneRecords | ZoneFailure> = { ...HEALTHY };
  readonly resolver = createZoneResolver(this.zone);
  readonly logged: string[] = [];
  /** Recipients of the account; empty at first. */
  readonly defaults: string[] = [];
  /** The other settings of the account. */
  readonly account: { blacklistSeverityMin: NotificationDefaults["blacklistSeverityMin"] } = {
    blacklistSeverityMin: null,
  };
  readonly runtime = {
    db: this.db,
    clock: this.clock,
    log: createLog("info", this.clock, (line) => this.logged.push(line)),
    random: { integer: () => 0 },
  };
  readonly store = new BlocklistStore(this.db);
  readonly mailQueue = new ListingMailQueue(this.db);
  readonly listings = new Listings({
    store: new ListingStore(this.db),
    targets: this.store,
    ranges: new RangeStore(this.db),
  });
  readonly lists: readonly Blocklist[];
  readonly health: Dnsbl["health"];
  readonly monitor: BlocklistMonitor;
  readonly scheduler: CheckScheduler;
  readonly #notifier: ChangeNotifier;

  constructor({ retentionDays = 90, pbl = "medium" }: FixtureOptions) {
    const { runtime, store, mailQueue, listings, resolver, clock } = this;
    this.lists = LISTS.map(catalogueList).map((list) => ({
      ...list,
      codes: list.codes.map((code) => (code.id === "spamhaus-pbl" ? { ...code, severity: pbl } : code)),
    }));
    const registrableDomain = (domain: string) => domain.split(".").slice(-2).join(".");
    const { lookup, health } = createDnsbl({ ...runtime, resolver, registrableDomain, pacing: noPacing });
    this.health = health;
    const breaker = new ListBreaker(runtime, { health, countTargets: () => store.countWatched() });
    const defaults = { findDefaults: () => ({ recipients: this.defaults, ...this.account }) };
    const notifier = new ChangeNotifier(runtime, { mailQueue, defaults });
    this.#notifier = notifier;
    const lookups = { live: createLiveLookup(this.lists, { lookup, breaker }), test: createTestLookup(clock) };
    this.monitor = new BlocklistMonitor(runtime, { store, lookups, listings, notifier });
    const { monitor } = this;
    this.scheduler = new CheckScheduler(runtime, { store, monitor, health, lookups, listings, retentionDays });
  }

  readonly find = (id: string): TargetRow => {
    const target = this.store.findTarget(id);
    if (target === undefined) throw new Error(`no target ${id}`);
    return target;
  };

  /** The use cases of targets, without mail. */
  readonly targets = (): Targets => {
    const { runtime, db, store, listings } = this;
    const [ranges, mutes, catalogue] = [new RangeStore(db), new MuteStore(db), listsByMode(this.lists)];
    const muting = new Muting(runtime, { store, ranges, listings, notifier: this.#notifier, mutes, catalogue });
    const urls = new WebhookUrls(runtime, createUrlPolicy([]));
    return new Targets(runtime, {
      ...{ store, ranges, listings, muting, catalogue, urls, hasMail: false, recipientDomains: [] },
    });
  };

  readonly add = (value: string, more: Partial<TargetRow> = {}): string => {
    const id = newId();
    const nowMs = this.clock.nowMs();
    const row: TargetRow = {
      ...{ id, accountId: "account", mode: "live", kind: "ipv4", value, rangeId: "", members: null, label: null },
      ...{ status: "pending", listedOn: [], severityRank: 0, alertSeverityMin: null, mutedLists: [], recipients: [] },
      ...{ monitoringEnabled: true, webhookUrl: "https://example.com/hook", unknownChecks: 0, lastCheckedAtMs: null },
      ...{ nextCheckAtMs: nowMs, createdAtMs: nowMs, ...more },
    };
    this.db.transact((tx) => this.store.insertTarget(tx, row));
    return id;
  };

  /** Sets the response of SpamCop for an address; null: not listed. */
  readonly spamcop = (address: string, response: ZoneRecords | ZoneFailure | null): void =>
    this.#respond(`${address.split(".").toReversed().join(".")}.bl.spamcop.net`, response);

  readonly zen = (address: string, response: ZoneRecords | ZoneFailure | null): void =>
    this.#respond(`${address.split(".").toReversed().join(".")}.zen.spamhaus.org`, response);

  #respond(name: string, response: ZoneRecords | ZoneFailure | null): void {
    if (response === null) delete this.zone[name];
    else this.zone[name] = response;
  }

  readonly check = async (id: string) => (await this.monitor.check(this.find(id), "manual").done)?.target;

  /** The events in the outbox, oldest first. */
  readonly events = (): WrittenEvent[] =>
    this.db.sqlite
      .query<{ type: string; url: string; data: string }, []>("SELECT type, url, data FROM outbox ORDER BY id")
      .all()
      .map(({ type, url, data }) => ({ type, url, data: JSON.parse(data) }));
}

/** Fixtures for the tests of one file, closed after each test. */
export const createBlocklistFixtures = () => {
  const closers: Array<() => void> = [];
  afterEach(() => {
    for (const close of closers.splice(0)) close();
  });
  return (options: FixtureOptions = {}): BlocklistFixture => {
    const fixture = new BlocklistFixture(options);
    closers.push(() => fixture.db.close());
    return fixture;
  };
};
