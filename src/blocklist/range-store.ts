import { and, asc, eq, lt, max, min, ne } from "drizzle-orm";
import type { Db, Tx } from "../foundation/db/open.ts";
import { blocklistTargets } from "../foundation/db/schema-blocklist.ts";
import type { TargetChange, TargetRow, TargetStatus } from "./store.ts";

/** The state of the addresses of a range as a whole. */
export interface RangeSummary {
  /** The different statuses. */
  readonly statuses: readonly TargetStatus[];
  readonly severityRank: number;
  /** The latest check of any address, and the earliest that is due; null when there is none. */
  readonly lastCheckedAtMs: number | null;
  readonly nextCheckAtMs: number | null;
}

const table = blocklistTargets;
const isIn = (rangeId: string) => and(eq(table.rangeId, rangeId), ne(table.rangeId, ""));

const INSERT_MEMBERS = `INSERT INTO blocklist_targets (id, account_id, mode, kind, value, range_id, members, label, status, listed_on, muted_lists,
    severity_rank, alert_severity_min, monitoring_enabled, webhook_url, recipients, last_checked_at_ms, next_check_at_ms, created_at_ms)
  SELECT m.value ->> 'id', r.account_id, r.mode, r.kind, m.value ->> 'value', r.id, NULL, r.label, 'pending', '[]', r.muted_lists, 0,
    r.alert_severity_min, r.monitoring_enabled, r.webhook_url, r.recipients, NULL, r.next_check_at_ms + (m.value ->> 'delayMs'),
    r.created_at_ms
  FROM json_each(?) m JOIN blocklist_targets r ON r.id = ?`;

/** The addresses of ranges. */
export class RangeStore {
  constructor(private readonly db: Db) {}

  summarize(rangeId: string): RangeSummary {
    const rows = this.db.orm
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
    const numbers = (values: ReadonlyArray<number | null>) => values.filter((value) => value !== null);
    const checked = numbers(rows.map(({ lastCheckedAtMs }) => lastCheckedAtMs));
    const due = numbers(rows.map(({ nextCheckAtMs }) => nextCheckAtMs));
    return {
      statuses: rows.map(({ status }) => status),
      severityRank: Math.max(0, ...numbers(rows.map(({ severityRank }) => severityRank))),
      lastCheckedAtMs: checked.length === 0 ? null : Math.max(...checked),
      nextCheckAtMs: due.length === 0 ? null : Math.min(...due),
    };
  }

  /** The first addresses, by their ids. */
  members(rangeId: string, limit: number): TargetRow[] {
    return this.db.orm.select().from(table).where(isIn(rangeId)).orderBy(asc(table.id)).limit(limit).all();
  }

  /** The addresses that are listed. */
  listedMembers(rangeId: string): TargetRow[] {
    return this.db.orm
      .select()
      .from(table)
      .where(and(isIn(rangeId), ne(table.listedOn, [])))
      .all();
  }

  updateMembers(_tx: Tx, rangeId: string, change: TargetChange) {
    this.db.orm.update(table).set(change).where(isIn(rangeId)).run();
  }

  /** Adds the addresses of a new range, with its settings; they are due one after the other, starting at its own time. */
  insertMembers(_tx: Tx, rangeId: string, members: ReadonlyArray<{ id: string; value: string; delayMs: number }>) {
    this.db.sqlite.query<unknown, [string, string]>(INSERT_MEMBERS).run(JSON.stringify(members), rangeId);
  }

  /** Addresses of a resumed range that are overdue are checked from `fromMs` on. */
  postpone(_tx: Tx, rangeId: string, fromMs: number) {
    this.db.orm
      .update(table)
      .set({ nextCheckAtMs: fromMs })
      .where(and(isIn(rangeId), lt(table.nextCheckAtMs, fromMs)))
      .run();
  }
}
