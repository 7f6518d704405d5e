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
import { createDmarcAlertStore } from "./dmarc/domains/alert-store.ts";
import { createAuthenticationJob } from "./dmarc/authentication/authentication-job.ts";
import { createAuthenticationStore } from "./dmarc/authentication/authentication-store.ts";
import { createMailAuthentication } from "./dmarc/authentication/mail-authentication.ts";
import { createScheduledChecks } from "./dmarc/domains/scheduled-checks.ts";
import { createDigestReader } from "./dmarc/alerts/digest-facts.ts";
import { DigestJob } from "./dmarc/alerts/digest-job.ts";
import { createDomainCheck } from "./dmarc/domains/domain-check.ts";
import { createDomainRoutes } from "./dmarc/domains/domain-routes.ts";
import { createReportAuthorStore } from "./dmarc/domains/report-author-store.ts";
import { createDomainStore } from "./dmarc/domains/domain-store.ts";
import { createDomains } from "./dmarc/domains/domains.ts";
import { createIngest, IMPORT_PACE } from "./dmarc/ingest/ingest.ts";
import { createCountStore } from "./dmarc/ingest/count-store.ts";
import { createIngestionWorker } from "./dmarc/ingest/ingestion-worker.ts";
import { createIngestionRoutes } from "./dmarc/ingest/ingestion-routes.ts";
import { createIngestionStore } from "./dmarc/ingest/ingestion-store.ts";
import { createIngestions } from "./dmarc/ingest/ingestions.ts";
import { createReportIntake } from "./dmarc/ingest/report-intake.ts";
import { createDiskReserve } from "./dmarc/ingest/disk-reserve.ts";
import { createAlertRaiser, type AlertRaiserDeps } from "./dmarc/domains/raise.ts";
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
  /** A resolver that keeps nothing: a record that was just published is to be seen. */
  readonly freshResolver: DnsResolver;
  readonly baseUrl: string;
  readonly guard: Guard;
  readonly rules: UrlPolicy;
  readonly urls: WebhookUrls;
  readonly defaultRecipients: AlertRaiserDeps["defaultRecipients"];
}

/** What reports are written into. */
const ingestStoresOf = (db: Db) => ({
  domains: createDomainStore(db),
  ingestions: createIngestionStore(db),
  reports: createReportStore(db),
  counts: createCountStore(db),
  authors: createReportAuthorStore(db),
});

/** The user's GeoIP databases; null when none is set. Throws `SettingsError` when one cannot be used. */
export const geoipFilesOf = ({ geoipPaths }: Pick<Config, "geoipPaths">, log: Log): GeoipFiles | null => {
  if (geoipPaths.length === 0) return null;
  const files = GeoipFiles.open(geoipPaths, log);
  if (!files.ok) throw new SettingsError(files.error.map((problem) => `POSTWARDEN_GEOIP_DB: ${problem}`));
  return files.value;
};

/**
 * Reports read by a command: what the service does with uploads and with what is to be read again, without a service. Whoever
 * has files at hand vouches for them; a mail that came by SMTP is judged as the service judges it.
 */
export const composeImport = (db: Db, { clock, resolver }: Pick<Platform, "clock" | "resolver">, log: Log) => {
  const stores = ingestStoresOf(db);
  const authenticate = createMailAuthentication({ resolver, clock, log });
  const ingest = createIngest({ db, stores, clock, log, authenticate, pace: IMPORT_PACE });
  const ingestions = createIngestions({ db, store: stores.ingestions, ingest, clock, kick: () => undefined });
  return { ...stores, ingestions, ingest };
};

/** DMARC monitoring: domains and their checks, reports and what is read in them, alerts. */
export const composeDmarc = (parts: DmarcParts) => {
  const { config, db, log, platform, freshResolver, baseUrl, guard, rules, urls, defaultRecipients } = parts;
  const { clock, resolver } = platform;
  const { reportHost } = config;
  const mailer = mailerOf(config);
  const hasMail = mailer !== null;

  const alertStore = createDmarcAlertStore(db);
  const raise = createAlertRaiser({ store: alertStore, hasMail, defaultRecipients });
  const stores = ingestStoresOf(db);
  const store = stores.domains;
  const check = createDomainCheck({ resolver: freshResolver, clock, reportHost });
  const mailHost = mailHostOf(config);
  const domains = createDomains({
    ...{ db, store, check, raise, urls, clock, hasMail, reportHost, mailHost },
    recipientDomains: config.notifyDomains,
  });
  const checkPasses = createScheduledChecks({ db, store, domains, clock, log });

  const authenticate = createMailAuthentication({ resolver, clock, log });
  const ingest = createIngest({ db, stores, clock, log, authenticate });
  const reserve = createDiskReserve({ db, clock, log });
  const ingester = createIngestionWorker({ ...{ db, ingest, reserve, clock, log }, store: stores.ingestions });
  const { kick } = ingester;
  const intake = createReportIntake({ db, store: stores.ingestions, domains: store, clock, kick });
  const mailbox = composeMailbox(config.imap, { db, log, intake, ingester, reserve, ...platform });
  const ingestions = createIngestions({ db, store: stores.ingestions, ingest, clock, kick });
  const authenticity = createAuthenticationJob({
    ...{ db, clock, log, check: authenticate },
    store: createAuthenticationStore(db),
  });

  const reading = new RollupStore(db);
  const figures = createFigureReader(reading, clock);
  const records = new RecordStore(db);
  const reports = new ReportQueryStore(db);
  const trusted = new RollupStore(db, { trustedOnly: true });
  const { readHealth } = createHealthStore(db);
  const advise = createAdvisor({
    resolver,
    clock,
    domains: store,
    reading: trusted,
    readHealth,
  });
  const geoip = geoipFilesOf(config, log);
  const hasAsnLookup = config.asnLookup === "dns";
  const addressFacts = createAddressLookups({ db, clock, log, resolver, hasAsnLookup, geoip });

  const alertJob = new AlertJob(
    { db, clock, log },
    {
      all: { rollups: reading, rules: new AlertRuleStore(db) },
      trusted: { rollups: trusted, rules: new AlertRuleStore(db, { trustedOnly: true }) },
      ...{ alerts: alertStore, domains: store, records, raise },
    },
  );
  const read = createDigestReader({ reading, advise });
  const mails =
    mailer === null
      ? null
      : {
          alerts: createAlertMails({ db, clock, log }, { mailer, baseUrl }),
          digests: new DigestJob({ db, clock, log }, { domains: store, read, mailer, baseUrl }),
        };

  const names = createNameRetention({ db, store: createNameRetentionStore(db), clock, keysOf: possibleKeysOf });
  const retention = createRetention({ db, store: createRetentionStore(db), names, domains: store, clock, log });
  const rebuild = createSourceRebuild({
    ...{ db, clock, log, counts: stores.counts, pause: paceOf(clock) },
    store: createSourceRebuildStore(db),
  });
  const findDomain = domains.find;
  const health = composeHealth({ db, log, platform, freshResolver, rules, guard, findDomain });
  return {
    store,
    intake,
    authors: stores.authors,
    authenticate,
    reserve,
    ingester,
    routes: [
      createDomainRoutes({ guard, domains, figures, rules }),
      createIngestionRoutes({ guard, ingestions, domains: store, reserve, clock }),
      serveRoutes(guard, [
        ...createQueryRoutes({ db, clock, rollups: reading, records, reports, findDomain }, stores.reports.failures),
        ...createAdviceRoutes({ findDomain, advise: (domain) => db.snapshot(() => advise(domain)) }),
      ]),
      createAlertRoutes({ guard, store: alertStore, findDomain }),
      health.routes,
    ],
    /** What an operator has to look at. */
    findings: () =>
      [reserve.finding(), mailbox?.finding(), ...(geoip?.findings() ?? [])].filter((one) => typeof one === "string"),
    /** What the timetable does. */
    jobs: {
      checkDomains: checkPasses.run,
      raiseDmarcAlerts: () => alertJob.run(),
      mailDmarcAlerts: async () => mails?.alerts.send(),
      mailDigests: async () => mails?.digests.run(),
      proveReportMails: authenticity.run,
      findAddressFacts: addressFacts.run,
      checkDomainHealth: health.checkDomainHealth,
      async forgetOldReports(): Promise<void> {
        await retention.forgetRaw();
        await retention.forgetReports();
        await retention.forgetHistory();
      },
      purgeDeletedDomains: retention.purgeDeleted,
      rebuildSources: rebuild.run,
    },
    /** Removes what a crash left half written, then works off what waits to be read. */
    async start(): Promise<void> {
      await checkPasses.spreadBacklog();
      await ingest.removeIncomplete();
      ingester.start();
      mailbox?.start();
    },
    async stop(): Promise<void> {
      addressFacts.stop();
      authenticity.stop();
      alertJob.stop();
      await mailbox?.stop();
      await Promise.all([domains.stop(), health.stop(), ingester.stop(), retention.stop(), rebuild.stop()]);
    },
  };
};

export type Dmarc = ReturnType<typeof composeDmarc>;
