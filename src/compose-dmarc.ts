import type { WebhookUrls } from "./webhooks/webhook-urls.ts";
import type { Log } from "./base/log.ts";
import type { Platform } from "./compose-engine.ts";
import { composeHealth } from "./compose-health.ts";
import { mailerOf } from "./compose-mail.ts";
import { composeMailbox } from "./compose-mailbox.ts";
import { mailHostOf, type Config, SettingsError } from "./config.ts";
import type { Db } from "./db/open.ts";
import { createAdvisor } from "./dmarc/advice/advice-for.ts";
import { createAlertMails } from "./dmarc/alerts/alert-mails.ts";
import { AlertJob } from "./dmarc/alerts/alert-job.ts";
import { createHealthStore } from "./dmarc/health/health-store.ts";
import { createAlertRoutes } from "./dmarc/alerts/alert-routes.ts";
import { AlertRuleStore } from "./dmarc/alerts/alert-rule-store.ts";
import { DmarcAlertStore } from "./dmarc/domains/alert-store.ts";
import { createAuthenticationJob } from "./dmarc/authentication/authentication-job.ts";
import { createAuthenticationStore } from "./dmarc/authentication/authentication-store.ts";
import { createMailAuthentication } from "./dmarc/authentication/mail-authentication.ts";
import { ScheduledChecks } from "./dmarc/domains/scheduled-checks.ts";
import { createDigestReader } from "./dmarc/alerts/digest-facts.ts";
import { DigestJob } from "./dmarc/alerts/digest-job.ts";
import { createDomainPlatforms } from "./dmarc/domains/domain-platform.ts";
import { createDomainCheck } from "./dmarc/domains/domain-check.ts";
import { createDomainRoutes } from "./dmarc/domains/domain-routes.ts";
import { createReportAuthorStore } from "./dmarc/domains/report-author-store.ts";
import { DomainStore } from "./dmarc/domains/domain-store.ts";
import { Domains, type DomainsDeps } from "./dmarc/domains/domains.ts";
import { createIngest, IMPORT_PACE } from "./dmarc/ingest/ingest.ts";
import { createCountStore } from "./dmarc/ingest/count-store.ts";
import { createIngestionWorker } from "./dmarc/ingest/ingestion-worker.ts";
import { createIngestionRoutes } from "./dmarc/ingest/ingestion-routes.ts";
import { createIngestionStore } from "./dmarc/ingest/ingestion-store.ts";
import { createIngestions } from "./dmarc/ingest/ingestions.ts";
import { createReportIntake } from "./dmarc/ingest/report-intake.ts";
import { createDiskReserve } from "./dmarc/ingest/disk-reserve.ts";
import { type AlertRaiserDeps, createAlertRaiser, type RaiseAlert } from "./dmarc/domains/raise.ts";
import { createFigureReader } from "./dmarc/queries/domain-figures.ts";
import { RecordStore } from "./dmarc/queries/record-store.ts";
import { ReportQueryStore } from "./dmarc/queries/report-query-store.ts";
import { RollupStore } from "./dmarc/sources/rollup-store.ts";
import { createReportStore } from "./dmarc/ingest/report-store.ts";
import { createRetention } from "./dmarc/ingest/retention.ts";
import { createNameRetention } from "./dmarc/ingest/retention-names.ts";
import { createNameRetentionStore } from "./dmarc/ingest/retention-names-store.ts";
import { createRetentionStore } from "./dmarc/ingest/retention-store.ts";
import { createSourceRebuild, paceOf } from "./dmarc/ingest/source-rebuild.ts";
import { createSourceRebuildStore } from "./dmarc/ingest/source-rebuild-store.ts";
import { createAddressLookups } from "./dmarc/addresses/address-lookups.ts";
import { possibleKeysOf } from "./dmarc/sources/possible-keys.ts";
import { createQueryRoutes } from "./dmarc/queries/query-routes.ts";
import { createAdviceRoutes } from "./dmarc/advice/advice-routes.ts";
import { serveRoutes } from "./http/route.ts";
import type { Guard } from "./http/guard.ts";
import type { DnsResolver } from "./net/dns.ts";
import { GeoipFiles } from "./net/geoip-files.ts";
import type { UrlPolicy } from "./net/fetch-url.ts";

export interface DmarcParts {
  readonly config: Config;
  readonly db: Db;
  readonly log: Log;
  readonly platform: Platform;
  /** A resolver without a cache, so that a record that was just published is seen. */
  readonly freshResolver: DnsResolver;
  readonly baseUrl: string;
  readonly guard: Guard;
  readonly rules: UrlPolicy;
  readonly urls: WebhookUrls;
  readonly defaultRecipients: AlertRaiserDeps["defaultRecipients"];
}

/** The stores that reports are written into. */
const ingestStoresOf = (db: Db) => ({
  domains: new DomainStore(db),
  ingestions: createIngestionStore(db),
  reports: createReportStore(db),
  counts: createCountStore(db),
  authors: createReportAuthorStore(db),
});

type IngestStores = ReturnType<typeof ingestStoresOf>;

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
  const stores = ingestStoresOf(db);
  const authenticate = createMailAuthentication({ resolver, clock, log });
  const ingest = createIngest({ db, stores, clock, log, authenticate, pace: IMPORT_PACE });
  const ingestions = createIngestions({ db, store: stores.ingestions, ingest, clock, kick: () => undefined });
  return { ...stores, ingestions, ingest };
};

/** DMARC monitoring: domains and their DNS checks, reports and their queries, alerts. */
export const composeDmarc = (parts: DmarcParts) => {
  const { config, db, log, platform, freshResolver, guard, rules } = parts;
  const { clock } = platform;
  const runtime = { db, clock, log };
  const stores = ingestStoresOf(db);
  const alertStore = new DmarcAlertStore(db);
  const hasMail = mailerOf(config) !== null;
  const raise = createAlertRaiser({ store: alertStore, hasMail, defaultRecipients: parts.defaultRecipients });
  const domains = composeDomains(parts, { store: stores.domains, raise, hasMail });
  const findDomain: Domains["find"] = (caller, id) => domains.find(caller, id);
  const checks = new ScheduledChecks(runtime, stores.domains, domains);
  const ingestion = composeIngestion(parts, stores);
  const rollups = new RollupStore(db);
  const records = new RecordStore(db);
  const reports = new ReportQueryStore(db);
  const advise = composeAdvisor(parts, stores.domains);
  const alerts = composeAlerts(parts, { stores, alertStore, raise, rollups, records, advise });
  const addresses = composeAddressLookups(parts);
  const health = composeHealth({ db, log, platform, freshResolver, rules, guard, findDomain });
  return {
    ...ingestion.receiving,
    routes: [
      ...ingestion.routes,
      serveRoutes(guard, [
        ...createDomainRoutes(domains, createFigureReader(rollups, clock), rules),
        ...createQueryRoutes({ db, clock, rollups, records, reports, findDomain }, stores.reports.failures),
        ...createAdviceRoutes({ findDomain, advise: (domain) => db.snapshot(() => advise(domain)) }),
      ]),
      createAlertRoutes({ guard, store: alertStore, findDomain }),
      health.routes,
    ],
    /** What an operator must look at. */
    findings: () => [...ingestion.findings(), ...addresses.findings()],
    jobs: {
      checkDomains: () => checks.run(),
      findAddressFacts: () => addresses.run(),
      checkDomainHealth: health.checkDomainHealth,
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
      await Promise.all([domains.stop(), health.stop(), ingestion.stop()]);
    },
  };
};

export type Dmarc = ReturnType<typeof composeDmarc>;

const composeDomains = (
  { config, db, platform: { clock }, freshResolver, urls }: DmarcParts,
  deps: Pick<DomainsDeps, "store" | "raise" | "hasMail">,
): Domains => {
  const { reportHost, notifyDomains: recipientDomains } = config;
  const platforms = createDomainPlatforms({ resolver: freshResolver, reportHost, mailHost: mailHostOf(config) });
  const check = createDomainCheck(clock, platforms);
  return new Domains({ db, clock }, { ...deps, platforms, check, urls, recipientDomains });
};

/** Reports from mail, mailbox and upload into the database, and out again after their retention. */
const composeIngestion = ({ config, db, log, platform, guard }: DmarcParts, stores: IngestStores) => {
  const { clock, resolver } = platform;
  const { domains, ingestions: store } = stores;
  const authenticate = createMailAuthentication({ resolver, clock, log });
  const ingest = createIngest({ db, stores, clock, log, authenticate });
  const reserve = createDiskReserve({ db, clock, log });
  const ingester = createIngestionWorker({ ...{ db, ingest, reserve, clock, log }, store });
  const { kick } = ingester;
  const intake = createReportIntake({ db, store, domains, clock, kick });
  const mailbox = composeMailbox(config.imap, { db, log, intake, ingester, reserve, ...platform });
  const ingestions = createIngestions({ db, store, ingest, clock, kick });
  const authentication = createAuthenticationJob({
    ...{ db, clock, log, check: authenticate },
    store: createAuthenticationStore(db),
  });
  const names = createNameRetention({ db, store: createNameRetentionStore(db), clock, keysOf: possibleKeysOf });
  const retention = createRetention({ db, store: createRetentionStore(db), names, domains, clock, log });
  const rebuild = createSourceRebuild({
    ...{ db, clock, log, counts: stores.counts, pause: paceOf(clock) },
    store: createSourceRebuildStore(db),
  });
  return {
    receiving: { store: domains, intake, authors: stores.authors, authenticate, reserve, ingester },
    routes: [createIngestionRoutes({ guard, ingestions, domains, reserve, clock })],
    findings: () => [reserve.finding(), mailbox?.finding()].filter((one) => typeof one === "string"),
    jobs: {
      proveReportMails: authentication.run,
      async forgetOldReports(): Promise<void> {
        await retention.forgetRaw();
        await retention.forgetReports();
        await retention.forgetHistory();
      },
      purgeDeletedDomains: retention.purgeDeleted,
      rebuildSources: rebuild.run,
    },
    async start(): Promise<void> {
      await ingest.removeIncomplete();
      ingester.start();
      mailbox?.start();
    },
    async stop(): Promise<void> {
      authentication.stop();
      await mailbox?.stop();
      await Promise.all([ingester.stop(), retention.stop(), rebuild.stop()]);
    },
  };
};

/** Advice uses trusted reports only. */
const composeAdvisor = ({ db, platform: { clock, resolver } }: DmarcParts, domains: DomainStore) => {
  const { readHealth } = createHealthStore(db);
  return createAdvisor({ resolver, clock, domains, reading: new RollupStore(db, { trustedOnly: true }), readHealth });
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
  { config, db, log, platform: { clock }, baseUrl }: DmarcParts,
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
  const mailer = mailerOf(config);
  const read = createDigestReader({ reading: rollups, advise });
  const mails = mailer === null ? null : createAlertMails(runtime, { mailer, baseUrl });
  const digests = mailer === null ? null : new DigestJob(runtime, { domains, read, mailer, baseUrl });
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
  const lookups = createAddressLookups({
    ...{ db, clock, log, resolver, geoip },
    hasAsnLookup: config.asnLookup === "dns",
  });
  return { run: lookups.run, stop: (): void => lookups.stop(), findings: () => geoip?.findings() ?? [] };
};
