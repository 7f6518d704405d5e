import { and, asc, eq, lte, type SQL, sql } from "drizzle-orm";
import type { KeyMode } from "../../foundation/base/secrets.ts";
import { OF_ENABLED_ACCOUNT } from "../../foundation/db/enabled-accounts.ts";
import type { Db, Tx } from "../../foundation/db/open.ts";
import { accountNotifications } from "../../foundation/db/schema-webhooks.ts";
import { statements } from "../../foundation/db/statements.ts";

/** Each account and mode has its own settings. */
export interface NotificationsOwner {
  readonly accountId: string;
  readonly mode: KeyMode;
}

/** The settings of an account and mode, in addition to the URL and recipients of a target, domain or job. */
export type NotificationsRow = Readonly<typeof accountNotifications.$inferSelect>;
export type NotificationDefaults = Omit<NotificationsRow, "accountId" | "mode" | "updatedAtMs">;

const NOTHING: NotificationDefaults = {
  webhookUrl: null,
  recipients: [],
  blacklistSeverityMin: null,
  blacklistDigest: "off",
  blacklistDigestDueAtMs: null,
};

const table = accountNotifications;
const belongsTo = ({ accountId, mode }: NotificationsOwner): SQL | undefined =>
  and(eq(table.accountId, accountId), eq(table.mode, mode));

export class NotificationsStore {
  readonly #sql;

  constructor(private readonly db: Db) {
    const ofOwner = [eq(table.accountId, sql.placeholder("accountId")), eq(table.mode, sql.placeholder("mode"))];
    this.#sql = statements({
      find: () =>
        db.orm
          .select()
          .from(table)
          .where(and(...ofOwner))
          .prepare(),
    });
  }

  /** Undefined if nothing has been set. */
  find({ accountId, mode }: NotificationsOwner): NotificationsRow | undefined {
    return this.#sql.find.get({ accountId, mode });
  }

  /** The settings of an owner, or the initial ones. */
  findDefaults(owner: NotificationsOwner): NotificationDefaults {
    return this.find(owner) ?? NOTHING;
  }

  /** Accounts and modes whose digest of listings is due, the longest waiting first. */
  dueDigests(nowMs: number, limit: number) {
    const due = and(lte(table.blacklistDigestDueAtMs, nowMs), sql.raw(OF_ENABLED_ACCOUNT));
    const rows = this.db.orm
      .select()
      .from(table)
      .where(due)
      .orderBy(asc(table.blacklistDigestDueAtMs))
      .limit(limit)
      .all();
    return rows.map(({ accountId, mode, recipients, blacklistSeverityMin: severityMin, blacklistDigest }) => {
      const period = blacklistDigest === "weekly" ? ("weekly" as const) : ("daily" as const);
      return { accountId, mode, recipients, severityMin, period };
    });
  }

  postponeDigest(_tx: Tx, owner: NotificationsOwner, dueAtMs: number | null): void {
    this.db.orm.update(table).set({ blacklistDigestDueAtMs: dueAtMs }).where(belongsTo(owner)).run();
  }

  save(_tx: Tx, { accountId, mode, ...values }: NotificationsRow): void {
    const target = [table.accountId, table.mode];
    this.db.orm
      .insert(table)
      .values({ accountId, mode, ...values })
      .onConflictDoUpdate({ target, set: values })
      .run();
  }
}
