import { index, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** What operators did, append-only (enforced by triggers). It outlives the accounts that it names. */
export const auditLog = sqliteTable(
  "audit_log",
  {
    id: integer().primaryKey({ autoIncrement: true }),
    atMs: integer("at_ms").notNull(),
    /** The user of the operating system; with sudo, the user who called it. */
    user: text().notNull(),
    host: text().notNull(),
    pid: integer().notNull(),
    /** Such as `accounts.rename`. */
    action: text().notNull(),
    /** Null for an action without an account. */
    accountId: text("account_id"),
    /** What was changed: an account by its name at that time, a key by its id, a domain. */
    subject: text(),
    /** JSON objects of what changed; null when there was or is nothing. */
    before: text(),
    after: text(),
  },
  (table) => [index("audit_log_by_account").on(table.accountId, table.id)],
);
