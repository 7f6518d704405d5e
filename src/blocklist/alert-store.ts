import { asc, eq, notInArray } from "drizzle-orm";
import type { Db, Tx } from "../db/open.ts";
import { blocklistAlerts } from "../db/schema-blocklist.ts";

/** A change that waits for the next mail to somebody; `body` is JSON text. */
export interface BlocklistAlertRow {
  readonly id: string;
  readonly recipient: string;
  readonly body: string;
  readonly createdAtMs: number;
}

/** What one mail tells of at most; the rest is in the next one. */
const ALERTS_AT_ONCE_MAX = 10_000;

/** Access to what waits for alert mail. */
export const createBlocklistAlertStore = (db: Db) => ({
  insertAlert: (_tx: Tx, alert: BlocklistAlertRow): void => void db.orm.insert(blocklistAlerts).values(alert).run(),
  /** Some of those for whom alerts wait, but for `without`. */
  alertRecipients: (limit: number, without: readonly string[]): string[] =>
    db.orm
      .selectDistinct({ recipient: blocklistAlerts.recipient })
      .from(blocklistAlerts)
      .where(notInArray(blocklistAlerts.recipient, [...without]))
      .limit(limit)
      .all()
      .map(({ recipient }) => recipient),
  /** The oldest first. */
  alertsFor: (recipient: string): BlocklistAlertRow[] =>
    db.orm
      .select()
      .from(blocklistAlerts)
      .where(eq(blocklistAlerts.recipient, recipient))
      .orderBy(asc(blocklistAlerts.id))
      .limit(ALERTS_AT_ONCE_MAX)
      .all(),
  removeAlert: (_tx: Tx, id: string): void =>
    void db.orm.delete(blocklistAlerts).where(eq(blocklistAlerts.id, id)).run(),
});
