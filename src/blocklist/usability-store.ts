import { and, eq, sql } from "drizzle-orm";
import type { Db, Tx } from "../db/open.ts";
import { blocklistTargets, blocklistUsability } from "../db/schema-blocklist.ts";

/** What was last told about the usability of lists, and whom it concerns. */
export const createUsabilityStore = (db: Db) => ({
  /** Lists of which it was told that they cannot be used. */
  unusableLists: (): string[] =>
    db.orm
      .select({ listId: blocklistUsability.listId })
      .from(blocklistUsability)
      .all()
      .map(({ listId }) => listId),
  keepUnusable: (_tx: Tx, listId: string, sinceMs: number): void =>
    void db.orm.insert(blocklistUsability).values({ listId, sinceMs }).onConflictDoNothing().run(),
  removeUnusable: (_tx: Tx, listId: string): void =>
    void db.orm.delete(blocklistUsability).where(eq(blocklistUsability.listId, listId)).run(),
  /** Accounts and the kinds of what they watch with live keys. */
  watchedKinds: () =>
    db.orm
      .selectDistinct({ accountId: blocklistTargets.accountId, kind: blocklistTargets.kind })
      .from(blocklistTargets)
      .where(and(sql`monitoring_enabled = 1`, eq(blocklistTargets.mode, "live")))
      .all(),
});

export type UsabilityStore = ReturnType<typeof createUsabilityStore>;
