import { and, asc, eq, gt, lt, max, min, ne } from "drizzle-orm";
import type { Db, Tx } from "../db/open.ts";
import { blocklistTargets } from "../db/schema-blocklist.ts";
import type { TargetChange, TargetRow, TargetStatus } from "./store.ts";

/** What the addresses of a range come to. */
export interface RangeSummary {
  /** The statuses that there are, each once. */
  readonly statuses: readonly TargetStatus[];
  readonly severityRank: number;
  /** The latest check of any, and the earliest that is due; null when there is none. */
  readonly lastCheckedAtMs: number | null;
  readonly nextCheckAtMs: number | null;
}

/** Access to the addresses of ranges. */
export const createRangeStore = (db: Db) => {
  const table = blocklistTargets;
  const isIn = (rangeId: string) => and(eq(table.rangeId, rangeId), ne(table.rangeId, ""));
  const insert = db.sqlite.prepare<unknown, [string, string]>(
    `INSERT INTO blocklist_targets (id, account_id, mode, kind, value, range_id, members, label, status, listed_on, muted_lists,
        severity_rank, alert_severity_min, monitoring_enabled, webhook_url, recipients, last_checked_at_ms, next_check_at_ms, created_at_ms)
      SELECT m.value ->> 'id', r.account_id, r.mode, r.kind, m.value ->> 'value', r.id, NULL, r.label, 'pending', '[]', r.muted_lists, 0,
        r.alert_severity_min, r.monitoring_enabled, r.webhook_url, r.recipients, NULL, r.next_check_at_ms + (m.value ->> 'delayMs'),
        r.created_at_ms
      FROM json_each(?) m JOIN blocklist_targets r ON r.id = ?`,
  );

  return {
    summarize(rangeId: string): RangeSummary {
      const rows = db.orm
        .select({
          status: table.status,
          severityRank: max(table.severityRank),
          lastCheckedAtMs: max(table.lastCheckedAtMs),
          nextCheckAtMs: min(table.nextCheckAtMs),
        })
        .from(table)
        .where(isIn(rangeId))
        .groupBy(table.status)
        .all();
      const numbers = (values: ReadonlyArray<number | null>): number[] => values.filter((value) => value !== null);
      const checked = numbers(rows.map(({ lastCheckedAtMs }) => lastCheckedAtMs));
      const due = numbers(rows.map(({ nextCheckAtMs }) => nextCheckAtMs));
      return {
        statuses: rows.map(({ status }) => status),
        severityRank: Math.max(0, ...numbers(rows.map(({ severityRank }) => severityRank))),
        lastCheckedAtMs: checked.length === 0 ? null : Math.max(...checked),
        nextCheckAtMs: due.length === 0 ? null : Math.min(...due),
      };
    },
    /** In the order of their ids, behind `after`. */
    members: (rangeId: string, after: string, limit: number): TargetRow[] =>
      db.orm
        .select()
        .from(table)
        .where(and(isIn(rangeId), gt(table.id, after)))
        .orderBy(asc(table.id))
        .limit(limit)
        .all(),
    /** Those that something lists. */
    listedMembers: (rangeId: string): TargetRow[] =>
      db.orm
        .select()
        .from(table)
        .where(and(isIn(rangeId), ne(table.listedOn, [])))
        .all(),
    updateMembers: (_tx: Tx, rangeId: string, change: TargetChange): void =>
      void db.orm.update(table).set(change).where(isIn(rangeId)).run(),
    /** Adds the addresses of a range that was added: they have what it has, and are due one after the other, from its own time on. */
    insertMembers: (
      _tx: Tx,
      rangeId: string,
      members: ReadonlyArray<{ id: string; value: string; delayMs: number }>,
    ): void => void insert.run(JSON.stringify(members), rangeId),
    /** What is overdue in a resumed range is checked from `fromMs` on. */
    postpone: (_tx: Tx, rangeId: string, fromMs: number): void =>
      void db.orm
        .update(table)
        .set({ nextCheckAtMs: fromMs })
        .where(and(isIn(rangeId), lt(table.nextCheckAtMs, fromMs)))
        .run(),
  };
};

export type RangeStore = ReturnType<typeof createRangeStore>;
