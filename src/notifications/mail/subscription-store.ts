import { and, asc, eq, isNotNull } from "drizzle-orm";
import type { Db, Tx } from "../../foundation/db/open.ts";
import { mailSubscriptions } from "../../foundation/db/schema-webhooks.ts";

/** A kind of mail to a recipient of an account, with the token of its links. */
export type MailSubscription = Readonly<typeof mailSubscriptions.$inferSelect>;

/** What a recipient can stop. */
export type MailTopic = Pick<MailSubscription, "accountId" | "recipient" | "kind">;

const table = mailSubscriptions;
const isTopic = ({ accountId, recipient, kind }: MailTopic) =>
  and(eq(table.accountId, accountId), eq(table.recipient, recipient), eq(table.kind, kind));

export class SubscriptionStore {
  constructor(private readonly db: Pick<Db, "orm">) {}

  find(topic: MailTopic): MailSubscription | undefined {
    return this.db.orm.select().from(table).where(isTopic(topic)).get();
  }

  findByToken(token: string): MailSubscription | undefined {
    return this.db.orm.select().from(table).where(eq(table.token, token)).get();
  }

  insert(_tx: Tx, subscription: MailSubscription): void {
    this.db.orm.insert(table).values(subscription).run();
  }

  setStopped(_tx: Tx, token: string, stoppedAtMs: number | null): void {
    this.db.orm.update(table).set({ stoppedAtMs }).where(eq(table.token, token)).run();
  }

  /** What recipients of an account have stopped, by recipient. */
  listStopped(accountId: string, limit: number): MailSubscription[] {
    return this.db.orm
      .select()
      .from(table)
      .where(and(eq(table.accountId, accountId), isNotNull(table.stoppedAtMs)))
      .orderBy(asc(table.recipient), asc(table.kind))
      .limit(limit)
      .all();
  }
}
