import type { Db } from "../db/open.ts";
import type { BudgetLedger } from "../dnsbl/budget.ts";
import type { BudgetStore } from "./budget-store.ts";

/** The budgets of the lists in the database. */
export const createBudgetLedger = (db: Db, store: BudgetStore): BudgetLedger => ({
  reserve: (listId, day, { wanted, most }) =>
    db.transact((tx) => {
      const reserved = store.reservedOn(listId, day);
      const granted = Math.max(0, Math.min(wanted, most - reserved));
      if (granted > 0) store.keepReserved(tx, listId, day, reserved + granted);
      return granted;
    }),
});
