import { Accounts } from "./accounts/accounts.ts";
import { type Actor, actorOfProcess, AuditLog } from "./accounts/audit-log.ts";
import { AuditStore } from "./accounts/audit-store.ts";
import { ApiKeys, Authenticator } from "./accounts/keys.ts";
import { createAccountRoutes } from "./accounts/routes.ts";
import { AccountStore } from "./accounts/store.ts";
import type { Clock } from "./base/clock.ts";
import type { Log } from "./base/log.ts";
import { FREE_OF_CHARGE, Ledger } from "./billing/store.ts";
import { createOverviewRoutes } from "./blocklist/overview-routes.ts";
import { createBlocklistRoutes } from "./blocklist/routes.ts";
import { ListExpiry } from "./bulk/expiry.ts";
import { JobQueries } from "./bulk/job-queries.ts";
import { BulkJobs } from "./bulk/jobs.ts";
import { createBulkRoutes } from "./bulk/routes.ts";
import { composeBulk, uploadsFolderOf } from "./compose-bulk.ts";
import { composeBlocklist } from "./compose-blocklist.ts";
import { composeDashboard, createSecretRotation } from "./compose-dashboard.ts";
import { composeDmarc } from "./compose-dmarc.ts";
import { composeInvitations } from "./compose-invitations.ts";
import { composeEngine } from "./compose-engine.ts";
import { createMetricsRenderer } from "./compose-metrics.ts";
import type { Platform } from "./compose-platform.ts";
import { composeSettings, type ReadProblems } from "./compose-settings.ts";
import { composeWebhooks } from "./compose-webhooks.ts";
import { composeUsers } from "./compose-users.ts";
import { composeUsage, composeVerification } from "./compose-verification.ts";
import type { Config } from "./config.ts";
import { copyInWorker } from "./db/backup-worker.ts";
import type { Db } from "./db/open.ts";
import { correctPlannedTimes } from "./db/planned-times.ts";
import type { Runtime } from "./db/runtime.ts";
import { ScheduledBackups } from "./db/scheduled-backups.ts";
import { Doctor } from "./doctor/doctor.ts";
import type { DoctorFinding } from "./doctor/run-checks.ts";
import { ClientAddresses } from "./http/client-addresses.ts";
import { Metrics } from "./metrics/metrics.ts";
import type { DnsResolver } from "./net/dns.ts";
import { createNotificationsRoutes } from "./notifications/routes.ts";
import { NightlyPurge } from "./nightly-purge.ts";
import { Readiness } from "./readiness.ts";
import { createServer } from "./server.ts";
import { createServiceRoutes } from "./service-routes.ts";
import { SuppressionStore } from "./suppress/store.ts";
import { Suppressions } from "./suppress/suppressions.ts";
import { createUsageRoutes } from "./usage/routes.ts";
import { VerificationExpiry } from "./verify/expiry.ts";
import { VerificationExpiryStore } from "./verify/expiry-store.ts";
import { createVerifyRoutes } from "./verify/routes.ts";
import { VERSION } from "./version.ts";
import { createWebhookRoutes } from "./webhooks/routes.ts";

/** The operator's suppression list. */
export const composeSuppressions = (db: Db, clock: Clock) => new Suppressions({ db, clock }, new SuppressionStore(db));

/** Accounts, users, keys and credits; `actor` is who the audit log names. */
export const composeAccounts = (db: Db, clock: Clock, actor: Actor = actorOfProcess()) => {
  const store = new AccountStore(db);
  const ledger = new Ledger(db);
  const audit = new AuditLog(clock, new AuditStore(db), actor);
  return {
    snapshot: db.snapshot,
    store,
    ledger,
    credits: { live: ledger, test: FREE_OF_CHARGE },
    audit,
    accounts: new Accounts({ db, clock }, { store, ledger, audit }),
    keys: new ApiKeys({ db, clock }, store, audit),
    authenticate: new Authenticator({ db, clock }, store).authenticate,
    ...composeUsers({ db, clock }, store, audit),
  };
};

/** Daily backups; null without `POSTWARDEN_BACKUP_DIR`. */
const composeBackups = (runtime: Runtime, { backupDir, backupKeep }: Config): ScheduledBackups | null => {
  if (backupDir === null) return null;
  const options = { source: runtime.db.path, directory: backupDir, keep: backupKeep, copy: copyInWorker };
  return new ScheduledBackups(runtime, options);
};

export interface ServiceOptions {
  readonly config: Config;
  readonly db: Db;
  readonly log: Log;
  readonly platform: Platform;
  /** A resolver without a cache, for blocklists and DMARC records; by default the platform's. */
  readonly freshResolver?: DnsResolver;
  readonly baseUrl: string;
  /** Examines the machine; without it, there is nothing to find. */
  readonly examine?: () => Promise<readonly DoctorFinding[]>;
  /** The last warnings and errors of the log, the newest first. */
  readonly problems?: ReadProblems;
}

type PurgedStores = ConstructorParameters<typeof ListExpiry>[1] & Pick<UserParts, "sessions" | "setupLinks">;
type UserParts = ReturnType<typeof composeUsers>;

/** The nightly purge of verifications, lists and sessions; blocklist checks and reports have purges of their own. */
const composePurge = (runtime: Runtime, config: Config, { sessions, setupLinks, ...stores }: PurgedStores) => {
  const { verificationRetentionDays, evidenceRetentionDays: evidenceDays } = config;
  const { listRetentionDays: resultDays, listFileRetentionDays: fileDays } = config;
  return new NightlyPurge(runtime, {
    verifications: new VerificationExpiry(runtime, new VerificationExpiryStore(runtime.db), {
      ...{ verificationDays: verificationRetentionDays, evidenceDays },
    }),
    lists: new ListExpiry(runtime, stores, { resultDays, evidenceDays, fileDays }),
    ...{ sessions, setupLinks },
  });
};

/** The use cases of the service, with the routes of the DMARC slice. */
const composeUseCases = ({ config, db, log, ...options }: ServiceOptions) => {
  const { clock, random } = options.platform;
  const metrics = new Metrics(clock);
  db.onCommitted((fact) => metrics.activity.count(fact));
  const platform = { ...options.platform, resolver: metrics.network.watchResolver(options.platform.resolver) };
  const runtime: Runtime = { db, clock, log, random };
  const freshResolver =
    options.freshResolver === undefined ? platform.resolver : metrics.network.watchResolver(options.freshResolver);
  const administration = composeAccounts(db, clock);
  const { credits, authenticate } = administration;
  const suppressions = composeSuppressions(db, clock);
  const engine = composeEngine(config, platform, suppressions.match, {
    log,
    fresh: freshResolver,
    metrics: metrics.network,
  });
  const { engines, pool, pacing, outages, egresses } = engine;
  const verification = composeVerification(runtime, engines, credits);
  const webhooks = composeWebhooks(runtime, config, platform);
  const { rules, urls, defaults, mailing } = webhooks;
  const blocklist = composeBlocklist({
    ...{ config, db, log, urls, notifications: defaults, mailing },
    platform: { ...platform, resolver: freshResolver },
  });
  const { lists, ...bulkParts } = composeBulk({
    ...{ runtime, config, credits, engines, outages },
    checks: verification.runner,
  });
  const bulk = new BulkJobs(runtime, {
    ...{ ...bulkParts, lists, engines, credits, urls, idempotency: verification.idempotency },
    uploadsFolder: uploadsFolderOf(config),
  });
  const purge = composePurge(runtime, config, { lists, jobs: bulkParts.jobs, ...administration });
  const { guard, ...usage } = composeUsage(runtime, authenticate);
  const dmarc = composeDmarc({
    ...{ config, db, log, platform, freshResolver, mailing, guard, rules, urls },
    defaultRecipients: (owner) => defaults.findDefaults(owner).recipients,
  });
  const backups = composeBackups(runtime, config);
  const probing = { pool, pacing, outages, egresses };
  // Lists that cannot be used are part of what needs attention among blocklists.
  const serviceFindings = () => [egresses, dmarc, backups].flatMap((part) => part?.findings() ?? []);
  const readiness = new Readiness(runtime, {
    blockers: () => outages.findings(),
    findings: () => [...serviceFindings(), ...blocklist.usability.findings()],
  });
  return {
    serviceFindings,
    ...{ runtime, metrics, readiness, administration, probing, verification, webhooks, blocklist, guard, dmarc },
    ...{ purge, backups, usage },
    ...{ purge, backups, suppressions },
    bulk: {
      ...{ jobs: bulk, lists, runner: bulkParts.runner },
      queries: new JobQueries(runtime, { ...bulkParts, lists, drafts: bulk.drafts, credits: credits.live }),
    },
  };
};

const DESCRIPTION = "Verifies email addresses, monitors DNS blocklists and processes DMARC reports.";

type UseCases = ReturnType<typeof composeUseCases>;

/** Every route of the API. */
const composeRoutes = (useCases: UseCases, { config, baseUrl }: ServiceOptions) => {
  const { runtime, administration, verification, webhooks, blocklist, bulk, guard, dmarc } = useCases;
  const { store, ledger } = administration;
  const { rules } = webhooks;
  const { clock } = runtime;
  return [
    createVerifyRoutes({ guard, ...verification, clock }),
    createBulkRoutes({ guard, bulk: bulk.jobs, lists: bulk.lists }),
    createAccountRoutes(guard, { store, ledger }),
    createUsageRoutes(guard, { usage: useCases.usage.usage, clock, nameOf: administration.callerName }),
    createBlocklistRoutes({ guard, rules, clock, ...blocklist, keyName: (id) => store.findKey(id)?.name ?? id }),
    createOverviewRoutes({ guard, rules, clock, ...blocklist }),
    ...dmarc.routes,
    createWebhookRoutes({ guard, webhooks: webhooks.webhooks, rules }),
    createNotificationsRoutes({ guard, notifications: webhooks.notifications, rules }),
    createServiceRoutes({
      guard,
      describe: async () => {
        const { interfaceDocument } = await import("./interface-document.ts");
        return interfaceDocument({ version: VERSION, baseUrl, description: DESCRIPTION });
      },
      readiness: useCases.readiness,
      metrics: { token: config.metricsToken, render: createMetricsRenderer(useCases) },
    }),
  ];
};

/** What the pages of users need of the settings and the server. */
const composeSignIn = ({ config, log }: ServiceOptions, clients: ClientAddresses) => ({
  baseUrl: config.baseUrl,
  mailInvitation: composeInvitations(config, log),
  clientAddress: (request: Request) => clients.of(request),
});

/** The whole service, not yet listening. */
export const composeService = (options: ServiceOptions) => {
  const useCases = composeUseCases(options);
  const { metrics, administration, verification, probing, webhooks, blocklist, bulk, purge, dmarc, backups } = useCases;
  const { pool, outages } = probing;
  const { dispatcher } = webhooks;
  const { db, clock } = useCases.runtime;
  const clients = new ClientAddresses(options.config.trustedProxies, options.log);
  const doctor = new Doctor(useCases.runtime, options.examine ?? (async () => []));
  const dashboard = composeDashboard({
    ...{ ...administration, ...composeSignIn(options, clients) },
    ...{ clock, guard: useCases.guard, sessions: administration.sessions, accounts: administration.store },
    ...{ credits: administration.credits, isHttps: options.baseUrl.startsWith("https:") },
    ...{ lists: bulk, callerName: administration.callerName },
    home: {
      targets: ({ caller }) => blocklist.attention(caller).figures,
      mailInName: ({ caller }) => dmarc.overview.mailInName(caller),
    },
    attention: [
      { section: "blocklists", itemsOf: ({ caller }) => blocklist.attention(caller).items },
      { section: "dmarc", itemsOf: ({ caller }) => dmarc.overview.attention(caller) },
      { section: "lists", itemsOf: ({ caller }) => bulk.queries.attention(caller) },
      { section: "webhooks", itemsOf: ({ caller }) => webhooks.webhooks.endpoints.attention(caller) },
    ],
    serviceState: () => {
      const { reasons: blockers } = useCases.readiness.check();
      return { examination: doctor.latestFindings(), blockers, findings: useCases.serviceFindings() };
    },
    verify: { ...useCases.verification, nameOf: administration.callerName },
    usage: { usage: useCases.usage.usage, ledger: administration.ledger, nameOf: administration.callerName, clock },
    webhooks: { ...webhooks, rotateSecret: createSecretRotation(db, webhooks.webhooks, administration.audit) },
    blocklist: { ...blocklist, rules: webhooks.rules },
    dmarcReports: dmarc.pages,
    settings: composeSettings({ ...useCases, doctor }, options),
  });
  const app = createServer({
    log: options.log,
    clock: options.platform.clock,
    clients,
    routes: [...composeRoutes(useCases, options), dashboard.routes()],
    errorPage: (request, error) => dashboard.errorPage(request, error),
    countRequest: (method, status) => metrics.countRequest(method, status),
  });
  return {
    doctor,
    ...useCases.usage,
    ...{ app, metrics, purge, pool, outages, dispatcher, webhooks: webhooks.webhooks, blocklist, dmarc, backups },
    bulk: bulk.jobs,
    ...{ lists: useCases.bulk.lists, notifications: webhooks.notifications, subscriptions: webhooks.subscriptions },
    /** Makes work due that was planned while the system's clock was wrong. */
    correctPlannedTimes: () => db.commit((tx) => correctPlannedTimes(db, tx, clock.nowMs())),
    ...verification,
    ...administration,
  };
};

export type Service = ReturnType<typeof composeService>;
