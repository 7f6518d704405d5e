import { and, asc, eq, sql } from "drizzle-orm";
import type { Db, Tx } from "../../foundation/db/open.ts";
import { webhookDeliveries, webhookHolds } from "../../foundation/db/schema-webhooks.ts";
import type { Delivery, WebhookEndpoint } from "./delivery-store.ts";

const holds = webhookHolds;
const deliveries = webhookDeliveries;
const isHold = ({ accountId, mode, url }: WebhookEndpoint) =>
  and(eq(holds.accountId, accountId), eq(holds.mode, mode), eq(holds.url, url));

/** The channels that a maintenance window holds. */
export class HoldStore {
  constructor(private readonly db: Db) {}

  sinceMs(endpoint: WebhookEndpoint): number | undefined {
    return this.db.orm.select({ sinceMs: holds.sinceMs }).from(holds).where(isHold(endpoint)).get()?.sinceMs;
  }

  insert(_tx: Tx, { accountId, mode, url }: WebhookEndpoint, sinceMs: number) {
    this.db.orm.insert(holds).values({ accountId, mode, url, sinceMs }).onConflictDoNothing().run();
  }

  remove(_tx: Tx, endpoint: WebhookEndpoint) {
    this.db.orm.delete(holds).where(isHold(endpoint)).run();
  }

  /** The oldest pending deliveries to a URL that were not tried yet. */
  untried({ accountId, mode, url }: WebhookEndpoint, limit: number): Delivery[] {
    const { accountId: account, attempts, eventId } = deliveries;
    const untried = [eq(account, accountId), eq(deliveries.mode, mode), eq(deliveries.url, url), eq(attempts, 0)];
    return this.db.orm
      .select()
      .from(deliveries)
      .where(and(...untried, sql`status = 'pending'`))
      .orderBy(asc(eventId))
      .limit(limit)
      .all();
  }
}
