import { DAY_MS } from "../foundation/base/days.ts";
import { inSteps, pagesOf } from "../foundation/base/in-steps.ts";
import { mapConcurrently } from "../foundation/base/wait.ts";
import type { Tx } from "../foundation/db/open.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import type { DnsblHealth } from "./lists/health.ts";
import type { Listings } from "./listings.ts";
import type { BlocklistMonitor } from "./monitor.ts";
import { nextTargetCheckMs, spreadMs } from "./transition.ts";
import type { BlocklistStore, TargetRow } from "./store.ts";
import type { TargetLookups } from "./target-lookup.ts";

export interface CheckSchedulerDeps {
  readonly store: BlocklistStore;
  readonly monitor: BlocklistMonitor;
  readonly health: DnsblHealth;
  readonly lookups: TargetLookups;
  readonly listings: Listings;
  /** For how many days checks without a change are kept. */
  readonly retentionDays: number;
}

/** Rows read at a time. */
const DUE_AT_ONCE_MAX = 200;
/** Targets checked at a time: each queries 16 lists at a time, and the DNS client sends 256 queries at a time. */
const TARGETS_AT_ONCE = 16;
/** This many checks this late are a backlog after a stop: they are spread instead of queried all at once. */
const LATE_MS = 10 * 60_000;
const BACKLOG_MIN = 100;
/** Checks with a change are kept at least this long, whatever the retention. */
const CHANGES_KEPT_DAYS = 400;
const ROWS_AT_ONCE = 1_000;

/** The scheduled work of blocklist monitoring. */
export class CheckScheduler {
  constructor(
    private readonly runtime: Runtime,
    private readonly deps: CheckSchedulerDeps,
  ) {}

  /** Checks every target that is due, until there is none. */
  async checkDue(): Promise<void> {
    const { store, monitor } = this.deps;
    while (!monitor.isStopping) {
      const due = store.dueTargets(this.runtime.clock.nowMs(), DUE_AT_ONCE_MAX);
      if (due.length === 0) return;
      await mapConcurrently(due, TARGETS_AT_ONCE, async (target) => {
        if (!monitor.isStopping) await this.#checkOne(target);
      });
    }
  }

  async #checkOne(target: TargetRow): Promise<void> {
    const { db, clock, log } = this.runtime;
    const { store, monitor } = this.deps;
    try {
      await monitor.check(target, "scheduled").done;
    } catch (error) {
      log.error("blocklist check failed, will be repeated at the next scheduled time", { target: target.id, error });
      const nextCheckAtMs = nextTargetCheckMs(target, clock.nowMs());
      await db.commit((tx) => store.updateTarget(tx, target.id, { nextCheckAtMs }));
    }
  }

  /** At startup: spreads the checks of many overdue targets over the next hour. */
  async spreadBacklog(): Promise<void> {
    const { db, clock, log } = this.runtime;
    const { store } = this.deps;
    const late = store.countDue(clock.nowMs() - LATE_MS);
    if (late < BACKLOG_MIN) return;
    log.info("many blocklist checks are overdue, spreading them over the next hour", { late });
    const spread = (tx: Tx): number => {
      const nowMs = clock.nowMs();
      const overdue = store.dueTargets(nowMs - LATE_MS, ROWS_AT_ONCE);
      for (const { id, status } of overdue) store.updateTarget(tx, id, { nextCheckAtMs: spreadMs(id, status, nowMs) });
      return overdue.length;
    };
    await inSteps(() => db.commit(spread));
  }

  /** At startup: computes the severity of listings that were stored by versions without it. */
  async fillSeverities(): Promise<void> {
    const { store, lookups, listings } = this.deps;
    const { db, clock } = this.runtime;
    const read = (after: string): TargetRow[] => store.withoutSeverity(after, ROWS_AT_ONCE);
    for await (const targets of pagesOf({ start: "", read, positionOf: ({ id }) => id })) {
      await db.commit((tx) => {
        for (const target of targets) {
          const { lists } = lookups[target.mode];
          listings.update(tx, target, { outcomes: [], lists, atMs: clock.nowMs() });
        }
      });
    }
  }

  /** Tests the lists whose last test is too old, if any target is monitored. */
  async testLists(): Promise<void> {
    const { store, health, lookups } = this.deps;
    if (store.countWatched() > 0) await health.ensureAllFresh(lookups.live.lists);
  }

  /** Deletes checks after the retention; those with a change after 400 days, or after the retention if that is longer. */
  async purgeOldChecks(): Promise<void> {
    const { retentionDays } = this.deps;
    await this.#purge(retentionDays, false);
    await this.#purge(Math.max(CHANGES_KEPT_DAYS, retentionDays), true);
  }

  async #purge(days: number, isChange: boolean): Promise<void> {
    const beforeMs = this.runtime.clock.nowMs() - days * DAY_MS;
    const { store, monitor } = this.deps;
    const purgeSome = (tx: Tx): number => store.purgeChecks(tx, { isChange, beforeMs, limit: ROWS_AT_ONCE });
    await inSteps(() => this.runtime.db.commit(purgeSome), { isStopping: () => monitor.isStopping });
  }
}
