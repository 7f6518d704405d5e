import { err, ok } from "../foundation/base/errors.ts";
import type { ActivityMetrics, Metrics } from "../service/metrics/metrics.ts";
import type { ServiceState } from "../service/metrics/state-metrics.ts";
import { emptyResponse } from "../foundation/net/dns.ts";
import { NO_CAPABILITIES } from "../foundation/net/smtp-handshake.ts";
import type { SmtpSession } from "../foundation/net/smtp-session.ts";
import { failureOf, OK, question } from "./probe-pool.ts";

/** The time of the state. */
export const STATE_NOW_MS = Date.UTC(2026, 0, 1);

/** A state in which everything is known. */
export const FULL_STATE: ServiceState = {
  ...{ nowMs: STATE_NOW_MS, version: "1.2.3", isReady: true, findings: 2, outage: null },
  ...{ connections: 3, waitingProbes: 4, hosts: 5, cooldowns: 6, webhookQueues: 7 },
  ...{ runningVerifications: 8, runningListAddresses: 9 },
  blocklists: new Map([
    ["one", true],
    ["two", false],
  ]),
  backlog: {
    ...{ pendingVerifications: 10, pendingReports: 11, credits: { available: 12, held: 13 } },
    jobs: [{ status: "running", jobs: 2, rowsLeft: 1_000 }],
    ...{
      oldestReportMs: STATE_NOW_MS - 1_500,
      oldestEventMs: null,
      webhookDueMs: STATE_NOW_MS + 5_000,
      checkDueMs: STATE_NOW_MS - 60_000,
    },
  },
  isBackupEnabled: true,
  lastBackupMs: STATE_NOW_MS - 3_600_000,
  usage: { fileBytes: 1, walBytes: 2, diskFreeBytes: 3, diskBytes: 4 },
};

/** One of every fact. */
export const exerciseActivity = (activity: ActivityMetrics): void => {
  activity.count({
    ...{ kind: "verification", mode: "test", source: "list" },
    ...{ verdict: "risky", subStatus: "catch_all" },
  });
  activity.count({ kind: "credits", move: "hold", credits: 100 });
  activity.count({ kind: "report", mode: "live", via: "smtp", outcome: "rejected", reason: "not_authentic" });
  activity.count({ kind: "report", mode: "live", via: "upload", outcome: "stored", reason: null });
  activity.count({
    kind: "blocklist_check",
    mode: "live",
    trigger: "schedule",
    status: "listed",
    listed: 1,
    delisted: 0,
  });
  activity.count({ kind: "webhook", mode: "live", status: "pending", ageMs: 10 });
  activity.count({ kind: "webhook", mode: "live", status: "delivered", ageMs: 4_000 });
};

const SESSION: SmtpSession = {
  ...{ capabilities: NO_CAPABILITIES, transcript: [], tls: false, usable: true },
  probe: async () => ({ mail: OK, rcpts: [OK], failure: failureOf("closed", "rcpt") }),
  close: () => undefined,
};

/** Uses every counter and histogram once, so that each has a sample with its labels. */
export const exerciseMetrics = async (metrics: Metrics): Promise<void> => {
  exerciseActivity(metrics.activity);
  metrics.countRequest("GET", 200);
  const { network } = metrics;
  await network
    .watchResolver({ resolve: async (name, type) => emptyResponse(name, type, "timeout") })
    .resolve("example.com", "MX");
  const opened = await network.watchSessions(async (_: null) => ok(SESSION))(null);
  if (opened.ok) {
    await opened.value.probe(question("a@example.com"));
    opened.value.close();
  }
  await network.watchSessions(async (_: null) => err(failureOf("connect_timeout", "connect")))(null);
};
