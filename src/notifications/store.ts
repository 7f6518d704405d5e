import { and, asc, eq, lte } from "drizzle-orm";
import type { KeyMode } from "../base/secrets.ts";
import type { Db, Tx } from "../db/open.ts";
import type { Severity } from "../dnsbl/blocklist.ts";
import { accountNotifications } from "../db/schema-webhooks.ts";

/** Whose settings: those of live and of test keys are apart. */
export interface NotificationsOwner {
  readonly accountId: string;
  readonly mode: KeyMode;
}

/** Where all events of an account and mode go to, beside the URL and recipients of a target, domain or job. */
export interface NotificationDefaults {
  readonly webhookUrl: string | null;
  readonly recipients: readonly string[];
  /** From which severity on listings on blocklists are sent; null: webhooks all, mail from medium on. */
  readonly blacklistSeverityMin: Severity | null;
  readonly blacklistDigest: "off" | "daily" | "weekly";
  /** When the next digest of listings is due; null while there is none. */
  readonly blacklistDigestDueAtMs: number | null;
}

export interface NotificationsRow extends NotificationsOwner, NotificationDefaults {
  readonly updatedAtMs: number;
}

const NOTHING: NotificationDefaults = {
  webhookUrl: null,
  recipients: [],
  blacklistSeverityMin: null,
  blacklistDigest: "off",
  blacklistDigestDueAtMs: null,
};

export const createNotificationsStore = (db: Db) => {
  const table = accountNotifications;
  const find = ({ accountId, mode }: NotificationsOwner): NotificationsRow | undefined =>
    db.orm
      .select()
      .from(table)
      .where(and(eq(table.accountId, accountId), eq(table.mode, mode)))
      .get();
  return {
    /** Undefined while nothing was ever set. */
    find,
    /** The defaults of an owner; nothing at all while none were set. */
    findDefaults: (owner: NotificationsOwner): NotificationDefaults => find(owner) ?? NOTHING,
    /** Accounts and modes whose digest of listings is due, those that wait longest first. */
    dueDigests: (nowMs: number, limit: number) =>
      db.orm
        .select()
        .from(table)
        .where(lte(table.blacklistDigestDueAtMs, nowMs))
        .orderBy(asc(table.blacklistDigestDueAtMs))
        .limit(limit)
        .all()
        .map(({ accountId, mode, recipients, blacklistSeverityMin: severityMin, blacklistDigest }) => {
          const period = blacklistDigest === "weekly" ? ("weekly" as const) : ("daily" as const);
          return { accountId, mode, recipients, severityMin, period };
        }),
    postponeDigest: (_tx: Tx, { accountId, mode }: NotificationsOwner, dueAtMs: number | null): void =>
      void db.orm
        .update(table)
        .set({ blacklistDigestDueAtMs: dueAtMs })
        .where(and(eq(table.accountId, accountId), eq(table.mode, mode)))
        .run(),
    save: (_tx: Tx, { accountId, mode, ...values }: NotificationsRow): void =>
      void db.orm
        .insert(table)
        .values({ accountId, mode, ...values })
        .onConflictDoUpdate({ target: [table.accountId, table.mode], set: values })
        .run(),
  };
};

export type NotificationsStore = ReturnType<typeof createNotificationsStore>;
