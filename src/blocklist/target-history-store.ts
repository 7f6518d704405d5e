import type { Db } from "../foundation/db/open.ts";
import type { Delivery } from "../notifications/webhooks/delivery-store.ts";
import type { CheckRow } from "./store.ts";
import type { Owner } from "../foundation/base/secrets.ts";
import type { FiltersOf } from "../foundation/base/walk.ts";

/** A check without its body. */
export interface CheckHead {
  readonly id: string;
  readonly finishedAtMs: number;
  readonly isChange: 0 | 1;
}

/** `isChange`: only checks that added or removed a listing. */
export type CheckFilter = FiltersOf<Pick<CheckRow, "status" | "trigger" | "isChange">>;

/** An event about a target; `data` is JSON text. */
export interface TargetEvent {
  readonly id: string;
  readonly data: string;
  readonly createdAtMs: number;
  /** When its deliveries were created; at once when it is in the feed only. */
  readonly deliveredAtMs: number | null;
}

export type EventDelivery = Pick<Delivery, "eventId" | "status">;

/** What `blocklist_checks_by_target` has: bodies are not read. */
const filtered = ({ status, trigger, isChange }: CheckFilter): { readonly sql: string; readonly values: string[] } => ({
  sql: [
    ...(status === undefined ? [] : [" AND status = ?"]),
    ...(trigger === undefined ? [] : [" AND trigger = ?"]),
    ...(isChange === true ? [" AND is_change = 1"] : []),
  ].join(""),
  values: [...(status === undefined ? [] : [status]), ...(trigger === undefined ? [] : [trigger])],
});

/** Reads of the history of one target for the dashboard, each with a limit. */
export class TargetHistoryStore {
  constructor(private readonly db: Db) {}

  /** The newest checks that finished after a time, the newest first. */
  heads(targetId: string, afterMs: number, limit: number): CheckHead[] {
    return this.db.sqlite
      .query<CheckHead, [string, number, number]>(
        `SELECT id, finished_at_ms finishedAtMs, is_change isChange FROM blocklist_checks
          WHERE target_id = ? AND finished_at_ms > ? ORDER BY id DESC LIMIT ?`,
      )
      .all(targetId, afterMs, limit);
  }

  /** The bodies of checks by their ids. */
  bodies(ids: readonly string[]): ReadonlyMap<string, string> {
    const rows = this.db.sqlite
      .query<{ id: string; body: string }, [string]>(
        "SELECT c.id, c.body FROM json_each(?) wanted CROSS JOIN blocklist_checks c ON c.id = wanted.value",
      )
      .all(JSON.stringify(ids));
    return new Map(rows.map(({ id, body }) => [id, body]));
  }

  countChecks(targetId: string, filter: CheckFilter): number {
    const { sql, values } = filtered(filter);
    const row = this.db.sqlite
      .query<{ count: number }, string[]>(`SELECT count(*) count FROM blocklist_checks WHERE target_id = ?${sql}`)
      .get(targetId, ...values);
    return row?.count ?? 0;
  }

  /** Ids of checks, the newest first. */
  checkIds(targetId: string, filter: CheckFilter, { offset, limit }: { offset: number; limit: number }): string[] {
    const { sql, values } = filtered(filter);
    return this.db.sqlite
      .query<{ id: string }, (string | number)[]>(
        `SELECT id FROM blocklist_checks WHERE target_id = ?${sql} ORDER BY id DESC LIMIT ? OFFSET ?`,
      )
      .all(targetId, ...values, limit, offset)
      .map(({ id }) => id);
  }

  /** The newest events about a target. */
  events({ accountId, mode }: Owner, targetId: string, limit: number): TargetEvent[] {
    return this.db.sqlite
      .query<TargetEvent, [string, string, string, number]>(
        `SELECT id, data, created_at_ms createdAtMs, delivered_at_ms deliveredAtMs FROM outbox
          WHERE account_id = ? AND mode = ? AND subject = ? ORDER BY id DESC LIMIT ?`,
      )
      .all(accountId, mode, `target:${targetId}`, limit);
  }

  deliveries(eventIds: readonly string[]): EventDelivery[] {
    return this.db.sqlite
      .query<EventDelivery, [string]>(
        `SELECT d.event_id eventId, d.status FROM json_each(?) wanted
          CROSS JOIN webhook_deliveries d ON d.event_id = wanted.value`,
      )
      .all(JSON.stringify(eventIds));
  }
}
