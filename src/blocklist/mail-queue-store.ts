import { asc, eq, gt, inArray } from "drizzle-orm";
import { newId } from "../foundation/base/secrets.ts";
import type { Db, Tx } from "../foundation/db/open.ts";
import { blocklistAlerts } from "../foundation/db/schema-blocklist.ts";
import type { MailQueue, QueuedMail } from "../notifications/mail/mail-batcher.ts";

/** An entry of the next mail to a recipient; `body` is JSON text, see `mailEntrySchema`. */
export interface QueuedListingMail extends QueuedMail {
  readonly accountId: string;
  readonly recipient: string;
  readonly body: string;
}

/** What is to be mailed to a recipient of an account. */
export interface NewListingMail extends Pick<QueuedListingMail, "accountId" | "recipient" | "createdAtMs"> {
  readonly entry: object;
}

/** Entries of one mail; the rest is in the next one. */
const ENTRIES_MAX = 10_000;

/** What is queued for alert mail and digests about listings. */
export class ListingMailQueue implements MailQueue<QueuedListingMail> {
  constructor(private readonly db: Pick<Db, "orm">) {}

  insert(_tx: Tx, { entry, ...row }: NewListingMail): void {
    this.db.orm
      .insert(blocklistAlerts)
      .values({ id: newId(), ...row, body: JSON.stringify(entry) })
      .run();
  }

  recipients(after: string, limit: number): string[] {
    return this.db.orm
      .selectDistinct({ recipient: blocklistAlerts.recipient })
      .from(blocklistAlerts)
      .where(gt(blocklistAlerts.recipient, after))
      .orderBy(asc(blocklistAlerts.recipient))
      .limit(limit)
      .all()
      .map(({ recipient }) => recipient);
  }

  rowsFor(recipient: string): QueuedListingMail[] {
    return this.db.orm
      .select()
      .from(blocklistAlerts)
      .where(eq(blocklistAlerts.recipient, recipient))
      .orderBy(asc(blocklistAlerts.id))
      .limit(ENTRIES_MAX)
      .all();
  }

  remove(_tx: Tx, rows: readonly QueuedListingMail[]): void {
    const ids = rows.map(({ id }) => id);
    this.db.orm.delete(blocklistAlerts).where(inArray(blocklistAlerts.id, ids)).run();
  }
}
