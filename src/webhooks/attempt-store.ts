import { desc, eq } from "drizzle-orm";
import type { Db, Tx } from "../db/open.ts";
import { webhookAttempts } from "../db/schema-webhooks.ts";

/** An attempt at a delivery, and how it ended. */
export type DeliveryAttempt = Readonly<typeof webhookAttempts.$inferSelect>;

const table = webhookAttempts;

/** Attempts at deliveries, kept as long as their delivery. */
export class AttemptStore {
  readonly #orm: Db["orm"];

  constructor({ orm }: Pick<Db, "orm">) {
    this.#orm = orm;
  }

  insert(_tx: Tx, attempt: Omit<DeliveryAttempt, "id">): void {
    const { deliveryId, accountId, mode, url, atMs, httpStatus, problem, answer } = attempt;
    this.#orm.insert(table).values({ deliveryId, accountId, mode, url, atMs, httpStatus, problem, answer }).run();
  }

  /** The attempts at a delivery, oldest first. */
  ofDelivery(deliveryId: string, limit: number): DeliveryAttempt[] {
    const newest = this.#orm.select().from(table).where(eq(table.deliveryId, deliveryId));
    return newest.orderBy(desc(table.id)).limit(limit).all().toReversed();
  }
}
