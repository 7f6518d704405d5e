import { and, eq, sql } from "drizzle-orm";
import type { Db, Tx } from "../foundation/db/open.ts";
import { blocklistTargets, blocklistUsability, blocklistBudgets } from "../foundation/db/schema-blocklist.ts";
import type { BudgetLedger } from "./lists/budget.ts";

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
