import { and, asc, eq, isNull, ne, sql } from "drizzle-orm";
import { newId } from "../../foundation/base/secrets.ts";
import type { Db, Tx } from "../../foundation/db/open.ts";
import { outbox } from "../../foundation/db/schema.ts";
import { webhookDeliveries } from "../../foundation/db/schema-webhooks.ts";
import type { Delivery, DeliveryStore, WebhookOwner } from "./delivery-store.ts";

/** A change of a webhook URL: pending deliveries go to the new URL, or are cancelled when there is none. */
export interface UrlMove {
  /** Of a target or domain; null: the default URL of the account. */
  readonly subject: string | null;
  readonly from: string;
  readonly to: string | null;
}

const table = webhookDeliveries;

/** Moves pending deliveries to another URL. They keep their order and start with the first attempt. */
export class MoveStore {
  constructor(
    private readonly db: Db,
    private readonly store: DeliveryStore,
  ) {}

  /** Moves up to `limit` pending deliveries and returns how many. */
  move(tx: Tx, owner: WebhookOwner, move: UrlMove, atMs: number, limit: number): number {
    const { subject, from, to } = move;
    if (subject !== null) {
      const notRelayed = and(
        ...[eq(outbox.accountId, owner.accountId), eq(outbox.mode, owner.mode), eq(outbox.subject, subject)],
        ...[eq(outbox.url, from), isNull(outbox.deliveredAtMs)],
      );
      this.db.orm.update(outbox).set({ url: to }).where(notRelayed).run();
    }
    const deliveries = this.#pending(owner, move, limit);
    for (const delivery of deliveries) this.#moveOne(tx, delivery, move, atMs);
    return deliveries.length;
  }

  #pending({ accountId, mode }: WebhookOwner, { subject, from }: UrlMove, limit: number): Delivery[] {
    const pending = and(
      ...[eq(table.accountId, accountId), eq(table.mode, mode), eq(table.url, from), sql`status = 'pending'`],
      subject === null ? undefined : eq(table.subject, subject),
      ne(table.via, subject === null ? "subject" : "default"),
    );
    return this.db.orm.select().from(table).where(pending).orderBy(asc(table.eventId)).limit(limit).all();
  }

  #moveOne(tx: Tx, delivery: Delivery, { subject, to }: UrlMove, nowMs: number): void {
    const { id, via } = delivery;
    const [leaving, staying] = subject === null ? (["default", "subject"] as const) : (["subject", "default"] as const);
    const duplicate = to === null ? undefined : this.#findPending(delivery, to);
    const restarted = { attempts: 0, rejections: 0, dueAtMs: null } as const;
    if (duplicate !== undefined) this.store.change(tx, duplicate.id, { via: "both" });
    if (via === "both") {
      this.store.change(tx, id, { via: staying });
      if (to !== null && duplicate === undefined) {
        const untried = { lastAttemptAtMs: null, lastHttpStatus: null, lastProblem: null, lastAnswer: null };
        this.store.insert(tx, { ...delivery, ...restarted, ...untried, id: newId(), url: to, via: leaving });
      }
    } else if (to !== null && duplicate === undefined) this.store.change(tx, id, { ...restarted, url: to });
    else {
      const lastProblem = "Not sent: the URL was removed or changed.";
      this.store.change(tx, id, { status: "cancelled", dueAtMs: null, lastProblem, finishedAtMs: nowMs });
    }
    this.store.wakeQueue(tx, delivery, nowMs);
    if (to !== null) this.store.wakeQueue(tx, { ...delivery, url: to }, nowMs);
  }

  /** The same event, pending for another URL. */
  #findPending({ accountId, mode, subject, eventId }: Delivery, url: string): Delivery | undefined {
    const same = and(
      ...[eq(table.accountId, accountId), eq(table.mode, mode), eq(table.url, url), eq(table.subject, subject)],
      ...[eq(table.eventId, eventId), sql`status = 'pending'`],
    );
    return this.db.orm.select().from(table).where(same).get();
  }
}
