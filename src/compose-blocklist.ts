import { createAlerts } from "./blocklist/alerts.ts";
import { createBreaker } from "./blocklist/breaker.ts";
import { createChangeNotifier } from "./blocklist/change-notifier.ts";
import { createListingStore } from "./blocklist/listing-store.ts";
import { createListings } from "./blocklist/listings.ts";
import { createBudgetLedger } from "./blocklist/budget-ledger.ts";
import { createBudgetStore } from "./blocklist/budget-store.ts";
import { createMonitor } from "./blocklist/monitor.ts";
import { createMuting } from "./blocklist/muting.ts";
import { createDigestQueue } from "./blocklist/digest-queue.ts";
import { createDiscovery } from "./blocklist/discovery.ts";
import { createListingNotes } from "./blocklist/listing-notes.ts";
import { createOverviewStore } from "./blocklist/overview-store.ts";
import { createOverview } from "./blocklist/overview.ts";
import { createCheckScheduler } from "./blocklist/check-scheduler.ts";
import { createRangeChecks } from "./blocklist/range-check.ts";
import { createRangeStore } from "./blocklist/range-store.ts";
import { createBlocklistStore } from "./blocklist/store.ts";
import { createTargets } from "./blocklist/targets.ts";
import { createUsabilityStore } from "./blocklist/usability-store.ts";
import { createUsability } from "./blocklist/usability.ts";
import type { Log } from "./base/log.ts";
import { catalogueOf, type Platform } from "./compose-engine.ts";
import { mailerOf } from "./compose-mail.ts";
import type { Config } from "./config.ts";
import type { Db } from "./db/open.ts";
import { type Catalogue, isEnabled } from "./dnsbl/blocklist.ts";
import { type BudgetLedger, createDnsblPacing } from "./dnsbl/budget.ts";
import { createDnsbl, type Dnsbl } from "./dnsbl/dnsbl.ts";
import type { NotificationsStore } from "./notifications/store.ts";
import type { WebhookUrls } from "./webhooks/webhook-urls.ts";
import { organisationalDomain } from "./mail/organisational-domain.ts";

/** The catalogue in force, and lookups that can wait their turn: what monitoring and the command line ask with. */
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

/** What an account has set for alerts and digests. */
type NotificationsUse = Pick<NotificationsStore, "findDefaults" | "dueDigests" | "postponeDigest">;

export interface BlocklistParts {
  readonly config: Config;
  readonly db: Db;
  readonly log: Log;
  readonly platform: Platform;
  readonly urls: WebhookUrls;
  readonly notifications: NotificationsUse;
}

/** Blocklist monitoring: targets, checks and their timetable. */
export const composeBlocklist = (parts: BlocklistParts) => {
  const { config, db, log, platform, urls, notifications } = parts;
  const { clock } = platform;
  const { blocklistRetentionDays: retentionDays } = config;
  const mailer = mailerOf(config);
  const hasMail = mailer !== null;
  const store = createBlocklistStore(db);
  const { catalogue, dnsbl } = composeLookups(config, platform, createBudgetLedger(db, createBudgetStore(db)));
  const { lookup, health } = dnsbl;
  const lists = catalogue.lists.filter(isEnabled);
  const breaker = createBreaker({ clock, log, health, countTargets: store.countWatched });
  const ranges = createRangeStore(db);
  const listingStore = createListingStore(db);
  const listings = createListings({ store: listingStore, targets: store, ranges });
  const announce = createChangeNotifier({ store, hasMail, findDefaults: (owner) => notifications.findDefaults(owner) });
  const monitor = createMonitor({ db, store, lists, lookup, breaker, listings, announce, clock });
  const scheduler = createCheckScheduler({ db, store, monitor, health, lists, listings, clock, log, retentionDays });
  const usability = createUsability({
    ...{ db, store, usabilityStore: createUsabilityStore(db), health, lists, clock, log, hasMail },
    findDefaults: (owner) => notifications.findDefaults(owner),
  });
  const known = catalogue.lists;
  const muting = createMuting({ store, ranges, listings, announce, lists: known, clock });
  const targets = createTargets({
    ...{ db, store, ranges, listings, muting, lists: known, urls, clock, hasMail },
    recipientDomains: config.notifyDomains,
  });
  const rangeChecks = createRangeChecks({ db, store, ranges, monitor, clock });
  const notes = createListingNotes({ db, store, listings: listingStore, clock });
  const overview = createOverview({ store: createOverviewStore(db), targets, blocklists: store, lists, health, clock });
  const discover = createDiscovery({
    resolver: platform.resolver,
    sourceAddresses: config.sourceAddresses,
    hasProxies: config.socksProxies.length > 0,
  });
  const queueDigests = createDigestQueue({
    ...{ db, store, listings, overview, lists: known, clock },
    due: (nowMs, limit) => notifications.dueDigests(nowMs, limit),
    postpone: (tx, owner, dueAtMs) => notifications.postponeDigest(tx, owner, dueAtMs),
  });
  const alerts = mailer === null ? null : createAlerts({ db, store, mailer, clock, log, queueDigests });
  return {
    catalogue,
    health,
    store,
    monitor,
    scheduler,
    targets,
    rangeChecks,
    notes,
    overview,
    discover,
    alerts,
    usability,
  };
};
