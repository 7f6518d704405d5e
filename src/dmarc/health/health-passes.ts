import type { Clock } from "../../base/clock.ts";
import { AppError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Db } from "../../db/open.ts";
import { spreadOf } from "../domains/domain-status.ts";
import type { HealthRuns } from "./health-runs.ts";
import type { DueHealth, HealthStore } from "./health-store.ts";

export interface HealthPassesDeps {
  readonly db: Db;
  readonly store: HealthStore;
  readonly runs: Pick<HealthRuns, "healthOf" | "isStopping">;
  readonly clock: Clock;
  readonly log: Log;
}

const LISTED_AT_ONCE = 1_000;
/** Fewer newcomers than this are checked at once; more (after an update, or an import) are spread over a day. */
const BACKLOG_MIN = 20;
const DAILY_MS = 86_400_000;
const RETRY_MS = 30 * 60_000;
/** Domains of one run, and checked at a time. */
const DUE_MAX = 200;
const AT_ONCE = 3;

/** The daily check of every live domain that is monitored, spread over the day. */
export const createHealthPasses = ({ db, store, runs, clock, log }: HealthPassesDeps) => {
  /** Domains up to this number have a check planned. */
  let plannedTo = 0;

  const planNewcomers = async (): Promise<void> => {
    for (;;) {
      const listed = store.domainsAfter(plannedTo, LISTED_AT_ONCE);
      const newcomers = listed.filter(({ isPlanned }) => !isPlanned);
      const spreadMs = newcomers.length < BACKLOG_MIN ? 0 : DAILY_MS;
      const nowMs = clock.nowMs();
      if (newcomers.length > 0) {
        await db.commit((tx) => {
          for (const { number, id } of newcomers) store.plan(tx, number, Math.round(nowMs + spreadMs * spreadOf(id)));
        });
      }
      plannedTo = listed.at(-1)?.number ?? plannedTo;
      if (listed.length < LISTED_AT_ONCE) return;
    }
  };

  const postpone = (number: number, afterMs: number): Promise<void> =>
    db.commit((tx) => store.postpone(tx, number, clock.nowMs() + afterMs));

  const checkOne = async (domain: DueHealth): Promise<void> => {
    if (!domain.isActive) return postpone(domain.number, DAILY_MS);
    try {
      await runs.healthOf(domain, { refresh: true, selectors: [], priority: "bulk" });
    } catch (cause) {
      // Callers have taken all places.
      if (!(cause instanceof AppError)) log.error("the health check of a domain failed", { domain: domain.id, cause });
      await postpone(domain.number, RETRY_MS);
    }
  };

  return {
    /** Checks the domains whose time has come, 200 at most. */
    async run(): Promise<void> {
      if (runs.isStopping()) return;
      await planNewcomers();
      const left = store.due(clock.nowMs(), DUE_MAX).values();
      const work = async (): Promise<void> => {
        for (const domain of left) {
          if (runs.isStopping()) return;
          await checkOne(domain);
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, work));
    },
  };
};
