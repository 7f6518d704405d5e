import { databaseUsageOf } from "../foundation/db/database-files.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import { isDatabaseState } from "../foundation/base/errors.ts";
import { BacklogStore } from "./metrics/backlog-store.ts";
import type { Metrics } from "./metrics/metrics.ts";
import type { Readiness } from "./readiness.ts";
import { VERSION } from "./version.ts";

/** What the gauges read. */
export interface MetricsSources {
  readonly runtime: Runtime;
  readonly metrics: Metrics;
  readonly readiness: Readiness;
  readonly engine: {
    readonly smtp: {
      readonly pool: { connections(): number; waiting(): number; hosts(): number };
      readonly pacing: { countCooldowns(): number };
      readonly outages: { current(): string | null };
    };
  };
  readonly verification: { readonly runner: { running(): number } };
  readonly bulk: { readonly run: { readonly runner: { underWay(): number } } };
  readonly notifications: { readonly dispatcher: { readonly running: number } };
  /** Null where no backups are scheduled. */
  readonly backups: { readonly lastAtMs: number | null } | null;
  readonly blocklist: { readonly usability: { usableLists(): ReadonlyMap<string, boolean> } };
}

/** Reads the state of the service and renders all metrics. */
export const createMetricsRenderer = (sources: MetricsSources): (() => Promise<string>) => {
  const { runtime, metrics, readiness, engine, verification, bulk, notifications, blocklist, backups } = sources;
  const { pool, pacing, outages } = engine.smtp;
  const backlog = new BacklogStore(runtime.db);
  const readBacklog = () => {
    try {
      return backlog.read();
    } catch (error) {
      // A disk that fails is when the other metrics are needed most.
      if (!isDatabaseState(error)) throw error;
      runtime.log.error("metrics without the state of the database", { error });
      return null;
    }
  };
  return () => {
    const { reasons, findings } = readiness.check();
    return metrics.render({
      nowMs: runtime.clock.nowMs(),
      version: VERSION,
      isReady: reasons.length === 0,
      findings: findings.length,
      outage: outages.current(),
      connections: pool.connections(),
      waitingProbes: pool.waiting(),
      hosts: pool.hosts(),
      cooldowns: pacing.countCooldowns(),
      runningVerifications: verification.runner.running(),
      runningListAddresses: bulk.run.runner.underWay(),
      webhookQueues: notifications.dispatcher.running,
      blocklists: blocklist.usability.usableLists(),
      backlog: readBacklog(),
      isBackupEnabled: backups !== null,
      lastBackupMs: backups?.lastAtMs ?? null,
      usage: databaseUsageOf(runtime.db.sqlite.filename),
    });
  };
};
