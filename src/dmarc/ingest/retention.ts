import { DAY_MS, dayOfTime } from "../../base/days.ts";
import type { Clock } from "../../base/clock.ts";
import type { Db, Tx } from "../../db/open.ts";
import type { DomainStore } from "../domains/domain-store.ts";
import type { RawCursor, RetentionStore } from "./retention-store.ts";

export interface RetentionDeps {
  readonly db: Db;
  readonly store: RetentionStore;
  readonly domains: DomainStore;
  readonly clock: Clock;
}

/** Days for which the bytes of what came to no domain's address are kept. */
export const RAW_DAYS = 90;
/** Days for which the list of what came in is kept, and alerts and changes of records. */
export const HISTORY_DAYS = 400;
/** Rows removed in one transaction: it holds the event loop for a few milliseconds. */
const ROWS_AT_ONCE = 500;
/** Transactions of one run of a job; the next one goes on. */
const CHUNKS_MAX = 20_000;
/** Deleted domains dealt with in one run. */
const DOMAINS_AT_ONCE = 100;

/** What is forgotten after a time. Each job works in short transactions, and goes on after a crash where it was. */
export const createRetention = ({ db, store, domains, clock }: RetentionDeps) => {
  /** Removes in short transactions until there is nothing left; true when it came to an end. */
  const untilGone = async (remove: (tx: Tx) => number): Promise<boolean> => {
    for (let chunk = 0; chunk < CHUNKS_MAX; chunk += 1) if ((await db.commit(remove)) === 0) return true;
    return false;
  };

  const beforeMs = (days: number): number => clock.nowMs() - days * DAY_MS;

  /** Sources that were last seen before a day. */
  const forgetSources = async (domain: number, day: number): Promise<void> => {
    let after = "";
    for (let chunk = 0; chunk < CHUNKS_MAX; chunk += 1) {
      const some = store.sourcesAfter(domain, after, ROWS_AT_ONCE);
      const last = some.at(-1);
      if (last === undefined) return;
      after = last.key;
      const old = some.filter(({ lastDay }) => lastDay < day);
      if (old.length === 0) continue;
      await db.commit((tx) => {
        for (const source of old) store.removeSource(tx, domain, source, day);
      });
    }
  };

  return {
    /** Forgets the bytes of what came in, as long ago as the domains want it. */
    async forgetRaw(): Promise<void> {
      const days = new Map(store.domains().map(({ number, rawRetentionDays }) => [number, rawRetentionDays]));
      const youngestMs = beforeMs(Math.min(RAW_DAYS, ...days.values()));
      let after: RawCursor = { receivedAtMs: -1, rowid: 0 };
      for (let chunk = 0; chunk < CHUNKS_MAX; chunk += 1) {
        const some = store.holders(after, youngestMs, ROWS_AT_ONCE);
        const last = some.at(-1);
        if (last === undefined) return;
        after = last;
        const old = some.filter(({ domain, receivedAtMs }) => {
          const kept = domain === null ? RAW_DAYS : (days.get(domain) ?? RAW_DAYS);
          return receivedAtMs < beforeMs(kept);
        });
        await db.commit((tx) => {
          for (const { id } of old) store.removeRaw(tx, id);
        });
      }
    },
    /** Forgets reports, their records, what was counted of them, and sources that are not seen any more. */
    async forgetReports(): Promise<void> {
      for (const { number, retentionDays } of store.domains()) {
        const day = dayOfTime(clock.nowMs()) - retentionDays;
        await untilGone((tx) => store.removeBeforeDay(tx, number, day, ROWS_AT_ONCE));
        await untilGone((tx) => store.removeTlsBefore(tx, number, beforeMs(retentionDays), ROWS_AT_ONCE));
        await forgetSources(number, day);
      }
    },
    /** Forgets the list of what came in, alerts and the history of records. */
    async forgetHistory(): Promise<void> {
      const oldMs = beforeMs(HISTORY_DAYS);
      await untilGone((tx) => store.removeIngestions(tx, oldMs, ROWS_AT_ONCE));
      for (const { number } of store.domains()) {
        await untilGone((tx) => store.removeHappenings(tx, number, oldMs, ROWS_AT_ONCE));
      }
    },
    /** Removes all that deleted domains have left, and at last the domains; answers how many are gone for good. */
    async purgeDeleted(): Promise<number> {
      let purged = 0;
      for (const { number } of domains.deleted(DOMAINS_AT_ONCE)) {
        const isEmpty = await untilGone((tx) => store.removeOfDomain(tx, number, ROWS_AT_ONCE));
        if (!isEmpty) continue;
        await db.commit((tx) => domains.remove(tx, number));
        purged += 1;
      }
      return purged;
    },
  };
};

export type Retention = ReturnType<typeof createRetention>;
