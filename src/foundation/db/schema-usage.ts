import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";

/**
 * Verifications by UTC day: single ones on the day that they ended, addresses of lists on the day of their latest result.
 * Small, and kept when verifications and lists expire.
 */
export const usageDaily = sqliteTable(
  "usage_daily",
  {
    accountId: text("account_id").notNull(),
    mode: text({ enum: ["live", "test"] }).notNull(),
    /** In days since 1970 (UTC). */
    day: integer().notNull(),
    /** An API key, or the user of the dashboard (`user:<id>`). */
    keyId: text("key_id").notNull(),
    source: text({ enum: ["single", "list"] }).notNull(),
    subStatus: text("sub_status").notNull(),
    verdict: text().notNull(),
    verifications: integer().notNull(),
    /** Credits charged, also for results of addresses that were verified again later. */
    credits: integer().notNull(),
  },
  (table) => [
    primaryKey({
      columns: [table.accountId, table.mode, table.day, table.keyId, table.source, table.subStatus],
    }),
  ],
);

/** Requests refused by the rate limit (429), by UTC day and key. */
export const rateLimitedDaily = sqliteTable(
  "rate_limited_daily",
  {
    accountId: text("account_id").notNull(),
    mode: text({ enum: ["live", "test"] }).notNull(),
    day: integer().notNull(),
    keyId: text("key_id").notNull(),
    requests: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.mode, table.day, table.keyId] })],
);
