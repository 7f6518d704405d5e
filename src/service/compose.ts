import { AccountsSlice, UsageSlice, openSuppressions } from "../accounts/open.ts";
import { accountOfSetting, enabledAccount } from "../accounts/accounts.ts";
import { actorOfProcess } from "../accounts/audit-store.ts";
import type { PasswordCosts } from "../accounts/passwords.ts";
import type { Suppressions } from "../accounts/suppress/store.ts";
import type { TestedList } from "../blocklist/list-status.ts";
import { BlocklistSlice } from "../blocklist/open.ts";
import { BulkSlice } from "../bulk/open.ts";
import { ListExpiry } from "../bulk/run/job-changes.ts";
import { createOwnAddressFinder } from "../dmarc/insight/sources/own-addresses.ts";
import { DmarcSlice } from "../dmarc/open.ts";
import { MachineAcknowledgementStore } from "../doctor/acknowledgement-store.ts";
import { MachineAcknowledgements } from "../doctor/acknowledgements.ts";
import { Doctor } from "../doctor/doctor.ts";
import type { Logo } from "../dashboard/logo.ts";
import type { Log, LoggedProblem } from "../foundation/base/log.ts";
import { copyInWorker } from "../foundation/db/backup-worker.ts";
import type { Db } from "../foundation/db/open.ts";
import { correctPlannedTimes } from "../foundation/db/planned-times.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import { ScheduledBackups } from "../foundation/db/scheduled-backups.ts";
import type { DnsResolver } from "../foundation/net/dns.ts";
import type { Platform } from "../foundation/net/platform.ts";
import { NotificationsSlice } from "../notifications/open.ts";
import type { MailboxFetcher } from "../foundation/mailbox/mailbox-fetcher.ts";
import { openBounceMailbox } from "../verify/bounces/mailbox/bounce-mailbox.ts";
import { BounceExpiry } from "../verify/bounces/bounce-expiry.ts";
import { BounceStore } from "../verify/bounces/bounce-store.ts";
import { Bounces } from "../verify/bounces/bounces.ts";
import { ListPromises } from "../verify/bounces/list-promises.ts";
import { VerificationExpiry } from "../verify/checks.ts";
import { VerificationExpiryStore } from "../verify/store.ts";
import { PolicySlice } from "../verify/policy/open.ts";
import { EngineSlice, type ServiceEngine, VerifySlice } from "../verify/open.ts";
import type { StartThread } from "../verify/thread/engine-thread.ts";
import type { SmtpDeps } from "../verify/smtp/open.ts";
import { ThreadedEngine, type ThreadedEngineDeps } from "../verify/thread/open.ts";
import { mailHostOf, type Config } from "./config.ts";
import { PersonalData } from "./erase/personal-data.ts";
import { HourlyActivity } from "./hourly-activity.ts";
import { LateWebhooks } from "./late-webhooks.ts";
import { BacklogStore } from "./metrics/backlog-store.ts";
import { Metrics } from "./metrics/metrics.ts";
import { NightlyPurge } from "./nightly-purge.ts";
import { mailerOf } from "./platform.ts";
import { Readiness } from "./readiness.ts";
import type { CommandDoc } from "./docs/reference.ts";
import { VERSION } from "./version.ts";
import type { DoctorFinding } from "../doctor/doctor-check.ts";

export interface ServiceOptions {
  readonly config: Config;
  readonly db: Db;
  readonly log: Log;
  readonly platform: Platform;
  /** A resolver without a cache, for blocklists and DMARC records; by default the platform's. */
  readonly freshResolver?: DnsResolver;
  readonly baseUrl: string;
  /** The picture of `POSTWARDEN_BRAND_LOGO`; without it, pages show the mark. */
  readonly logo?: Logo | null;
  /** Examines the machine; without it, there is nothing to find. */
  readonly examine?: (testedLists: () => readonly TestedList[] | null) => Promise<readonly DoctorFinding[]>;
  /** The last warnings and errors of the log, the newest first. */
  readonly problems?: () => readonly LoggedProblem[];
  /** The command line, for the manual; by default it has no commands. */
  readonly commands?: () => Promise<CommandDoc>;
  /** The program that threads run; by default the running one. */
  readonly program?: string;
  /** Starts threads that verify addresses with live keys; by default that is done in this one. */
  readonly startThread?: StartThread | null;
  /** By default those for production. */
  readonly passwordCosts?: PasswordCosts;
}

/** The whole service: opens the slices in order. Nothing runs yet: `run-service.ts` starts and stops them. */
export class Service {
  readonly runtime: Runtime;
  readonly metrics: Metrics;
  readonly activity: HourlyActivity;
  readonly accounts: AccountsSlice;
  readonly usage: UsageSlice;
  readonly suppressions: Suppressions;
  readonly engine: ServiceEngine;
  readonly verification: VerifySlice;
  readonly policy: PolicySlice;
  readonly bounces: Bounces;
  /** Null when none is set. */
  readonly bounceMailbox: MailboxFetcher | null;
  readonly notifications: NotificationsSlice;
  readonly blocklist: BlocklistSlice;
  readonly bulk: BulkSlice;
  readonly dmarc: DmarcSlice;
  /** Daily; null without `POSTWARDEN_BACKUP_DIR`. */
  readonly backups: ScheduledBackups | null;
  readonly purge: NightlyPurge;
  readonly personalData: PersonalData;
  readonly doctor: Doctor;
  readonly machine: MachineAcknowledgements;
  readonly readiness: Readiness;

  constructor(options: ServiceOptions) {
    const { config, db, log, program = Bun.main } = options;
    const { clock, random } = options.platform;
    const runtime: Runtime = { db, clock, log, random };
    this.runtime = runtime;
    [this.metrics, this.activity] = [new Metrics(clock), new HourlyActivity(log)];
    db.onCommitted((fact) => {
      this.metrics.activity.count(fact);
      this.activity.count(fact);
    });
    const { network } = this.metrics;
    const platform = { ...options.platform, resolver: network.watchResolver(options.platform.resolver) };
    const { resolver } = platform;
    const fresh = options.freshResolver === undefined ? resolver : network.watchResolver(options.freshResolver);

    this.accounts = new AccountsSlice(runtime, actorOfProcess(), options.passwordCosts);
    this.usage = new UsageSlice(runtime, this.accounts);
    this.suppressions = openSuppressions(db, clock);
    const { credits, store: accounts } = this.accounts;
    this.notifications = new NotificationsSlice(runtime, config, {
      mailer: mailerOf(config),
      resolver,
      userAgent: `Postwarden/${VERSION}`,
      loadDocs: async () => (await import("./event-docs.ts")).EVENT_DOCS,
    });
    const { outbound } = this.notifications;
    this.blocklist = new BlocklistSlice(runtime, config, {
      ...{ platform: { ...platform, resolver: fresh }, outbound },
      ownAddresses: createOwnAddressFinder(db, clock),
    });
    this.dmarc = new DmarcSlice(runtime, config, {
      ...{ platform, freshResolver: fresh, outbound, mailHost: mailHostOf(config), publicUrl: options.baseUrl },
      ...{ accountOf: (name) => accountOfSetting(accounts, "POSTWARDEN_IMAP_ACCOUNT", name), program },
    });
    this.engine = openEngine(options, { platform, fresh, network, suppressions: this.suppressions });
    const { engines, smtp } = this.engine;
    this.bounces = new Bounces(runtime, new BounceStore(db));
    this.bounceMailbox = openBounces(runtime, config, { service: this, resolver });
    const attempts = this.bounces.addedTo(this.engine.attempts);
    this.verification = new VerifySlice(runtime, { engines, attempts, credits });
    this.policy = openPolicy(runtime, config, this);
    this.bulk = new BulkSlice(runtime, config, {
      ...{ credits, engine: this.engine, attempts, checks: this.verification.runner },
      ...{ urls: outbound.urls, mailing: outbound.mailing, idempotency: this.verification.idempotency },
    });
    this.backups = openBackups(runtime, config);
    this.purge = openPurge(runtime, config, { accounts: this.accounts, bulk: this.bulk, bounces: this.bounces });
    this.personalData = openPersonalData(runtime, config, { audit: this.accounts.audit, program });
    this.doctor = new Doctor(runtime, async () => options.examine?.(() => this.blocklist.statuses.tested()) ?? []);
    this.machine = openMachine(runtime, this.doctor);
    const lateWebhooks = new LateWebhooks(runtime, new BacklogStore(db));
    this.readiness = new Readiness(runtime, {
      blockers: () => smtp.outages.findings(),
      findings: () => [
        ...this.findings().map(({ text }) => text),
        ...this.blocklist.usability.findings(),
        ...lateWebhooks.findings(),
      ],
    });
  }

  /** What an operator must look at, apart from lists that cannot be used: they are part of what needs attention among blocklists. */
  findings(): ReadonlyArray<{ readonly label: string; readonly text: string }> {
    const parts = {
      Egress: this.engine.smtp.egresses,
      "Report mail": this.dmarc,
      "Outgoing mail": this.policy,
      Bounces: this.bounceMailbox,
      Backup: this.backups,
    };
    return Object.entries(parts).flatMap(([label, part]) => (part?.findings() ?? []).map((text) => ({ label, text })));
  }

  /** Makes work due that was planned while the system's clock was wrong. */
  correctPlannedTimes() {
    const { db, clock } = this.runtime;
    return db.commit((tx) => correctPlannedTimes(db, tx, clock.nowMs()));
  }
}

interface EngineSurroundings {
  /** With an observed resolver. */
  readonly platform: Platform;
  readonly fresh: DnsResolver;
  readonly network: Metrics["network"];
  readonly suppressions: Suppressions;
}

/** The engine in a thread of its own where threads can be started, else in this one. */
const openEngine = (
  { config, log, startThread: start = null }: ServiceOptions,
  { platform, fresh, network, suppressions: { match: matchSuppression } }: EngineSurroundings,
): ServiceEngine => {
  if (start === null) {
    const watchSessions: SmtpDeps["watchSessions"] = (open) => network.watchSessions(open);
    return new EngineSlice(platform, config, { log, fresh, matchSuppression, watchSessions });
  }
  const noteNetwork: ThreadedEngineDeps["noteNetwork"] = (tally) => network.add(tally);
  return new ThreadedEngine(platform, config, { log, start, matchSuppression, noteNetwork });
};

const openBounces = (
  runtime: Runtime,
  { bounceImap }: Config,
  { service, resolver }: { readonly service: Service; readonly resolver: DnsResolver },
): MailboxFetcher | null =>
  openBounceMailbox(runtime, bounceImap, {
    ...{ bounces: service.bounces, resolver, reserve: service.dmarc.reports.reserve },
    accountOf: (name) => accountOfSetting(service.accounts.store, "POSTWARDEN_BOUNCE_IMAP_ACCOUNT", name),
  });

const openPolicy = (
  runtime: Runtime,
  config: Config,
  { accounts: { store }, verification, suppressions, metrics }: Service,
): PolicySlice =>
  new PolicySlice(runtime, config, {
    ...{ checks: verification.checks, matchSuppression: suppressions.match, watch: metrics.policy },
    accountOf: (name) => enabledAccount(store, "POSTWARDEN_POLICY_ACCOUNT", name),
  });

const openMachine = (runtime: Runtime, doctor: Doctor): MachineAcknowledgements =>
  new MachineAcknowledgements(runtime, { store: new MachineAcknowledgementStore(runtime.db), doctor });

const openBackups = (runtime: Runtime, { backupDir, backupKeep }: Config): ScheduledBackups | null => {
  if (backupDir === null) return null;
  const options = { source: runtime.db.path, directory: backupDir, keep: backupKeep, copy: copyInWorker };
  return new ScheduledBackups(runtime, options);
};

const openPersonalData = (
  runtime: Runtime,
  { dataDir, backupDir }: Config,
  { audit, program }: Pick<AccountsSlice, "audit"> & { readonly program: string },
): PersonalData => {
  const folders = [dataDir, ...(backupDir === null ? [] : [backupDir])];
  return new PersonalData(runtime, { folders, program, audit });
};

/** The nightly purge of verifications, lists and sessions; blocklist checks and reports have purges of their own. */
const openPurge = (
  runtime: Runtime,
  config: Config,
  { accounts, bulk, bounces }: Pick<Service, "accounts" | "bulk" | "bounces">,
): NightlyPurge => {
  const { verificationRetentionDays: verificationDays, evidenceRetentionDays: evidenceDays } = config;
  const { listRetentionDays: resultDays, listFileRetentionDays: fileDays } = config;
  const verifications = new VerificationExpiryStore(runtime.db);
  return new NightlyPurge(runtime, {
    verifications: new VerificationExpiry(runtime, verifications, { verificationDays, evidenceDays }),
    lists: new ListExpiry(runtime, bulk.run, { resultDays, evidenceDays, fileDays }),
    ...{ sessions: accounts.sessions, setupLinks: accounts.setupLinks },
    bounces: new BounceExpiry(bounces, new ListPromises(runtime), verificationDays),
  });
};
