import type { Owner } from "../foundation/base/secrets.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import type { Platform } from "../foundation/net/platform.ts";
import type { Outbound } from "../notifications/open.ts";
import { createBlocklistAttention } from "./attention.ts";
import { ListBreaker, createLiveLookup, createTestLookup, listsByMode } from "./target-lookup.ts";
import {
  createBudgetLedger,
  createBudgetReader,
  UsabilityStore,
  ListingStore,
  MuteStore,
  ListingMailQueue,
  TargetHistoryStore,
} from "./listing-store.ts";
import { ChangeNotifier, createListingMails } from "./change-notifier.ts";
import { CheckScheduler, BlocklistMonitor, RangeChecks } from "./monitor.ts";
import { ListingDigests } from "./digest-queue.ts";
import { TargetDiscovery } from "./discovery.ts";
import { ListingNotesEditor, Listings } from "./listings.ts";
import { ListStatuses } from "./list-status.ts";
import { type Catalogue, isEnabled } from "./lists/blocklist.ts";
import type { DnsblHealth } from "./lists/health.ts";
import { type CatalogueSettings, catalogueOf, openDnsbl } from "./lists/open.ts";
import { Mutes, Muting } from "./muting.ts";
import { OverviewStore, Overview } from "./overview.ts";
import { RangeStore } from "./range-store.ts";
import { BlocklistStore, type TargetRow } from "./store.ts";
import { TargetActions, Targets } from "./targets.ts";
import { TargetHistory } from "./target-history.ts";
import { TargetTable, TargetTableStore } from "./target-table.ts";
import { ListUsability } from "./usability.ts";

export interface BlocklistSettings extends CatalogueSettings {
  readonly blocklistRetentionDays: number;
  readonly notifyDomains: readonly string[];
  readonly sourceAddresses: readonly string[];
  readonly socksProxies: readonly unknown[];
}

interface BlocklistDeps {
  readonly platform: Platform;
  readonly outbound: Outbound;
  /** The addresses of own servers in DMARC reports about a domain; null where the account does not monitor it. */
  readonly ownAddresses: (owner: Owner, domain: string) => Promise<readonly string[] | null>;
}

/** Blocklist monitoring: targets, their checks, events and mail. */
export class BlocklistSlice {
  readonly catalogue: Catalogue;
  readonly health: DnsblHealth;
  readonly store: BlocklistStore;
  readonly monitor: BlocklistMonitor;
  readonly scheduler: CheckScheduler;
  readonly targets: Targets;
  readonly overview: Overview;
  readonly usability: ListUsability;
  readonly table: TargetTable;
  readonly statuses: ListStatuses;
  readonly attention: ReturnType<typeof createBlocklistAttention>;
  readonly history: TargetHistory;
  readonly actions: TargetActions;
  readonly mutes: Mutes;
  readonly rangeChecks: RangeChecks;
  readonly notes: ListingNotesEditor;
  readonly discovery: TargetDiscovery;
  /** Null where the service sends no mail. */
  readonly alerts: ReturnType<typeof createListingMails> | null;

  constructor(
    runtime: Runtime,
    settings: BlocklistSettings,
    /** The resolver of the platform must have no cache: a confirming query has to reach the server. */
    { platform, outbound, ownAddresses }: BlocklistDeps,
  ) {
    const { db, clock } = runtime;
    const { defaults, mailing, urls } = outbound;
    this.catalogue = catalogueOf(settings);
    const dnsbl = openDnsbl(platform, createBudgetLedger(db));
    this.health = dnsbl.health;
    const { health } = this;
    const lists = this.catalogue.lists.filter(isEnabled);
    const catalogue = listsByMode(this.catalogue.lists);
    const queue = new ListingMailQueue(db);
    const mailQueue = mailing === null ? null : queue;

    const store = new BlocklistStore(db);
    const ranges = new RangeStore(db);
    const listingStore = new ListingStore(db);
    const listings = new Listings({ store: listingStore, targets: store, ranges });
    const notifier = new ChangeNotifier(runtime, { mailQueue, defaults });
    const breaker = new ListBreaker(runtime, { health, countTargets: () => store.countWatched() });
    const live = createLiveLookup(lists, { lookup: dnsbl.lookup, breaker });
    const lookups = { live, test: createTestLookup(clock) };
    this.store = store;
    this.monitor = new BlocklistMonitor(runtime, { store, lookups, listings, notifier });
    const { monitor } = this;
    const checking = { store, monitor, health, lookups, listings, retentionDays: settings.blocklistRetentionDays };
    this.scheduler = new CheckScheduler(runtime, checking);
    this.rangeChecks = new RangeChecks(runtime, { store, ranges, monitor });
    const usabilities = new UsabilityStore(db);
    this.usability = new ListUsability(runtime, { store: usabilities, health, lists, mailQueue, defaults });

    const mutes = new MuteStore(db);
    const muting = new Muting(runtime, { store, ranges, listings, notifier, mutes, catalogue });
    const rules = { urls, hasMail: mailing !== null, recipientDomains: settings.notifyDomains };
    this.targets = new Targets(runtime, { store, ranges, listings, muting, catalogue, ...rules });
    const { targets } = this;
    this.actions = new TargetActions(runtime, { blocklists: store, ranges, targets });
    this.mutes = new Mutes(runtime, { store: mutes, blocklists: store, ranges, targets, muting });
    this.notes = new ListingNotesEditor(runtime, { store, listings: listingStore });
    const overviews = new OverviewStore(db);
    this.overview = new Overview(runtime, { store: overviews, blocklists: store, targets, lists, health });

    const tables = new TargetTableStore(db);
    const reading = { store: tables, blocklists: store, targets, overview: this.overview };
    this.table = new TargetTable({ db, store: tables, targets: store });
    this.statuses = new ListStatuses(runtime, { ...reading, catalogue, health, budgets: createBudgetReader(db) });
    this.attention = createBlocklistAttention({ ...reading, table: this.table });
    const history = { store: new TargetHistoryStore(db), blocklists: store, lookups, catalogue };
    this.history = new TargetHistory(runtime, history);
    const { sourceAddresses, socksProxies } = settings;
    const hasProxies = socksProxies.length > 0;
    this.discovery = new TargetDiscovery({ resolver: platform.resolver, sourceAddresses, hasProxies, ownAddresses });
    const digested = { store, listings, overview: this.overview, mailQueue: queue, catalogue, defaults };
    const digests = new ListingDigests(runtime, digested);
    this.alerts = mailing === null ? null : createListingMails(runtime, { mailing, queue, digests });
  }

  /** Checks a target, or all addresses of a range, at once. Returns its new state; null when it was removed meanwhile. */
  async check(target: TargetRow): Promise<TargetRow | null> {
    const running = target.members === null ? this.monitor.checkOnDemand(target) : this.rangeChecks.check(target);
    return (await running.done)?.target ?? null;
  }
}
