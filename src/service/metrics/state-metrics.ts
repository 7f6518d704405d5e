import type { DatabaseUsage } from "../../foundation/db/database-files.ts";
import { type Backlog, COUNTED_MAX } from "./backlog-store.ts";
import { Gauge, Registry } from "./prometheus.ts";

/** The state of the service at a scrape. Null stands for what is not known: its metric is then absent. */
export interface ServiceState {
  readonly nowMs: number;
  readonly version: string;
  readonly isReady: boolean;
  /** Problems that `/readyz` names while the service keeps working. */
  readonly findings: number;
  readonly outage: string | null;
  readonly connections: number;
  readonly waitingProbes: number;
  readonly hosts: number;
  readonly cooldowns: number;
  readonly runningVerifications: number;
  readonly runningListAddresses: number;
  readonly webhookQueues: number;
  /** By list; only lists that were tested. */
  readonly blocklists: ReadonlyMap<string, boolean>;
  /** Null while the database cannot be read. */
  readonly backlog: Backlog | null;
  readonly isBackupEnabled: boolean;
  /** Milliseconds since 1970; null without a backup, and where none is scheduled. */
  readonly lastBackupMs: number | null;
  /** Null for a database in memory. */
  readonly usage: DatabaseUsage | null;
}

const JOB_STATUSES = ["receiving", "queued", "running", "deleting"];
const AT_MOST = `at most ${COUNTED_MAX}`;

/** One metric: its value, or its values by one label. Null where it is not known. */
interface Reading {
  readonly name: string;
  readonly help: string;
  readonly label?: string;
  readonly value: number | Iterable<readonly [string, number]> | null;
}

const reading = (name: string, help: string, value: number | null): Reading => ({ name, help, value });
const readings = (name: string, help: string, label: string, value: Iterable<readonly [string, number]>): Reading => ({
  ...{ name, help, label, value },
});

/**
 * The gauges of a state, in a registry of their own: what is not known now is absent and does not keep its last value.
 */
export const stateRegistry = (state: ServiceState): Registry => {
  const registry = new Registry();
  const all = [
    ...serviceReadings(state),
    ...probeReadings(state),
    ...(state.backlog === null ? [] : backlogReadings(state.backlog, state.nowMs)),
    ...(state.usage === null ? [] : usageReadings(state.usage)),
  ];
  for (const { name: suffix, help, label, value } of all) {
    if (value === null) continue;
    const labelNames = label === undefined ? [] : [label];
    const gauge = new Gauge({ registers: [registry], name: `postwarden_${suffix}`, help, labelNames });
    if (typeof value === "number") gauge.set(value);
    else for (const [key, one] of value) gauge.set({ [label ?? ""]: key }, one);
  }
  return registry;
};

const serviceReadings = (state: ServiceState): readonly Reading[] => [
  readings("build_info", "Always 1; the version is a label.", "version", [[state.version, 1]]),
  reading("ready", "1 while /readyz responds with 200.", Number(state.isReady)),
  reading("findings", "Problems that need attention while the service works; /readyz names them.", state.findings),
  reading("backup_enabled", "1 if POSTWARDEN_BACKUP_DIR is set, 0 if not.", Number(state.isBackupEnabled)),
  reading(
    "backup_last_timestamp_seconds",
    "When the newest backup in POSTWARDEN_BACKUP_DIR was made, in seconds since 1970; absent without one.",
    state.lastBackupMs === null ? null : state.lastBackupMs / 1_000,
  ),
  readings(
    "outage",
    "1 for the reason why lists are paused.",
    "reason",
    state.outage === null ? [] : [[state.outage, 1]],
  ),
  reading("webhook_queues_sending", "Webhook queues that are being sent.", state.webhookQueues),
  readings(
    "blocklist_usable",
    "1 if a DNS blocklist can be used through this resolver, 0 if not; absent before its first test.",
    "list",
    [...state.blocklists].map(([list, isUsable]) => [list, Number(isUsable)] as const),
  ),
];

const probeReadings = (state: ServiceState): readonly Reading[] => [
  reading("smtp_connections", "SMTP sessions that are open or being opened.", state.connections),
  reading("smtp_waiting_probes", "Probes that wait for a connection.", state.waitingProbes),
  reading("smtp_hosts", "Addresses of mail hosts with probes, connections or a pause.", state.hosts),
  reading("smtp_cooldowns", "Addresses of mail hosts not dialled because they kept timing out.", state.cooldowns),
  readings("verifications_running", "Attempts under way.", "source", [
    ["single", state.runningVerifications],
    ["list", state.runningListAddresses],
  ]),
];

const backlogReadings = (backlog: Backlog, nowMs: number): readonly Reading[] => {
  const ageS = (ms: number | null): number => (ms === null ? 0 : Math.max(0, nowMs - ms) / 1_000);
  const jobs = JOB_STATUSES.map((status) => ({ status, ...backlog.jobs.find((one) => one.status === status) }));
  return [
    reading(
      "verifications_pending",
      `Single verifications without a result, also those that wait for a retry; ${AT_MOST}.`,
      backlog.pendingVerifications,
    ),
    readings(
      "bulk_jobs",
      "Lists that have not ended.",
      "status",
      jobs.map(({ status, jobs: count = 0 }) => [status, count] as const),
    ),
    readings(
      "bulk_rows_left",
      "Rows without a result in lists that have not ended.",
      "status",
      jobs.map(({ status, rowsLeft = 0 }) => [status, rowsLeft] as const),
    ),
    readings("credits_balance", "Credits of all accounts.", "state", Object.entries(backlog.credits)),
    reading("reports_pending", `Report mails and files that wait to be read; ${AT_MOST}.`, backlog.pendingReports),
    reading(
      "reports_oldest_pending_seconds",
      "Age of the oldest report that waits to be read.",
      ageS(backlog.oldestReportMs),
    ),
    reading(
      "webhook_oldest_pending_seconds",
      "Age of the oldest event that has not reached its receiver; 0 if there is none.",
      ageS(backlog.oldestEventMs),
    ),
    reading("webhook_overdue_seconds", "How late the longest due delivery attempt is.", ageS(backlog.webhookDueMs)),
    reading(
      "blocklist_check_overdue_seconds",
      "How late the check of the longest due blocklist target is.",
      ageS(backlog.checkDueMs),
    ),
  ];
};

const usageReadings = ({ fileBytes, walBytes, diskFreeBytes, diskBytes }: DatabaseUsage): readonly Reading[] => [
  reading("database_size_bytes", "Size of the database file.", fileBytes),
  reading("database_wal_size_bytes", "Size of the write-ahead log.", walBytes),
  reading("disk_free_bytes", "Free space on the disk of the database.", diskFreeBytes),
  reading("disk_size_bytes", "Size of the disk of the database.", diskBytes),
];

/** The gauges of a state in which everything is known: all there are. */
export const completeRegistry = (): Registry =>
  stateRegistry({
    nowMs: 0,
    version: "",
    isReady: true,
    findings: 0,
    outage: null,
    connections: 0,
    waitingProbes: 0,
    hosts: 0,
    cooldowns: 0,
    runningVerifications: 0,
    runningListAddresses: 0,
    webhookQueues: 0,
    blocklists: new Map(),
    backlog: {
      pendingVerifications: 0,
      pendingReports: 0,
      credits: { available: 0, held: 0 },
      jobs: [],
      oldestReportMs: null,
      oldestEventMs: null,
      webhookDueMs: null,
      checkDueMs: null,
    },
    isBackupEnabled: true,
    lastBackupMs: 0,
    usage: { fileBytes: 0, walBytes: 0, diskFreeBytes: 0, diskBytes: 0 },
  });
