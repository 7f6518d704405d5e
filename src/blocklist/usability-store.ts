import { and, eq, sql } from "drizzle-orm";
import type { Db, Tx } from "../foundation/db/open.ts";
import { blocklistTargets, blocklistUsability } from "../foundation/db/schema-blocklist.ts";

/** The lists that accounts were notified about, and the accounts that lists concern. */
export class UsabilityStore {
  constructor(private readonly db: Pick<Db, "orm">) {}

  /** Lists that accounts were last notified about as unusable. */
  unusableLists(): string[] {
    const rows = this.db.orm.select({ listId: blocklistUsability.listId }).from(blocklistUsability).all();
    return rows.map(({ listId }) => listId);
  }

  keepUnusable(_tx: Tx, listId: string, sinceMs: number): void {
    this.db.orm.insert(blocklistUsability).values({ listId, sinceMs }).onConflictDoNothing().run();
  }

  removeUnusable(_tx: Tx, listId: string): void {
    this.db.orm.delete(blocklistUsability).where(eq(blocklistUsability.listId, listId)).run();
  }

  /** Accounts with the kinds of target that they monitor with live keys. */
  watchedKinds() {
    return this.db.orm
      .selectDistinct({ accountId: blocklistTargets.accountId, kind: blocklistTargets.kind })
      .from(blocklistTargets)
      .where(and(sql`monitoring_enabled = 1`, eq(blocklistTargets.mode, "live")))
      .all();
  }
}
