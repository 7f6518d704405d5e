import { DAY_MS } from "../base/days.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Db } from "../db/open.ts";
import type { Blocklist } from "../dnsbl/blocklist.ts";
import type { DnsblHealth } from "../dnsbl/health.ts";
import { mapConcurrently } from "../base/wait.ts";
import type { Listings } from "./listings.ts";
import { listsFor, type Monitor } from "./monitor.ts";
import { nextTargetCheckMs, spreadMs } from "./schedule.ts";
import type { BlocklistStore, TargetRow } from "./store.ts";

export interface CheckSchedulerDeps {
  readonly db: Db;
  readonly store: BlocklistStore;
  readonly monitor: Monitor;
  readonly health: DnsblHealth;
  readonly lists: readonly Blocklist[];
  readonly listings: Listings;
  readonly clock: Clock;
  readonly log: Log;
  /** For how many days a check is kept in which nothing came or went. */
  readonly retentionDays: number;
}

/** Rows read at a time. */
const DUE_AT_ONCE_MAX = 200;
/** Targets checked at a time; each asks 16 lists at a time, and 256 questions are what the DNS client has under way. */
const TARGETS_AT_ONCE = 16;
/** So late and so many: the service was away, and asking all at once would be rude and of no use. */
const LATE_MS = 10 * 60_000;
const BACKLOG_MIN = 100;
/** Checks in which something came or went are kept at least so long, whatever is set for those that only say "as before". */
const CHANGES_KEPT_DAYS = 400;
const ROWS_AT_ONCE = 1_000;

/** What the timetable does for blocklist monitoring. */
export const createCheckScheduler = (deps: CheckSchedulerDeps) => {
  const { db, store, monitor, health, lists, listings, clock, log, retentionDays } = deps;

  const checkOne = async (target: TargetRow): Promise<void> => {
    try {
      await monitor.check(target, "scheduled").done;
    } catch (cause) {
      log.error("a blocklist check failed; it is done again at its next time", { target: target.id, cause });
      const nextCheckAtMs = nextTargetCheckMs(target, clock.nowMs());
      await db.commit((tx) => store.updateTarget(tx, target.id, { nextCheckAtMs }));
    }
  };

  const spreadSome = (): Promise<number> =>
    db.commit((tx) => {
      const nowMs = clock.nowMs();
      const late = store.dueTargets(nowMs - LATE_MS, ROWS_AT_ONCE);
      for (const { id, status } of late) store.updateTarget(tx, id, { nextCheckAtMs: spreadMs(id, status, nowMs) });
      return late.length;
    });

  const purgeAll = async (beforeMs: number, withChanges: boolean): Promise<void> => {
    let purged = ROWS_AT_ONCE;
    while (purged === ROWS_AT_ONCE) {
      purged = await db.commit((tx) => store.purgeChecks(tx, beforeMs, { withChanges, limit: ROWS_AT_ONCE }));
    }
  };

  return {
    /** Checks every target whose time has come, until there is none. */
    async checkDue(): Promise<void> {
      while (!monitor.isStopping()) {
        const due = store.dueTargets(clock.nowMs(), DUE_AT_ONCE_MAX);
        if (due.length === 0) return;
        await mapConcurrently(due, TARGETS_AT_ONCE, (target) =>
          monitor.isStopping() ? Promise.resolve() : checkOne(target),
        );
      }
    },

    /** At the start: when many targets have been due for long, gives them new times within the next hour. */
    async spreadBacklog(): Promise<void> {
      const late = store.countDue(clock.nowMs() - LATE_MS);
      if (late < BACKLOG_MIN) return;
      log.info("many blocklist targets were not checked for long; their checks are spread over the next hour", {
        late,
      });
      let spread = ROWS_AT_ONCE;
      while (spread === ROWS_AT_ONCE) spread = await spreadSome();
    },

    /** At the start: works out how bad listings are that are older than this service's knowledge of it. */
    async fillSeverities(): Promise<void> {
      let filled = ROWS_AT_ONCE;
      while (filled === ROWS_AT_ONCE) {
        filled = await db.commit((tx) => {
          const rows = store.withoutSeverity(ROWS_AT_ONCE);
          for (const target of rows) {
            listings.settle(tx, target, { outcomes: [], lists: listsFor(target.mode, lists), atMs: clock.nowMs() });
          }
          return rows.length;
        });
      }
    },

    /** Tests the lists whose last test is too old, when there is anything to watch. */
    async testLists(): Promise<void> {
      if (store.countWatched() > 0) await health.ensureAllFresh(lists);
    },

    /** Removes checks older than the setting says, and those with changes after 400 days, or when the setting is longer, then. */
    async purgeOldChecks(): Promise<void> {
      const changesDays = Math.max(CHANGES_KEPT_DAYS, retentionDays);
      await purgeAll(clock.nowMs() - retentionDays * DAY_MS, false);
      await purgeAll(clock.nowMs() - changesDays * DAY_MS, true);
    },
  };
};

export type CheckScheduler = ReturnType<typeof createCheckScheduler>;
