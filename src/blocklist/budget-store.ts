import { and, eq } from "drizzle-orm";
import type { Db } from "../db/open.ts";
import { blocklistBudgets } from "../db/schema-blocklist.ts";
import type { BudgetLedger } from "../dnsbl/budget.ts";

/** The query budgets of the lists, in the database. */
export const createBudgetLedger = (db: Db): BudgetLedger => ({
  reserve: (listId, day, { wanted, most }) =>
    db.transact(() => {
      const row = db.orm
        .select({ reserved: blocklistBudgets.reserved })
        .from(blocklistBudgets)
        .where(and(eq(blocklistBudgets.listId, listId), eq(blocklistBudgets.day, day)))
        .get();
      const before = row?.reserved ?? 0;
      const granted = Math.max(0, Math.min(wanted, most - before));
      const set = { day, reserved: before + granted };
      if (granted > 0)
        db.orm
          .insert(blocklistBudgets)
          .values({ listId, ...set })
          .onConflictDoUpdate({ target: blocklistBudgets.listId, set })
          .run();
      return granted;
    }),
});
