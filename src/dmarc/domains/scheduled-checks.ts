import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Db } from "../../db/open.ts";
import type { DomainRow, DomainStore } from "./domain-store.ts";
import type { Domains } from "./domains.ts";
import { spreadOf } from "./domain-status.ts";

export interface ScheduledChecksDeps {
  readonly db: Db;
  readonly store: DomainStore;
  readonly domains: Pick<Domains, "checkScheduled" | "canCheck">;
  readonly clock: Clock;
  readonly log: Log;
}

/** Rows read at a time. */
const DUE_AT_ONCE_MAX = 200;
/** Domains checked at a time; each has two questions under way. */
const DOMAINS_AT_ONCE = 8;
/** So late and so many: the service was away, and asking all at once would be rude and of no use. */
const LATE_MS = 10 * 60_000;
const BACKLOG_MIN = 100;
const SPREAD_MS = 60 * 60_000;
const RETRY_MS = 30 * 60_000;
const ROWS_AT_ONCE = 1_000;

/** What the timetable does for the DNS of domains. */
export const createScheduledChecks = ({ db, store, domains, clock, log }: ScheduledChecksDeps) => {
  const checkOne = async (row: DomainRow): Promise<void> => {
    try {
      await domains.checkScheduled(row);
    } catch (cause) {
      log.error("the DNS check of a domain failed; it is done again in half an hour", { domain: row.id, cause });
      const nextCheckAtMs = clock.nowMs() + RETRY_MS;
      await db.commit((tx) => store.update(tx, row.number, { nextCheckAtMs }));
    }
  };

  /** A few workers take the rows in turn. */
  const checkAll = async (rows: readonly DomainRow[]): Promise<void> => {
    const left = rows.values();
    const work = async (): Promise<void> => {
      for (const row of left) if (domains.canCheck()) await checkOne(row);
    };
    await Promise.all(Array.from({ length: DOMAINS_AT_ONCE }, work));
  };

  const spreadSome = (): Promise<number> =>
    db.commit((tx) => {
      const nowMs = clock.nowMs();
      const late = store.due(nowMs - LATE_MS, ROWS_AT_ONCE);
      for (const { id, number } of late) {
        store.update(tx, number, { nextCheckAtMs: Math.round(nowMs + SPREAD_MS * spreadOf(id)) });
      }
      return late.length;
    });

  return {
    /** Checks every domain whose time has come, until there is none. */
    async run(): Promise<void> {
      while (domains.canCheck()) {
        const due = store.due(clock.nowMs(), DUE_AT_ONCE_MAX);
        if (due.length === 0) return;
        await checkAll(due);
      }
    },

    /** At the start: when many domains have been due for long, gives them new times within the next hour. */
    async spreadBacklog(): Promise<void> {
      const late = store.countDue(clock.nowMs() - LATE_MS);
      if (late < BACKLOG_MIN) return;
      log.info("many domains were not checked for long; their checks are spread over the next hour", { late });
      let spread = ROWS_AT_ONCE;
      while (spread === ROWS_AT_ONCE) spread = await spreadSome();
    },
  };
};

export type ScheduledChecks = ReturnType<typeof createScheduledChecks>;
