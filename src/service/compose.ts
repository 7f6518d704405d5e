import { Accounts } from "../accounts/accounts.ts";
import { type Actor, actorOfProcess, AuditLog } from "../accounts/audit-log.ts";
import { ApiKeys, Authenticator } from "../accounts/keys.ts";
import { PASSWORD_COSTS, type PasswordCosts } from "../accounts/passwords.ts";
import { AccountStore } from "../accounts/store.ts";
import type { Clock } from "../foundation/base/clock.ts";
import type { Log } from "../foundation/base/log.ts";
import type { LoggedProblem } from "../foundation/base/recent-problems.ts";
import { FREE_OF_CHARGE, Ledger } from "../accounts/billing/store.ts";
import { HourlyActivity } from "./hourly-activity.ts";
import { LateWebhooks } from "./late-webhooks.ts";
import { BacklogStore } from "./metrics/backlog-store.ts";
import { ListExpiry } from "../bulk/run/expiry.ts";
import { JobQueries } from "../bulk/job-queries.ts";
import { BulkJobs } from "../bulk/jobs.ts";
import { composeBulk, uploadsFolderOf } from "./compose-bulk.ts";
import { composeBlocklist } from "./compose-blocklist.ts";
import { composeDmarc } from "./compose-dmarc.ts";
import { composeEngine } from "./compose-engine.ts";
import type { Platform } from "./compose-platform.ts";
import { composeWebhooks } from "./compose-webhooks.ts";
import { composeUsers } from "./compose-users.ts";
import { composeUsage, composeVerification } from "./compose-verification.ts";
import type { Config } from "./config.ts";
import { copyInWorker } from "../foundation/db/backup-worker.ts";
import type { Db } from "../foundation/db/open.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import { ScheduledBackups } from "../foundation/db/scheduled-backups.ts";
import { Doctor } from "../doctor/doctor.ts";
import type { DoctorFinding } from "../doctor/run-checks.ts";
import { Metrics } from "./metrics/metrics.ts";
import type { DnsResolver } from "../foundation/net/dns.ts";
import { NightlyPurge } from "./nightly-purge.ts";
import { Readiness } from "./readiness.ts";
import { SuppressionStore } from "../accounts/suppress/store.ts";
import { Suppressions } from "../accounts/suppress/suppressions.ts";
import { VerificationExpiry } from "../verify/expiry.ts";
import { VerificationExpiryStore } from "../verify/expiry-store.ts";

/** The operator's suppression list. */
export const composeSuppressions = (db: Db, clock: Clock) => new Suppressions({ db, clock }, new SuppressionStore(db));

/** Accounts, users, keys and credits; `actor` is who the audit log names. */
export const composeAccounts = (
  db: Db,
  clock: Clock,
  actor: Actor = actorOfProcess(),
  passwordCosts: PasswordCosts = PASSWORD_COSTS,
) => {
  const store = new AccountStore(db);
  const ledger = new Ledger(db);
  const audit = new AuditLog({ db, clock }, actor);
  return {
    snapshot: db.snapshot,
    store,
    ledger,
    credits: { live: ledger, test: FREE_OF_CHARGE },
    audit,
    accounts: new Accounts({ db, clock }, { store, ledger, audit }),
    keys: new ApiKeys({ db, clock }, store, audit),
    authenticate: new Authenticator({ db, clock }, store).authenticate,
    ...composeUsers({ db, clock }, store, audit, passwordCosts),
  };
};

/** Daily backups; null without `POSTWARDEN_BACKUP_DIR`. */
const composeBackups = (runtime: Runtime, { backupDir, backupKeep }: Config): ScheduledBackups | null => {
  if (backupDir === null) return null;
  const options = { source: runtime.db.path, directory: backupDir, keep: backupKeep, copy: copyInWorker };
  return new ScheduledBackups(runtime, options);
};

/** The last warnings and errors of the log, the newest first. */
export type ReadProblems = () => readonly LoggedProblem[];

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
  /** By default those for production. */
  readonly passwordCosts?: PasswordCosts;
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

/** Counts what is stored, for the metrics and for the log. */
const composeActivity = (db: Db, log: Log, metrics: Metrics): HourlyActivity => {
  const activity = new HourlyActivity(log);
  db.onCommitted((fact) => {
    metrics.activity.count(fact);
    activity.count(fact);
  });
  return activity;
};

/** The use cases of the service. */
export const composeUseCases = ({ config, db, log, ...options }: ServiceOptions) => {
  const { clock, random } = options.platform;
  const metrics = new Metrics(clock);
  const activity = composeActivity(db, log, metrics);
  const platform = { ...options.platform, resolver: metrics.network.watchResolver(options.platform.resolver) };
  const runtime: Runtime = { db, clock, log, random };
  const freshResolver =
    options.freshResolver === undefined ? platform.resolver : metrics.network.watchResolver(options.freshResolver);
  const administration = composeAccounts(db, clock, actorOfProcess(), options.passwordCosts);
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
  const { guard, ...usage } = composeUsage(runtime, authenticate, administration.audit);
  const dmarc = composeDmarc({
    ...{ config, db, log, platform, freshResolver, mailing, rules, urls },
    defaultRecipients: (owner) => defaults.findDefaults(owner).recipients,
  });
  const backups = composeBackups(runtime, config);
  const probing = { pool, pacing, outages, egresses };
  // Lists that cannot be used are part of what needs attention among blocklists.
  const serviceFindings = () => [egresses, dmarc, backups].flatMap((part) => part?.findings() ?? []);
  const lateWebhooks = new LateWebhooks(runtime, new BacklogStore(db));
  const readiness = new Readiness(runtime, {
    blockers: () => outages.findings(),
    findings: () => [...serviceFindings(), ...blocklist.usability.findings(), ...lateWebhooks.findings()],
  });
  return {
    serviceFindings,
    ...{ runtime, metrics, readiness, administration, probing, verification, webhooks, blocklist, guard, dmarc },
    ...{ purge, backups, usage, suppressions, activity },
    doctor: new Doctor(runtime, options.examine ?? (async () => [])),
    bulk: {
      ...{ jobs: bulk, lists, runner: bulkParts.runner },
      queries: new JobQueries(runtime, { ...bulkParts, lists, drafts: bulk.drafts, credits: credits.live }),
    },
  };
};

export type UseCases = ReturnType<typeof composeUseCases>;
