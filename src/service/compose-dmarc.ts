import type { WebhookUrls } from "../notifications/webhooks/webhook-urls.ts";
import type { Log } from "../foundation/base/log.ts";
import type { Platform } from "./compose-platform.ts";
import { composeDmarcOverview } from "./compose-dmarc-overview.ts";
import { composeHealth } from "./compose-health.ts";
import { composeIngestion } from "./compose-ingestion.ts";
import { mailboxAccount } from "./compose-mailbox.ts";
import { mailHostOf, type Config, SettingsError } from "./config.ts";
import type { Db } from "../foundation/db/open.ts";
import { createAdvisor } from "../dmarc/insight/advice/advisor.ts";
import { createAlertMails } from "../dmarc/alerts/rules/alert-mails.ts";
import { AlertJob } from "../dmarc/alerts/rules/alert-job.ts";
import { HealthStore } from "../dmarc/insight/health/health-store.ts";
import { AlertRuleStore } from "../dmarc/alerts/rules/alert-rule-store.ts";
import { DmarcAlertStore } from "../dmarc/records/domains/alert-store.ts";
import { createMailAuthentication } from "../dmarc/reports/authentication/mail-authentication.ts";
import { ScheduledChecks } from "../dmarc/records/domains/scheduled-checks.ts";
import { createDigestReader } from "../dmarc/alerts/rules/digest-facts.ts";
import { DigestJob } from "../dmarc/alerts/rules/digest-job.ts";
import { createDomainPlatforms } from "../dmarc/records/domains/domain-platform.ts";
import { createDomainCheck } from "../dmarc/records/domains/domain-check.ts";
import type { DomainRow, DomainStore } from "../dmarc/records/domains/domain-store.ts";
import { Domains, type DomainsDeps } from "../dmarc/records/domains/domains.ts";
import { Ingest, IMPORT_PACE } from "../dmarc/reports/ingest/ingest.ts";
import { type IngestStores, openIngestStores } from "../dmarc/reports/ingest/ingest-stores.ts";
import { Ingestions } from "../dmarc/reports/ingest/ingestions.ts";
import { type AlertRaiserDeps, createAlertRaiser, type RaiseAlert } from "../dmarc/records/domains/raise.ts";
import { RecordStore } from "../dmarc/insight/queries/record-store.ts";
import { ReportQueryStore } from "../dmarc/insight/queries/report-query-store.ts";
import { RollupStore } from "../dmarc/insight/sources/rollup-store.ts";
import { AddressLookups } from "../dmarc/insight/addresses/address-lookups.ts";
import type { DnsResolver } from "../foundation/net/dns.ts";
import type { Mailing } from "../notifications/mail/mail-batcher.ts";
import { GeoipFiles } from "../foundation/net/geoip-files.ts";
import type { UrlPolicy } from "../foundation/net/fetch-url.ts";

export interface DmarcParts {
  readonly config: Config;
  readonly db: Db;
  readonly log: Log;
  readonly platform: Platform;
  /** A resolver without a cache, so that a record that was just published is seen. */
  readonly freshResolver: DnsResolver;
  /** Null when the service cannot send mail. */
  readonly mailing: Mailing | null;
  readonly rules: UrlPolicy;
  readonly urls: WebhookUrls;
  readonly defaultRecipients: AlertRaiserDeps["defaultRecipients"];
}

/** The operator's GeoIP databases; null when none is set. Throws `SettingsError` when one cannot be used. */
export const geoipFilesOf = ({ geoipPaths }: Pick<Config, "geoipPaths">, log: Log): GeoipFiles | null => {
  if (geoipPaths.length === 0) return null;
  const files = GeoipFiles.open(geoipPaths, log);
  if (!files.ok) throw new SettingsError(files.error.map((problem) => `POSTWARDEN_GEOIP_DB: ${problem}`));
  return files.value;
};

/**
 * Imports reports by a command, without a running service. Files are trusted, because the operator has them; mail that arrived by
 * SMTP is authenticated as in the service.
 */
export const composeImport = (db: Db, { clock, resolver }: Pick<Platform, "clock" | "resolver">, log: Log) => {
  const stores = openIngestStores(db);
  const authenticate = createMailAuthentication({ resolver, clock, log });
  const ingest = new Ingest({ db, clock, log }, { stores, authenticate, pace: IMPORT_PACE });
  const ingestions = new Ingestions({ db, clock }, { store: stores.ingestions, ingest, kick: () => undefined });
  return { ...stores, ingestions, ingest };
};

/** DMARC monitoring: domains and their DNS checks, reports and their queries, alerts. */
export const composeDmarc = (parts: DmarcParts) => {
  const { db, log, platform, freshResolver, rules } = parts;
  const { clock } = platform;
  const runtime = { db, clock, log };
  const [stores, alertStore] = [openIngestStores(db), new DmarcAlertStore(db)];
  const hasMail = parts.mailing !== null;
  const raise = createAlertRaiser({ store: alertStore, hasMail, defaultRecipients: parts.defaultRecipients });
  const domains = composeDomains(parts, { store: stores.domains, raise, hasMail });
  const findDomain: Domains["find"] = (caller, id) => domains.find(caller, id);
  const checks = new ScheduledChecks(runtime, stores.domains, domains);
  const ingestion = composeIngestion(parts, stores);
  const rollups = new RollupStore(db);
  const [records, reports] = [new RecordStore(db), new ReportQueryStore(db)];
  const advise = composeAdvisor(parts, stores.domains);
  const alerts = composeAlerts(parts, { stores, alertStore, raise, rollups, records, advise });
  const overview = composeDmarcOverview(runtime, { domains: stores.domains, raised: alertStore, rollups, advise });
  const addresses = composeAddressLookups(parts);
  const health = composeHealth(runtime, { resolver: platform.resolver, freshResolver, rules });
  const adviseNow = (domain: DomainRow) => db.snapshot(() => advise(domain));
  const context = { db, clock, rollups, records, reports, findDomain };
  return {
    ...ingestion.receiving,
    ...{ domains, rollups, advise: adviseNow, overview: overview.overview, context, stores, alertStore },
    pages: {
      ...{ clock, domains, advise: adviseNow, overview: overview.overview, health: health.runs },
      ...{ ...ingestion.pages, rules, hasMail },
    },
    /** What an operator must look at. */
    findings: () => [...ingestion.findings(), ...addresses.findings()],
    jobs: {
      checkDomains: () => checks.run(),
      findAddressFacts: () => addresses.run(),
      ...{ sumUpDomains: overview.sumUpDomains, checkDomainHealth: health.checkDomainHealth },
      ...ingestion.jobs,
      ...alerts.jobs,
    },
    /** Removes what a crash left incomplete, then processes the ingestion queue. */
    async start(): Promise<void> {
      await checks.spreadBacklog();
      await ingestion.start();
    },
    async stop(): Promise<void> {
      addresses.stop();
      alerts.stop();
      overview.stop();
      await Promise.all([domains.stop(), health.stop(), ingestion.stop()]);
    },
  };
};

export type Dmarc = ReturnType<typeof composeDmarc>;

const composeDomains = (
  { config, db, platform: { clock }, freshResolver, urls }: DmarcParts,
  deps: Pick<DomainsDeps, "store" | "raise" | "hasMail">,
): Domains => {
  const { reportHost, imap, notifyDomains: recipientDomains } = config;
  const mailbox = imap?.address ?? null;
  const platforms = createDomainPlatforms({
    resolver: freshResolver,
    reportHost,
    mailbox,
    mailHost: mailHostOf(config),
  });
  const ownsMailbox = (accountId: string): boolean => {
    const owner = mailboxAccount(db, imap?.account ?? null);
    return owner.ok && owner.value === accountId;
  };
  const check = createDomainCheck(clock, platforms);
  return new Domains(
    { db, clock },
    {
      ...{ ...deps, platforms, check, urls, recipientDomains, ownsMailbox },
      rawRetentionDays: config.reportMailRetentionDays,
    },
  );
};

/** Advice uses trusted reports only. */
const composeAdvisor = ({ db, platform: { clock, resolver } }: DmarcParts, domains: DomainStore) => {
  const health = new HealthStore(db);
  return createAdvisor({
    ...{ resolver, clock, domains },
    reading: new RollupStore(db, { trustedOnly: true }),
    readHealth: (number) => health.readHealth(number),
  });
};

interface AlertParts {
  readonly stores: IngestStores;
  readonly alertStore: DmarcAlertStore;
  readonly raise: RaiseAlert;
  readonly rollups: RollupStore;
  readonly records: RecordStore;
  readonly advise: ReturnType<typeof createAdvisor>;
}

const composeAlerts = (
  { db, log, platform: { clock }, mailing }: DmarcParts,
  { stores: { domains }, alertStore, raise, rollups, records, advise }: AlertParts,
) => {
  const runtime = { db, clock, log };
  const job = new AlertJob(runtime, {
    all: { rollups, rules: new AlertRuleStore(db) },
    trusted: {
      rollups: new RollupStore(db, { trustedOnly: true }),
      rules: new AlertRuleStore(db, { trustedOnly: true }),
    },
    ...{ alerts: alertStore, domains, records, raise },
  });
  const read = createDigestReader({ reading: rollups, advise });
  const mails = mailing === null ? null : createAlertMails(runtime, mailing);
  const digests = mailing === null ? null : new DigestJob(runtime, { domains, read, mailing });
  return {
    jobs: {
      raiseDmarcAlerts: () => job.run(),
      mailDmarcAlerts: async () => mails?.send(),
      mailDigests: async () => digests?.run(),
    },
    stop: (): void => job.stop(),
  };
};

const composeAddressLookups = ({ config, db, log, platform: { clock, resolver } }: DmarcParts) => {
  const geoip = geoipFilesOf(config, log);
  const options = { resolver, geoip, hasAsnLookup: config.asnLookup === "dns" };
  const lookups = new AddressLookups({ db, clock, log }, options);
  return { run: () => lookups.run(), stop: (): void => lookups.stop(), findings: () => geoip?.findings() ?? [] };
};
