import { createAlerts } from "./blocklist/alerts.ts";
import { createBreaker } from "./blocklist/breaker.ts";
import { createMonitor, type MonitorDeps } from "./blocklist/monitor.ts";
import { createPasses } from "./blocklist/passes.ts";
import { createBlocklistStore } from "./blocklist/store.ts";
import { createTargets, type TargetsDeps } from "./blocklist/targets.ts";
import type { Log } from "./base/log.ts";
import { catalogueOf, type Outside } from "./compose-engine.ts";
import { mailerOf } from "./compose-mail.ts";
import type { Config } from "./config.ts";
import type { Db } from "./db/open.ts";
import { type Catalogue, isEnabled } from "./dnsbl/blocklist.ts";
import { createDnsbl, type Dnsbl } from "./dnsbl/dnsbl.ts";
import { organisationalDomain } from "./mail/organisational-domain.ts";

/** The catalogue in force, and lookups that can wait their turn: what monitoring and the command line ask with. */
export const composeLookups = (
  config: Config,
  { clock, random, resolver }: Outside,
): { readonly catalogue: Catalogue; readonly dnsbl: Dnsbl } => ({
  catalogue: catalogueOf(config),
  dnsbl: createDnsbl({ clock, random, resolver, registrableDomain: organisationalDomain }),
});

export interface BlocklistParts {
  readonly config: Config;
  readonly db: Db;
  readonly log: Log;
  readonly outside: Outside;
  readonly turnOnUrl: TargetsDeps["turnOnUrl"];
  readonly isUrlOff: TargetsDeps["isUrlOff"];
  readonly defaultRecipients: MonitorDeps["defaultRecipients"];
}

/** Blocklist monitoring: targets, checks and their timetable. */
export const composeBlocklist = (parts: BlocklistParts) => {
  const { config, db, log, outside, turnOnUrl, isUrlOff, defaultRecipients } = parts;
  const { clock } = outside;
  const { blocklistRetentionDays: retentionDays } = config;
  const mailer = mailerOf(config);
  const hasMail = mailer !== null;
  const { catalogue, dnsbl } = composeLookups(config, outside);
  const { lookup, health } = dnsbl;
  const store = createBlocklistStore(db);
  const lists = catalogue.lists.filter(isEnabled);
  const breaker = createBreaker({ clock, log, health, countTargets: store.countWatched });
  const monitor = createMonitor({ db, store, lists, lookup, breaker, clock, hasMail, defaultRecipients });
  const passes = createPasses({ db, store, monitor, health, lists, clock, log, retentionDays });
  const targets = createTargets({
    db,
    store,
    lists: catalogue.lists,
    turnOnUrl,
    isUrlOff,
    clock,
    hasMail,
    recipientDomains: config.notifyDomains,
  });
  const alerts = mailer === null ? null : createAlerts({ db, store, mailer, clock, log });
  return { catalogue, health, store, monitor, passes, targets, alerts };
};
