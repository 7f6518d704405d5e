import { and, eq } from "drizzle-orm";
import type { Db } from "../foundation/db/open.ts";
import { blocklistBudgets } from "../foundation/db/schema-blocklist.ts";
import type { BudgetLedger } from "./lists/budget.ts";

/** The query budgets of the lists, in the database. */
export const createBudgetLedger = (db: Db): BudgetLedger => ({
  reserve: (listId, day, { wanted, most }) =>
    db.apart(() =>
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
    ),
});

/** Reads how many queries of a day (days since 1970, UTC) are reserved, by the id of the list. */
export type BudgetReader = (day: number) => ReadonlyMap<string, number>;

export const createBudgetReader =
  (db: Pick<Db, "orm">): BudgetReader =>
  (day) => {
    const rows = db.orm.select().from(blocklistBudgets).where(eq(blocklistBudgets.day, day)).all();
    return new Map(rows.map(({ listId, reserved }) => [listId, reserved]));
  };
