import { and, asc, desc, eq, gt, gte, inArray, isNotNull, lte, type SQL, sql } from "drizzle-orm";
import { z } from "zod";
import type { Stretch } from "../../foundation/base/walk.ts";
import type { Db, Tx } from "../../foundation/db/open.ts";
import { outbox } from "../../foundation/db/schema.ts";
import type { WebhookOwner } from "./delivery-store.ts";
import { statements } from "../../foundation/db/statements.ts";

/** An event in the outbox (`foundation/db/outbox.ts`). `data` is JSON text. */
export type EventRow = Readonly<typeof outbox.$inferSelect>;

const dataSchema = z.looseObject({});

/** The `data` of an event. */
export const eventData = ({ data }: Pick<EventRow, "data">): object => dataSchema.parse(JSON.parse(data));

export interface EventFilters {
  readonly sinceMs?: number | undefined;
  readonly type?: string | undefined;
  readonly subject?: string | undefined;
}

const table = outbox;
const belongsTo = ({ accountId, mode }: WebhookOwner): SQL | undefined =>
  and(eq(table.accountId, accountId), eq(table.mode, mode));

const prepare = ({ orm }: Pick<Db, "orm">) =>
  statements({
    waiting: () =>
      orm
        .select()
        .from(table)
        .where(sql`delivered_at_ms is null`)
        .orderBy(asc(table.id))
        .limit(sql.placeholder("limit"))
        .prepare(),
    markDelivered: () =>
      orm
        .update(table)
        .set({ deliveredAtMs: sql`${sql.placeholder("atMs")}` })
        .where(eq(table.id, sql.placeholder("id")))
        .prepare(),
  });

/** Reads the outbox: for the relay, and as the event feed of each account and mode. */
export class EventStore {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(private readonly db: Db) {
    this.#statements = prepare(db);
  }

  /** Events without deliveries, oldest first. */
  waiting(limit: number): EventRow[] {
    return this.#statements.waiting.all({ limit });
  }

  /** The deliveries of an event are created. */
  markDelivered(_tx: Tx, id: string, atMs: number): void {
    this.#statements.markDelivered.run({ id, atMs });
  }

  /** Examines the next `looks` events of an owner after an id, oldest first, and returns up to `wanted` that match. */
  window(owner: WebhookOwner, { sinceMs, type, subject }: EventFilters) {
    return (after: string | null, looks: number, wanted: number): Stretch<EventRow, string> => {
      const behind = and(
        belongsTo(owner),
        after === null ? undefined : gt(table.id, after),
        subject === undefined ? undefined : eq(table.subject, subject),
      );
      const ids = this.db.orm.select({ id: table.id }).from(table).where(behind).orderBy(asc(table.id));
      const upTo =
        ids
          .limit(1)
          .offset(looks - 1)
          .get()?.id ?? null;
      const matching = and(
        behind,
        upTo === null ? undefined : lte(table.id, upTo),
        sinceMs === undefined ? undefined : gte(table.createdAtMs, sinceMs),
        type === undefined ? undefined : eq(table.type, type),
      );
      const rows = this.db.orm.select().from(table).where(matching).orderBy(asc(table.id)).limit(wanted).all();
      const last = rows.at(-1);
      return { rows, end: rows.length === wanted && last !== undefined ? last.id : upTo };
    };
  }

  /** Accounts and modes that have events. */
  owners(): WebhookOwner[] {
    return this.db.orm.selectDistinct({ accountId: table.accountId, mode: table.mode }).from(table).all();
  }

  /** The newest event of an owner that is not among the newest `kept`; undefined when there are not that many. */
  surplusFrom(owner: WebhookOwner, kept: number): string | undefined {
    const ids = this.db.orm.select({ id: table.id }).from(table).where(belongsTo(owner)).orderBy(desc(table.id));
    return ids.limit(1).offset(kept).get()?.id;
  }

  /** Deletes up to `limit` events of an owner up to an id and returns how many. Events not relayed yet are kept. */
  purgeUpTo(_tx: Tx, owner: WebhookOwner, id: string, limit: number): number {
    return this.#purge(and(belongsTo(owner), lte(table.id, id)), limit, Number.POSITIVE_INFINITY);
  }

  /** Deletes some of the `limit` oldest events, those of before a time, and returns how many. Events not relayed yet are kept. */
  purgeOld(_tx: Tx, beforeMs: number, limit: number): number {
    return this.#purge(undefined, limit, beforeMs);
  }

  #purge(condition: SQL | undefined, limit: number, beforeMs: number): number {
    const relayed = and(condition, isNotNull(table.deliveredAtMs));
    const { id, createdAtMs: at } = table;
    const rows = this.db.orm
      .select({ id, createdAtMs: at })
      .from(table)
      .where(relayed)
      .orderBy(asc(id))
      .limit(limit)
      .all();
    const ids = rows.filter(({ createdAtMs }) => createdAtMs < beforeMs).map((row) => row.id);
    this.db.orm.delete(table).where(inArray(table.id, ids)).run();
    return ids.length;
  }
}
