import { and, asc, desc, eq, gt, gte, inArray, isNotNull, lte, sql } from "drizzle-orm";
import type { Stretch } from "../base/walk.ts";
import type { KeyMode } from "../base/secrets.ts";
import type { Db, Tx } from "../db/open.ts";
import { outbox } from "../db/schema.ts";
import type { WebhookOwner } from "./delivery-store.ts";

/** An event as a slice wrote it, in the transaction that changed the state. `data` is JSON text. */
export interface EventRow {
  /** The header `webhook-id`. */
  readonly id: string;
  readonly accountId: string;
  readonly mode: KeyMode;
  readonly type: string;
  /** What it is about: `target:<id>`, `domain:<id>`, `job:<id>` or `list:<id>`. */
  readonly subject: string;
  readonly data: string;
  /** The webhook of its subject. */
  readonly url: string | null;
  readonly createdAtMs: number;
}

export interface EventFilters {
  readonly sinceMs?: number | undefined;
  readonly type?: string | undefined;
  readonly subject?: string | undefined;
}

/** The events of all accounts: those that deliveries are still to be made of, and the feed. */
export const createEventStore = (db: Db) => {
  const table = outbox;
  return {
    /** Events of which no deliveries were made yet, the oldest first. */
    waiting: (limit: number): EventRow[] =>
      db.orm
        .select()
        .from(table)
        .where(sql`delivered_at_ms is null`)
        .orderBy(asc(table.id))
        .limit(limit)
        .all(),
    markTaken: (_tx: Tx, id: string, atMs: number): void =>
      void db.orm.update(table).set({ deliveredAtMs: atMs }).where(eq(table.id, id)).run(),
    /** Looks at windows of an owner's events, the oldest first, behind an id: `readWindows` the other way round. */
    window:
      ({ accountId, mode }: WebhookOwner, { sinceMs, type, subject }: EventFilters) =>
      (after: string | null, looks: number, wanted: number): Stretch<EventRow, string> => {
        const behind = and(
          ...[eq(table.accountId, accountId), eq(table.mode, mode)],
          after === null ? undefined : gt(table.id, after),
          subject === undefined ? undefined : eq(table.subject, subject),
        );
        const to = db.orm.select({ id: table.id }).from(table).where(behind).orderBy(asc(table.id));
        const upTo =
          to
            .limit(1)
            .offset(looks - 1)
            .get()?.id ?? null;
        const matching = and(
          behind,
          upTo === null ? undefined : lte(table.id, upTo),
          sinceMs === undefined ? undefined : gte(table.createdAtMs, sinceMs),
          type === undefined ? undefined : eq(table.type, type),
        );
        const rows = db.orm.select().from(table).where(matching).orderBy(asc(table.id)).limit(wanted).all();
        const last = rows.at(-1);
        return { rows, end: rows.length === wanted && last !== undefined ? last.id : upTo };
      },
    /** Owners that have events. */
    owners: (): WebhookOwner[] =>
      db.orm.selectDistinct({ accountId: table.accountId, mode: table.mode }).from(table).all(),
    /** The id of the event that has `kept` newer ones of its owner; undefined when there are not so many. */
    surplusFrom: ({ accountId, mode }: WebhookOwner, kept: number): string | undefined =>
      db.orm
        .select({ id: table.id })
        .from(table)
        .where(and(eq(table.accountId, accountId), eq(table.mode, mode)))
        .orderBy(desc(table.id))
        .limit(1)
        .offset(kept)
        .get()?.id,
    /** Purges some of an owner's events up to an id, and says how many. What is still to be delivered stays. */
    purgeUpTo(_tx: Tx, { accountId, mode }: WebhookOwner, id: string, limit: number): number {
      const old = db.orm
        .select({ id: table.id })
        .from(table)
        .where(
          and(eq(table.accountId, accountId), eq(table.mode, mode), lte(table.id, id), isNotNull(table.deliveredAtMs)),
        )
        .orderBy(asc(table.id))
        .limit(limit)
        .all();
      remove(old);
      return old.length;
    },
    /** Purges some of the oldest events, of before `beforeMs`, and says how many. What is still to be delivered stays. */
    purgeOld(_tx: Tx, beforeMs: number, limit: number): number {
      const old = db.orm
        .select({ id: table.id, createdAtMs: table.createdAtMs })
        .from(table)
        .where(isNotNull(table.deliveredAtMs))
        .orderBy(asc(table.id))
        .limit(limit)
        .all()
        .filter(({ createdAtMs }) => createdAtMs < beforeMs);
      remove(old);
      return old.length;
    },
  };

  function remove(rows: ReadonlyArray<{ readonly id: string }>): void {
    db.orm
      .delete(table)
      .where(
        inArray(
          table.id,
          rows.map(({ id }) => id),
        ),
      )
      .run();
  }
};

export type EventStore = ReturnType<typeof createEventStore>;
