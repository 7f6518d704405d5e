import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { AuditLog } from "../accounts/audit-log.ts";
import type { AccountStore } from "../accounts/store.ts";
import { OwnKeys } from "../accounts/own-keys.ts";
import { uploadsFolderOf } from "./compose-bulk.ts";
import type { composeAccounts, ReadProblems, ServiceOptions } from "./compose.ts";
import type { composeWebhooks } from "./compose-webhooks.ts";
import type { Config } from "./config.ts";
import { FirstStepsStore } from "../accounts/first-steps-store.ts";
import { createWelcomePages } from "../dashboard/welcome/pages.tsx";
import { createSettingsPages } from "../dashboard/settings/pages.tsx";
import type { MailOffUseCases } from "../dashboard/settings/mail-off.tsx";
import type { ServiceFacts } from "../dashboard/settings/service-facts.ts";
import { type DatabaseUsage, databaseUsageOf } from "../foundation/db/database-files.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import type { ScheduledBackups } from "../foundation/db/scheduled-backups.ts";
import type { Doctor } from "../doctor/doctor.ts";
import { mailAction, type MailSubscriptions } from "../notifications/mail/mail-subscriptions.ts";
import { type Backlog, BacklogStore } from "./metrics/backlog-store.ts";
import type { EgressPool } from "../verify/smtp/egress.ts";
import type { Readiness } from "./readiness.ts";
import type { Suppressions } from "../accounts/suppress/suppressions.ts";
import { COMMIT, VERSION } from "./version.ts";

/** What the settings show and change. */
export interface SettingsParts {
  readonly runtime: Runtime;
  readonly administration: ReturnType<typeof composeAccounts>;
  readonly webhooks: ReturnType<typeof composeWebhooks>;
  readonly readiness: Readiness;
  readonly probing: { readonly pacing: { countCooldowns(): number }; readonly egresses: EgressPool };
  readonly backups: ScheduledBackups | null;
  readonly suppressions: Suppressions;
  readonly doctor: Doctor;
}

/** The pages of the settings, and the first steps. */
export const composeSettings = (parts: SettingsParts, { config, baseUrl, problems }: ServiceOptions) => {
  const { runtime, administration, webhooks, backups, suppressions, doctor } = parts;
  const { db, clock } = runtime;
  const { store, accounts, keys, audit, ledger, users } = administration;
  const ownKeys = new OwnKeys(store, keys);
  const steps = new FirstStepsStore(db);
  const settings = createSettingsPages({
    ...{ clock, baseUrl, doctor, suppressions, accounts, store, audit },
    keys: ownKeys,
    ...{ notifications: webhooks.notifications, rules: webhooks.rules, hasMail: webhooks.mailing !== null },
    balance: (id) => ledger.balance(id),
    retention: retentionOf(config),
    keyNames: (id) => new Map(store.listKeys(id).map((key) => [key.id, key.name])),
    userEmails: () => new Map(users.list().map(({ user }) => [user.id, user.email])),
    setByLink: createLinkSwitch(webhooks.subscriptions, audit),
    ...{ subscriptions: webhooks.subscriptions, accountName: (id: string) => accountNameOf(store, id) },
    readFacts: createFactsReader(parts, { config, problems: problems ?? (() => []) }),
    requestBackup: backups === null ? null : () => backups.request(),
  });
  return [
    ...settings,
    ...createWelcomePages({ keys: ownKeys, baseUrl, doctor, findSteps: (owner) => steps.find(owner) }),
  ];
};

/** Stops or resumes mail by its link. Whoever has the link can repeat it, so only a change is in the audit log. */
const createLinkSwitch =
  (subscriptions: MailSubscriptions, audit: AuditLog): MailOffUseCases["setByLink"] =>
  async (token, isOn) => {
    const found = subscriptions.findByToken(token);
    if (found === undefined) return undefined;
    const { accountId, kind } = found;
    // Not the recipient: entries of the audit log cannot be erased.
    const action = { action: mailAction(isOn), accountId, subject: null, after: { kind }, byLink: true };
    return audit.perform({ action, work: () => subscriptions.set(found, isOn), isRecordedUnchanged: () => false });
  };

const accountNameOf = (store: AccountStore, id: string): string => store.findAccount(id)?.name ?? "";

const retentionOf = (config: Config) => [
  { what: "Verifications", days: config.verificationRetentionDays },
  { what: "Evidence of verifications", days: config.evidenceRetentionDays },
  { what: "Lists and their results", days: config.listRetentionDays },
  { what: "Other columns of list files", days: config.listFileRetentionDays },
  { what: "Blocklist checks", days: config.blocklistRetentionDays },
  { what: "Raw report mail", days: config.reportMailRetentionDays },
];

interface FactsOptions {
  readonly config: Config;
  readonly problems: ReadProblems;
}

const createFactsReader = (parts: SettingsParts, { config, problems }: FactsOptions): (() => ServiceFacts) => {
  const { runtime, readiness, probing, backups, doctor } = parts;
  const { db, clock } = runtime;
  const backlog = new BacklogStore(db);
  const startedAtMs = clock.nowMs();
  return () => {
    const { reasons, findings } = readiness.check();
    const failures = (doctor.latestFindings()?.findings ?? []).filter(({ severity }) => severity === "fail");
    const usage = databaseUsageOf(db.path);
    return {
      ...{ version: VERSION, commit: COMMIT, startedAtMs, memoryBytes: process.memoryUsage.rss() },
      ...{ blockers: reasons, problems: problems(), retention: retentionOf(config), backups },
      findings: [...findings, ...failures.map(({ title, detail }) => `${title}: ${detail}`)],
      sizes: sizesOf(usage, { config, backups }),
      network: networkOf(doctor),
      disk: usage === null ? null : { freeBytes: usage.diskFreeBytes, totalBytes: usage.diskBytes },
      egresses: probing.egresses.states(),
      cooldowns: probing.pacing.countCooldowns(),
      queues: queuesOf(backlog.read()),
    };
  };
};

const NETWORK_AREAS: ReadonlySet<string> = new Set(["DNS", "Egress"]);

const networkOf = (doctor: Doctor): ServiceFacts["network"] =>
  doctor.latestFindings()?.findings.filter(({ area }) => NETWORK_AREAS.has(area)) ?? null;

interface SizeSources {
  readonly config: Config;
  readonly backups: ScheduledBackups | null;
}

const sizesOf = (usage: DatabaseUsage | null, { config, backups }: SizeSources): ServiceFacts["sizes"] => {
  const uploads = filesIn(uploadsFolderOf(config));
  const stored = backups?.stored.map(({ file }) => file) ?? [];
  return [
    ...(usage === null ? [] : [{ what: "Database", bytes: usage.fileBytes }]),
    ...(usage === null ? [] : [{ what: "Write-ahead log", bytes: usage.walBytes }]),
    { what: "Uploads under way", bytes: bytesOf(uploads) },
    ...(backups === null ? [] : [{ what: "Backups", bytes: bytesOf(stored) }]),
  ];
};

const FILES_MAX = 1_000;

const filesIn = (folder: string): readonly string[] =>
  existsSync(folder)
    ? readdirSync(folder)
        .slice(0, FILES_MAX)
        .map((name) => join(folder, name))
    : [];

const bytesOf = (files: readonly string[]): number =>
  files.reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0);

const queuesOf = (backlog: Backlog): ServiceFacts["queues"] => [
  { what: "Verifications that wait for a reply or a retry", count: backlog.pendingVerifications, oldestMs: null },
  ...backlog.jobs.map(({ status, rowsLeft }) => ({
    ...{ what: `Addresses of lists that are ${status}`, count: rowsLeft, oldestMs: null },
  })),
  { what: "Report mails to process", count: backlog.pendingReports, oldestMs: backlog.oldestReportMs },
  {
    ...{ what: "Events to deliver", count: null, oldestMs: backlog.oldestEventMs },
  },
];
