import { and, asc, eq, isNull, or, sql } from "drizzle-orm";
import type { Owner } from "../../foundation/base/secrets.ts";
import type { Db, Tx } from "../../foundation/db/open.ts";
import { maintenanceWindows, webhookHolds } from "../../foundation/db/schema-webhooks.ts";
import { statements } from "../../foundation/db/statements.ts";

export type WindowRow = Readonly<typeof maintenanceWindows.$inferSelect>;

const table = maintenanceWindows;
const belongsTo = (owner: Owner | null) =>
  owner === null ? isNull(table.accountId) : and(eq(table.accountId, owner.accountId), eq(table.mode, owner.mode));

/** The maintenance windows of accounts, and those of the operator: their owner is null. */
export class WindowStore {
  readonly #sql;

  constructor(private readonly db: Db) {
    this.#sql = statements({
      inForce: () =>
        db.orm
          .select()
          .from(table)
          .where(
            or(
              isNull(table.accountId),
              and(eq(table.accountId, sql.placeholder("accountId")), eq(table.mode, sql.placeholder("mode"))),
            ),
          )
          .orderBy(asc(table.id))
          .prepare(),
    });
  }

  /** The windows of an owner and of the operator, the oldest first. */
  inForce({ accountId, mode }: Owner): WindowRow[] {
    return this.#sql.inForce.all({ accountId, mode });
  }

  of(owner: Owner | null): WindowRow[] {
    return this.db.orm.select().from(table).where(belongsTo(owner)).orderBy(asc(table.id)).all();
  }

  insert(_tx: Tx, row: WindowRow) {
    this.db.orm.insert(table).values(row).run();
  }

  remove(_tx: Tx, id: string) {
    this.db.orm.delete(table).where(eq(table.id, id)).run();
  }

  end(_tx: Tx, id: string, nowMs: number) {
    this.db.orm.update(table).set({ untilMs: nowMs }).where(eq(table.id, id)).run();
  }
}

/** A URL of a channel. */
interface HeldUrl extends Owner {
  readonly url: string;
}

const holds = webhookHolds;
const isHold = ({ accountId, mode, url }: HeldUrl) =>
  and(eq(holds.accountId, accountId), eq(holds.mode, mode), eq(holds.url, url));

/** The channels that a window holds, or held. */
export class HoldStore {
  constructor(private readonly db: Db) {}

  sinceMs(held: HeldUrl): number | undefined {
    return this.db.orm.select({ sinceMs: holds.sinceMs }).from(holds).where(isHold(held)).get()?.sinceMs;
  }

  insert(_tx: Tx, { accountId, mode, url }: HeldUrl, sinceMs: number) {
    this.db.orm.insert(holds).values({ accountId, mode, url, sinceMs }).onConflictDoNothing().run();
  }

  remove(_tx: Tx, held: HeldUrl) {
    this.db.orm.delete(holds).where(isHold(held)).run();
  }
}
