import { inAdviceTurn } from "./insight/sources/domain-sources.ts";
import { isIP } from "node:net";
import { SettingsError, type Result } from "../foundation/base/errors.ts";
import type { Log } from "../foundation/base/log.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import type { DnsResolver } from "../foundation/net/dns.ts";
import { createGetter, type UrlPolicy } from "../foundation/net/fetch-url.ts";
import { GeoipFiles } from "../foundation/net/geoip-files.ts";
import type { Platform } from "../foundation/net/platform.ts";
import type { Outbound } from "../notifications/open.ts";
import { DmarcOverview } from "./alerts/overview/dmarc-overview.ts";
import { OverviewJob } from "./alerts/overview/overview-job.ts";
import { DomainOverviewStore } from "./alerts/overview/domain-overview-store.ts";
import { AlertJob } from "./alerts/rules/alert-job.ts";
import { createAlertMails } from "./alerts/rules/alert-mails.ts";
import { AlertRuleStore } from "./alerts/rules/alert-rule-store.ts";
import { OpenAlertStore } from "./alerts/rules/open-alert-store.ts";
import { ALERT_RULES } from "./alerts/rules/alert-rules.ts";
import { createDigestReader } from "./alerts/rules/digest-mail.ts";
import { DigestJob } from "./alerts/rules/digest-job.ts";
import { AddressLookups } from "./insight/addresses/address-lookups.ts";
import { createAdvisor, type Advisor } from "./insight/advice/advisor.ts";
import { HealthJob, HealthRuns, createHealthCheck } from "./insight/health/health.ts";
import { HealthStore } from "./insight/health/health-store.ts";
import { RecordHistoryStore } from "./insight/health/record-history.ts";
import { RecordHistory } from "./insight/queries/record-history-routes.ts";
import { type HostingDeps, MtaStsHosting } from "./insight/sts/hosting.ts";
import { DomainHosting } from "./insight/sts/hosting-routes.ts";
import type { QueryContext } from "./insight/queries/domain-query.ts";
import { RecordStore } from "./insight/queries/record-store.ts";
import { ReportQueryStore } from "./insight/queries/report-query-store.ts";
import { StrangerStore } from "./insight/sources/strangers.ts";
import { possibleKeysOf } from "./insight/sources/source-keys.ts";
import { RollupStore } from "./insight/sources/rollup-store.ts";
import { DmarcAlertStore, createAlertRaiser, type RaiseAlert } from "./records/domains/alert-store.ts";
import { createDomainCheck } from "./records/domains/domain-check.ts";
import { createDomainPlatforms } from "./records/domains/domain-platform.ts";
import { Domains } from "./records/domains/domains.ts";
import { ReportShares } from "./records/domains/shares.ts";
import { TagDigests } from "./records/domains/tag-digests.ts";
import { DomainTags } from "./tag-routes.ts";
import { ScheduledChecks } from "./records/domains/domain-monitor.ts";
import { PolicyStore } from "./records/sts/policy-store.ts";
import { ServedPolicies } from "./records/sts/served-policies.ts";
import { openIngestStores, type IngestStores } from "./reports/ingest/ingest-stores.ts";
import { openFileReader, ReportsSlice, type ReportsSettings } from "./reports/open.ts";

interface DmarcSettings extends ReportsSettings {
  /** The operator's GeoIP databases. */
  readonly geoipPaths: readonly string[];
  readonly asnLookup: "dns" | "off";
  /** The domain of the report addresses. */
  readonly reportHost: string | null;
  readonly notifyDomains: readonly string[];
  /** The public URL of the service. */
  readonly baseUrl: string | null;
  /** Threads beside the event loop. */
  readonly workers: number;
}

interface DmarcDeps {
  readonly platform: Pick<Platform, "resolver">;
  /** A resolver without a cache, so that a record that was just published is seen. */
  readonly freshResolver: DnsResolver;
  readonly outbound: Outbound;
  /** The URL of this service. */
  readonly publicUrl: string;
  /** The name of this machine in MX records; null where it has none. */
  readonly mailHost: string | null;
  /** The path of `main.ts`, from which threads are started. */
  readonly program: string;
  /** The id of the account with this name, or with null of the only account. The error is a sentence. */
  readonly accountOf: (name: string | null) => Result<string, string>;
}

/** The operator's GeoIP databases; null when none is set. Throws `SettingsError` when one cannot be used. */
const geoipFilesOf = ({ geoipPaths }: Pick<DmarcSettings, "geoipPaths">, log: Log) => {
  if (geoipPaths.length === 0) return null;
  const files = GeoipFiles.open(geoipPaths, log);
  if (!files.ok) throw new SettingsError(files.error.map((problem) => `POSTWARDEN_GEOIP_DB: ${problem}`));
  return files.value;
};

/** The host name in a URL; null for an address, which a CNAME record cannot name. */
const hostOf = (url: string | null): string | null => {
  const host = url === null ? "" : new URL(url).hostname;
  return host.includes(".") && isIP(host) === 0 && !host.startsWith("[") ? host : null;
};

/** The health of domains without a service, for the command line. */
export const openHealthCheck = ({ clock, resolver }: Pick<Platform, "clock" | "resolver">, rules: UrlPolicy) =>
  createHealthCheck({ resolver, clock, get: createGetter({ resolver, rules, clock }) });

/** DMARC monitoring: domains and their DNS checks, reports and their queries, alerts. */
export class DmarcSlice {
  readonly stores: IngestStores;
  readonly domains: Domains;
  readonly reports: ReportsSlice;
  readonly rollups: RollupStore;
  readonly overview: DmarcOverview;
  readonly health: HealthRuns;
  readonly recordHistory: RecordHistory;
  readonly context: QueryContext;
  readonly raised: DmarcAlertStore;
  readonly shares: ReportShares;
  readonly tags: DomainTags;
  readonly servedPolicies: ServedPolicies;
  readonly domainHosting: DomainHosting;
  /** What the cron table runs, by name. */
  readonly jobs: Readonly<Record<DmarcJobName, () => Promise<unknown>>>;
  readonly #hosting: MtaStsHosting;
  readonly #tagDigests: TagDigests;
  readonly #advise: Advisor;
  readonly #checks: ScheduledChecks;
  readonly #addresses: AddressLookups;
  readonly #geoip: GeoipFiles | null;
  readonly #alertJob: AlertJob;
  readonly #overviewJob: OverviewJob;

  constructor(
    private readonly runtime: Runtime,
    settings: DmarcSettings,
    deps: DmarcDeps,
  ) {
    const { db, clock, log } = runtime;
    const [{ resolver }, { accountOf }] = [deps.platform, deps];
    const [stores, alertStore] = [openIngestStores(db), new DmarcAlertStore(db)];
    const [health, history] = [new HealthStore(db), new RecordHistoryStore(db)];
    const raise = openRaiser(deps.outbound, alertStore);
    this.stores = stores;
    this.domains = openDomains(runtime, settings, { ...deps, stores, raise });
    this.#checks = new ScheduledChecks(runtime, stores.domains, this.domains);
    const reader = openFileReader(runtime, settings, deps.program);
    this.reports = new ReportsSlice(runtime, settings, { stores, resolver, keysOf: possibleKeysOf, accountOf, reader });
    const [rollups, trusted] = [new RollupStore(db), new RollupStore(db, { trustedOnly: true })];
    const [records, reports] = [new RecordStore(db), new ReportQueryStore(db)];
    this.rollups = rollups;
    this.#hosting = openHosting(runtime, { raise, reports, domains: stores.domains, resolver: deps.freshResolver });
    this.servedPolicies = this.#hosting.served;
    this.#advise = createAdvisor({
      records,
      openAlerts: (row) => this.overview.openAlertsOf(row, row).map(({ title }) => title),
      resolver,
      clock,
      domains: stores.domains,
      reading: trusted,
      readHealth: (number) => health.readHealth(number),
      strangers: new StrangerStore(db),
    });
    const findDomain: QueryContext["findDomain"] = (caller, id) => this.domains.find(caller, id);
    this.context = { db, clock, rollups, records, reports, findDomain };
    this.recordHistory = new RecordHistory(history, findDomain);
    const hosting = { hosting: this.#hosting, serviceHost: hostOf(settings.baseUrl) };
    this.domainHosting = new DomainHosting({ ...hosting, clock, findDomain });
    [this.raised, this.shares] = [alertStore, new ReportShares(runtime, deps.publicUrl)];
    this.#alertJob = new AlertJob(runtime, {
      all: { rollups, rules: new AlertRuleStore(db) },
      trusted: { rollups: trusted, rules: new AlertRuleStore(db, { trustedOnly: true }) },
      alerts: alertStore,
      domains: stores.domains,
      records,
      raise,
    });
    const [overviews, alerts, { domains }] = [new DomainOverviewStore(db), new OpenAlertStore(db), stores];
    this.#overviewJob = new OverviewJob(runtime, { store: overviews, rollups, domains, advise: this.#advise });
    this.overview = new DmarcOverview(runtime, { overviews, alerts, raised: alertStore, domains });
    const hasMail = deps.outbound.mailing !== null;
    this.#tagDigests = new TagDigests(runtime, { domains, hasMail, recipientDomains: settings.notifyDomains });
    this.tags = new DomainTags(this.overview, this.#tagDigests);
    this.#geoip = geoipFilesOf(settings, log);
    const hasAsnLookup = settings.asnLookup === "dns";
    this.#addresses = new AddressLookups(runtime, { resolver, geoip: this.#geoip, hasAsnLookup });
    const check = openHealthCheck({ clock, resolver }, deps.outbound.rules);
    const hostedPolicy = this.#hosting.textOf.bind(this.#hosting);
    const healthDeps = { store: health, history, check, resolver: deps.freshResolver, hostedPolicy };
    this.health = new HealthRuns(runtime, { ...healthDeps, domains: this.domains });
    this.jobs = this.#jobsOf(deps.outbound, new HealthJob(runtime, { store: health, runs: this.health }));
  }

  /** Advice about a domain for a request. */
  readonly advise: Advisor = (domain) => inAdviceTurn(domain, () => this.#advise(domain));

  /** What an operator must look at. */
  findings(): readonly string[] {
    return [...this.reports.findings(), ...(this.#geoip?.findings() ?? [])];
  }

  /** Removes what a crash left incomplete, then processes the ingestion queue. */
  async start(): Promise<void> {
    await this.#checks.spreadBacklog();
    await this.reports.start();
  }

  async stop(): Promise<void> {
    this.#addresses.stop();
    this.#alertJob.stop();
    this.#overviewJob.stop();
    this.#hosting.stop();
    await Promise.all([this.domains.stop(), this.health.stop(), this.reports.stop()]);
  }

  #jobsOf({ mailing }: Outbound, healthJob: HealthJob): DmarcSlice["jobs"] {
    const runtime = this.runtime;
    const { reports, rollups, stores } = this;
    const read = createDigestReader({ reading: rollups, advise: this.#advise });
    const mails = mailing === null ? null : createAlertMails(runtime, mailing);
    const digests =
      mailing === null
        ? null
        : new DigestJob(runtime, { domains: stores.domains, read, mailing, tags: this.#tagDigests.store });
    return {
      checkDomains: () => this.#checks.run(),
      checkPolicies: () => this.#hosting.checkDue(),
      findAddressFacts: () => this.#addresses.run(),
      sumUpDomains: () => this.#overviewJob.run(),
      checkDomainHealth: () => healthJob.run(),
      authenticateReportMails: () => reports.authenticateMails(),
      expireReports: () => reports.expire(),
      purgeDeletedDomains: () => reports.purgeDeletedDomains(),
      rebuildSources: () => reports.rebuildSources(),
      raiseDmarcAlerts: () => this.#alertJob.run(),
      mailDmarcAlerts: async () => mails?.send(),
      mailDigests: async () => digests?.run(),
    };
  }
}

type DmarcJobName =
  | "checkDomains"
  | "checkPolicies"
  | "findAddressFacts"
  | "sumUpDomains"
  | "checkDomainHealth"
  | "authenticateReportMails"
  | "expireReports"
  | "purgeDeletedDomains"
  | "rebuildSources"
  | "raiseDmarcAlerts"
  | "mailDmarcAlerts"
  | "mailDigests";

const openRaiser = ({ mailing, defaults }: Outbound, store: DmarcAlertStore): RaiseAlert =>
  createAlertRaiser({
    rules: ALERT_RULES,
    store,
    hasMail: mailing !== null,
    defaultRecipients: (owner) => defaults.findDefaults(owner).recipients,
  });

const openHosting = (runtime: Runtime, deps: Omit<HostingDeps, "policies" | "served">): MtaStsHosting => {
  const policies = new PolicyStore(runtime.db);
  return new MtaStsHosting(runtime, { ...deps, policies, served: new ServedPolicies(runtime.clock, policies) });
};

const openDomains = (
  runtime: Runtime,
  { imap, reportHost, notifyDomains, reportMailRetentionDays }: DmarcSettings,
  deps: DmarcDeps & { readonly stores: IngestStores; readonly raise: RaiseAlert },
): Domains => {
  const { stores, raise, mailHost, freshResolver, outbound, accountOf } = deps;
  const mailbox = imap?.address ?? null;
  const platforms = createDomainPlatforms({ resolver: freshResolver, reportHost, mailbox, mailHost });
  const ownsMailbox = (accountId: string) => {
    const owner = accountOf(imap?.account ?? null);
    return owner.ok && owner.value === accountId;
  };
  return new Domains(runtime, {
    store: stores.domains,
    raise,
    rules: ALERT_RULES,
    hasMail: outbound.mailing !== null,
    platforms,
    ownsMailbox,
    check: createDomainCheck(runtime.clock, platforms),
    urls: outbound.urls,
    recipientDomains: notifyDomains,
    rawRetentionDays: reportMailRetentionDays,
  });
};
