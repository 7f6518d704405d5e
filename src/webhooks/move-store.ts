import { and, asc, eq, isNull, ne, sql } from "drizzle-orm";
import { newId } from "../base/secrets.ts";
import type { Db, Tx } from "../db/open.ts";
import { outbox } from "../db/schema.ts";
import { webhookDeliveries } from "../db/schema-webhooks.ts";
import type { Delivery, WebhookOwner, DeliveryStore } from "./delivery-store.ts";

/** A URL that was changed: what waits for the old one goes to the new one, or is cancelled when there is none. */
export interface UrlMove {
  /** Of one target or domain; null: the default URL of the account. */
  readonly subject: string | null;
  readonly from: string;
  readonly to: string | null;
}

/** Moves what waits for a URL that was changed. A moved event keeps its place in the order, and begins its attempts anew. */
export const createMoveStore = (db: Db, store: DeliveryStore) => {
  const table = webhookDeliveries;

  const waiting = ({ accountId, mode }: WebhookOwner, { subject, from }: UrlMove, limit: number): Delivery[] =>
    db.orm
      .select()
      .from(table)
      .where(
        and(
          ...[eq(table.accountId, accountId), eq(table.mode, mode), eq(table.url, from), sql`status = 'pending'`],
          subject === null ? undefined : eq(table.subject, subject),
          ne(table.via, subject === null ? "subject" : "default"),
        ),
      )
      .orderBy(asc(table.eventId))
      .limit(limit)
      .all();

  /** The same event on its way to the new URL already. */
  const twinOf = ({ accountId, mode, subject, eventId }: Delivery, url: string): Delivery | undefined =>
    db.orm
      .select()
      .from(table)
      .where(
        and(
          ...[eq(table.accountId, accountId), eq(table.mode, mode), eq(table.url, url), eq(table.subject, subject)],
          ...[eq(table.eventId, eventId), sql`status = 'pending'`],
        ),
      )
      .get();

  const moveOne = (tx: Tx, delivery: Delivery, { subject, to }: UrlMove, nowMs: number): void => {
    const { id, via } = delivery;
    const [leaving, staying] = subject === null ? (["default", "subject"] as const) : (["subject", "default"] as const);
    const twin = to === null ? undefined : twinOf(delivery, to);
    const fresh = { attempts: 0, rejections: 0, dueAtMs: null } as const;
    if (twin !== undefined) store.change(tx, twin.id, { via: "both" });
    if (via === "both") {
      store.change(tx, id, { via: staying });
      if (to !== null && twin === undefined) {
        const untried = { lastAttemptAtMs: null, lastHttpStatus: null, lastProblem: null, lastAnswer: null };
        store.insert(tx, { ...delivery, ...fresh, ...untried, id: newId(), url: to, via: leaving });
      }
    } else if (to !== null && twin === undefined) store.change(tx, id, { ...fresh, url: to });
    else {
      const lastProblem = "Not sent: the URL was removed or changed.";
      store.change(tx, id, { status: "cancelled", dueAtMs: null, lastProblem, finishedAtMs: nowMs });
    }
    store.wakeQueue(tx, delivery, nowMs);
    if (to !== null) store.wakeQueue(tx, { ...delivery, url: to }, nowMs);
  };

  return {
    /** Moves the first `limit` that wait for the old URL, and says how many; when it is the limit, there may be more. */
    move(tx: Tx, owner: WebhookOwner, move: UrlMove, atMs: number, limit: number): number {
      const { accountId, mode } = owner;
      const { subject, from, to } = move;
      if (subject !== null) {
        const untaken = and(
          ...[eq(outbox.accountId, accountId), eq(outbox.mode, mode), eq(outbox.subject, subject)],
          ...[eq(outbox.url, from), isNull(outbox.deliveredAtMs)],
        );
        db.orm.update(outbox).set({ url: to }).where(untaken).run();
      }
      const rows = waiting(owner, move, limit);
      for (const row of rows) moveOne(tx, row, move, atMs);
      return rows.length;
    },
  };
};

export type MoveStore = ReturnType<typeof createMoveStore>;
