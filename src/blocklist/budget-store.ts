import { and, eq } from "drizzle-orm";
import type { Db, Tx } from "../db/open.ts";
import { blocklistBudgets } from "../db/schema-blocklist.ts";

export const createBudgetStore = (db: Db) => ({
  /** Queries reserved of a list's budget of a day (days since 1970, UTC). */
  reservedOn: (listId: string, day: number): number =>
    db.orm
      .select({ reserved: blocklistBudgets.reserved })
      .from(blocklistBudgets)
      .where(and(eq(blocklistBudgets.listId, listId), eq(blocklistBudgets.day, day)))
      .get()?.reserved ?? 0,
  keepReserved: (_tx: Tx, listId: string, day: number, reserved: number): void =>
    void db.orm
      .insert(blocklistBudgets)
      .values({ listId, day, reserved })
      .onConflictDoUpdate({ target: blocklistBudgets.listId, set: { day, reserved } })
      .run(),
});

export type BudgetStore = ReturnType<typeof createBudgetStore>;
