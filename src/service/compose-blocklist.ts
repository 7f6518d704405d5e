import { type BlocklistAttentionDeps, createBlocklistAttention } from "../blocklist/attention.ts";
import { ListBreaker } from "../blocklist/breaker.ts";
import { createBudgetLedger, createBudgetReader } from "../blocklist/budget-store.ts";
import { ChangeNotifier } from "../blocklist/change-notifier.ts";
import { CheckScheduler } from "../blocklist/check-scheduler.ts";
import { ListingDigests } from "../blocklist/digest-queue.ts";
import { TargetDiscovery } from "../blocklist/discovery.ts";
import { createListingMails } from "../blocklist/listing-mails.ts";
import { ListingNotesEditor } from "../blocklist/listing-notes.ts";
import { ListingStore } from "../blocklist/listing-store.ts";
import { ListStatuses } from "../blocklist/list-status.ts";
import { Listings } from "../blocklist/listings.ts";
import { ListingMailQueue } from "../blocklist/mail-queue-store.ts";
import { BlocklistMonitor } from "../blocklist/monitor.ts";
import { Mutes } from "../blocklist/mutes.ts";
import { MuteStore } from "../blocklist/mute-store.ts";
import { Muting } from "../blocklist/muting.ts";
import { OverviewStore } from "../blocklist/overview-store.ts";
import { Overview } from "../blocklist/overview.ts";
import { RangeChecks } from "../blocklist/range-check.ts";
import { RangeStore } from "../blocklist/range-store.ts";
import { BlocklistStore, type Owner } from "../blocklist/store.ts";
import { TargetActions } from "../blocklist/target-actions.ts";
import { TargetHistory, type TargetHistoryDeps } from "../blocklist/target-history.ts";
import { TargetHistoryStore } from "../blocklist/target-history-store.ts";
import { TargetTable } from "../blocklist/target-table.ts";
import { TargetTableStore } from "../blocklist/target-table-store.ts";
import { createLiveLookup } from "../blocklist/target-lookup.ts";
import { Targets } from "../blocklist/targets.ts";
import { createTestLookup, type ListsByMode, listsByMode } from "../blocklist/test-list.ts";
import { UsabilityStore } from "../blocklist/usability-store.ts";
import { ListUsability } from "../blocklist/usability.ts";
import type { Log } from "../foundation/base/log.ts";
import { catalogueOf } from "./compose-engine.ts";
import type { Platform } from "./compose-platform.ts";
import type { Config } from "./config.ts";
import type { Db } from "../foundation/db/open.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import { type Catalogue, isEnabled } from "../blocklist/lists/blocklist.ts";
import { type BudgetLedger, createDnsblPacing } from "../blocklist/lists/budget.ts";
import { createDnsbl, type Dnsbl } from "../blocklist/lists/dnsbl.ts";
import type { DnsblHealth } from "../blocklist/lists/health.ts";
import type { NotificationsStore } from "../notifications/settings/store.ts";
import type { Mailing } from "../notifications/mail/mail-batcher.ts";
import type { WebhookUrls } from "../notifications/webhooks/webhook-urls.ts";
import { organisationalDomain } from "../foundation/mail/organisational-domain.ts";

/** The catalogue in use, and lookups within the budgets of the lists: for monitoring and the command line. */
export const composeLookups = (
  config: Config,
  { clock, random, resolver }: Platform,
  ledger?: BudgetLedger,
): { readonly catalogue: Catalogue; readonly dnsbl: Dnsbl } => ({
  catalogue: catalogueOf(config),
  dnsbl: createDnsbl({
    ...{ clock, random, resolver, registrableDomain: organisationalDomain },
    pacing: createDnsblPacing({ clock, ...(ledger === undefined ? {} : { ledger }) }),
  }),
});

/** The settings of accounts for alerts and digests. */
type NotificationsUse = Pick<NotificationsStore, "findDefaults" | "dueDigests" | "postponeDigest">;

export interface BlocklistParts {
  readonly config: Config;
  readonly db: Db;
  readonly log: Log;
  readonly platform: Platform;
  readonly urls: WebhookUrls;
  readonly notifications: NotificationsUse;
  /** Null when the service cannot send mail. */
  readonly mailing: Mailing | null;
}

interface Readable extends Omit<BlocklistAttentionDeps, "store" | "table">, Omit<TargetHistoryDeps, "store"> {
  readonly catalogue: ListsByMode;
  readonly health: DnsblHealth;
  readonly blocklists: BlocklistStore;
}

/** What pages read. */
const composeReaders = (runtime: Runtime, deps: Readable) => {
  const store = new TargetTableStore(runtime.db);
  const table = new TargetTable({ store, targets: deps.blocklists });
  return {
    table,
    statuses: new ListStatuses(runtime, { ...deps, store, budgets: createBudgetReader(runtime.db) }),
    attention: createBlocklistAttention({ ...deps, store, table }),
    history: new TargetHistory(runtime, { ...deps, store: new TargetHistoryStore(runtime.db) }),
  };
};

/** Blocklist monitoring: targets, their checks, events and mail. */
export const composeBlocklist = (parts: BlocklistParts) => {
  const { config, db, log, platform, urls, notifications, mailing } = parts;
  const { clock, random } = platform;
  const runtime = { db, clock, log, random };
  const { catalogue: allLists, dnsbl } = composeLookups(config, platform, createBudgetLedger(db));
  const { lookup, health } = dnsbl;
  const lists = allLists.lists.filter(isEnabled);
  const catalogue = listsByMode(allLists.lists);
  const queue = new ListingMailQueue(db);
  const mailQueue = mailing === null ? null : queue;
  const findDefaults = (owner: Owner) => notifications.findDefaults(owner);

  const store = new BlocklistStore(db);
  const ranges = new RangeStore(db);
  const listingStore = new ListingStore(db);
  const listings = new Listings({ store: listingStore, targets: store, ranges });
  const notifier = new ChangeNotifier(runtime, { mailQueue, findDefaults });

  const breaker = new ListBreaker(runtime, { health, countTargets: () => store.countWatched() });
  const lookups = { live: createLiveLookup(lists, { lookup, breaker }), test: createTestLookup(clock) };
  const monitor = new BlocklistMonitor(runtime, { store, lookups, listings, notifier });
  const { blocklistRetentionDays: retentionDays } = config;
  const scheduler = new CheckScheduler(runtime, { store, monitor, health, lookups, listings, retentionDays });
  const usability = new ListUsability(runtime, {
    ...{ store: new UsabilityStore(db), health, lists, mailQueue, findDefaults },
  });

  const mutes = new MuteStore(db);
  const muting = new Muting(runtime, { store, ranges, listings, notifier, mutes, catalogue });
  const targets = new Targets(runtime, {
    ...{ store, ranges, listings, muting, catalogue, urls },
    hasMail: mailing !== null,
    recipientDomains: config.notifyDomains,
  });
  const overview = new Overview(runtime, {
    ...{ store: new OverviewStore(db), blocklists: store, targets, lists, health },
  });
  const digests = new ListingDigests(runtime, {
    ...{ store, listings, overview, mailQueue: queue, catalogue },
    due: (nowMs, limit) => notifications.dueDigests(nowMs, limit),
    postpone: (tx, owner, dueAtMs) => notifications.postponeDigest(tx, owner, dueAtMs),
  });
  const queueDigests = () => digests.queueDue();
  return {
    ...{ catalogue: allLists, health, store, monitor, scheduler, targets, overview, usability },
    ...composeReaders(runtime, { blocklists: store, targets, overview, lookups, catalogue, health }),
    actions: new TargetActions(runtime, { blocklists: store, ranges, targets }),
    mutes: new Mutes(runtime, { store: mutes, blocklists: store, ranges, targets, muting }),
    rangeChecks: new RangeChecks(runtime, { store, ranges, monitor }),
    notes: new ListingNotesEditor(runtime, { store, listings: listingStore }),
    discovery: new TargetDiscovery({
      resolver: platform.resolver,
      sourceAddresses: config.sourceAddresses,
      hasProxies: config.socksProxies.length > 0,
    }),
    alerts: mailing === null ? null : createListingMails(runtime, { mailing, queue, queueDigests }),
  };
};
