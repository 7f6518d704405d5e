import { desc, eq } from "drizzle-orm";
import type { Db, Tx } from "../../foundation/db/open.ts";
import { placeholdersOf } from "../../foundation/db/placeholders.ts";
import { webhookAttempts } from "../../foundation/db/schema-webhooks.ts";
import { statements } from "../../foundation/db/statements.ts";

/** An attempt at a delivery, and how it ended. */
export type DeliveryAttempt = Readonly<typeof webhookAttempts.$inferSelect>;

const table = webhookAttempts;

/** Attempts at deliveries, kept as long as their delivery. */
export class AttemptStore {
  readonly #orm: Db["orm"];
  readonly #sql;

  constructor({ orm }: Pick<Db, "orm">) {
    this.#orm = orm;
    const { id: _, ...columns } = placeholdersOf(table);
    this.#sql = statements({
      insert: () => orm.insert(table).values(columns).prepare(),
    });
  }

  insert(_tx: Tx, attempt: Omit<DeliveryAttempt, "id">): void {
    this.#sql.insert.run(attempt);
  }

  /** The attempts at a delivery, oldest first. */
  ofDelivery(deliveryId: string, limit: number): DeliveryAttempt[] {
    const newest = this.#orm.select().from(table).where(eq(table.deliveryId, deliveryId));
    return newest.orderBy(desc(table.id)).limit(limit).all().toReversed();
  }
}
