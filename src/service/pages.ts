import { openDashboard } from "../dashboard/open.ts";
import type { ClientAddresses } from "../foundation/http/client-addresses.ts";
import { createUrlOfRequest } from "../foundation/http/request-target.ts";
import type { Service, ServiceOptions } from "./compose.ts";
import { createApplication, type HttpApplication } from "./http-application.ts";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { uploadsFolderOf } from "../bulk/open.ts";
import type { ServiceFacts } from "../dashboard/settings/service.tsx";
import type { TestedList } from "../blocklist/list-status.ts";
import { type DatabaseUsage, databaseUsageOf } from "../foundation/db/database-files.ts";
import type { ScheduledBackups } from "../foundation/db/scheduled-backups.ts";
import { checkReportRecords } from "../doctor/reports-check.ts";
import { mailHostOf, type Config } from "./config.ts";
import { createAddressPattern } from "./erase/address-pattern.ts";
import { EVENT_TYPES } from "./event-docs.ts";
import { type Backlog, BacklogStore } from "./metrics/backlog-store.ts";
import { COMMIT, VERSION } from "./version.ts";

/** The dashboard as an application. */
export const openPages = (service: Service, options: ServiceOptions, clients: ClientAddresses): HttpApplication => {
  const { log, clock } = service.runtime;
  const dashboard = openDashboard(service, {
    ...{ linkUrl: options.config.baseUrl, baseUrl: options.baseUrl, retention: retentionOf(options.config) },
    urlOf: createUrlOfRequest(options.config.baseUrl, options.baseUrl),
    eventTypes: EVENT_TYPES,
    clientAddress: (request) => clients.of(request),
    readFacts: createFactsReader(service, options),
    people: {
      personalData: service.personalData,
      addressProblem: (text) => {
        const pattern = createAddressPattern(text);
        return pattern.ok ? null : pattern.error;
      },
    },
    hasManual: options.config.docs,
    brand: { name: options.config.brandName, logo: options.logo ?? null },
    reportMail: reportMailOf(options),
  });
  const errorPage = dashboard.errorPage.bind(dashboard);
  return createApplication({ log, clock, routes: dashboard.routes(), errorPage });
};

/** What is known about how reports can arrive. */
const reportMailOf = ({ config, platform, freshResolver, baseUrl }: ServiceOptions) => {
  const [mailHost, resolver] = [mailHostOf(config), freshResolver ?? platform.resolver];
  return {
    ...{ mailHost, reportHost: config.reportHost, isListening: config.reportListen !== null },
    urlHost: URL.parse(baseUrl)?.hostname ?? null,
    check: (reportHost: string) => checkReportRecords({ mailHost, resolver }, reportHost),
  };
};

/** How long what is stored. */
const retentionOf = (config: Config) => [
  { what: "Verifications", days: config.verificationRetentionDays },
  { what: "Evidence of verifications", days: config.evidenceRetentionDays },
  { what: "Lists and their results", days: config.listRetentionDays },
  { what: "Other columns of list files", days: config.listFileRetentionDays },
  { what: "Blocklist checks", days: config.blocklistRetentionDays },
  { what: "Raw report mail", days: config.reportMailRetentionDays },
];

/** Reads how the service fares. */
const createFactsReader = (service: Service, { config, problems = () => [] }: ServiceOptions): (() => ServiceFacts) => {
  const { readiness, backups, doctor, blocklist } = service;
  const { db, clock } = service.runtime;
  const { egresses, pacing } = service.engine.smtp;
  const backlog = new BacklogStore(db);
  const startedAtMs = clock.nowMs();
  return () => {
    const { reasons, findings } = readiness.check();
    // Each list that cannot be used is a finding for programs; people see one number, as on all other pages.
    const ofLists = new Set(blocklist.usability.findings());
    const others = findings.filter((text) => !ofLists.has(text));
    const usage = databaseUsageOf(db.path);
    return {
      ...{ version: VERSION, commit: COMMIT, startedAtMs, memoryBytes: process.memoryUsage.rss() },
      hasManual: config.docs,
      ...{ blockers: reasons, problems: problems(), retention: retentionOf(config), backups: backupsOf(backups) },
      findings: [...others, ...listsFinding(blocklist.statuses.tested() ?? [])],
      sizes: sizesOf(usage, { config, backups }),
      machine: doctor.latestFindings()?.findings ?? null,
      disk: usage === null ? null : { freeBytes: usage.diskFreeBytes, totalBytes: usage.diskBytes },
      egresses: egresses.states(),
      cooldowns: pacing.countCooldowns(),
      queues: queuesOf(backlog.read()),
    };
  };
};

const backupsOf = (backups: ScheduledBackups | null): ServiceFacts["backups"] => {
  if (backups === null) return null;
  const { stored, problem, isRequested, isRunning, verifiedFile } = backups;
  const [newest] = stored;
  const size = newest === undefined ? undefined : statSync(newest.file, { throwIfNoEntry: false })?.size;
  return {
    ...{ stored, problem, isRequested, isRunning },
    newest: size === undefined ? null : { bytes: size, isVerified: newest?.file === verifiedFile },
  };
};

const listsFinding = (tested: readonly TestedList[]): readonly string[] => {
  const troubled = tested.filter(({ state }) => state !== "healthy" && state !== "unknown").length;
  if (troubled === 0) return [];
  return [`${troubled} of ${tested.length} blocklists cannot be used. Health of the lists says why and what may help.`];
};

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
