import { sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** What signs an account's webhooks, live and test each for itself. After a rotation the old one signs as well until its time. */
export const webhookSecrets = sqliteTable(
  "webhook_secrets",
  {
    id: text().primaryKey(),
    accountId: text("account_id").notNull(),
    mode: text({ enum: ["live", "test"] })
      .notNull()
      .default("live"),
    secret: text().notNull(),
    createdAtMs: integer("created_at_ms").notNull(),
    validUntilMs: integer("valid_until_ms"),
  },
  (table) => [index("webhook_secrets_by_account").on(table.accountId, table.mode)],
);

/** URLs whose receiver answered 410: nothing is sent there until they are set again. */
export const webhookGone = sqliteTable(
  "webhook_gone",
  {
    accountId: text("account_id").notNull(),
    mode: text({ enum: ["live", "test"] }).notNull(),
    url: text().notNull(),
    atMs: integer("at_ms").notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.mode, table.url] })],
);

/** An event on its way to a URL. The pending ones of an account, mode and URL are a queue: only its first one has a time. */
export const webhookDeliveries = sqliteTable(
  "webhook_deliveries",
  {
    id: text().primaryKey(),
    accountId: text("account_id").notNull(),
    mode: text({ enum: ["live", "test"] }).notNull(),
    url: text().notNull(),
    type: text().notNull(),
    /** The request body, the same at every attempt. */
    body: text().notNull(),
    status: text({ enum: ["pending", "delivered", "failed"] }).notNull(),
    attempts: integer().notNull().default(0),
    dueAtMs: integer("due_at_ms"),
    /** How the last attempt ended; all null before it. */
    lastAttemptAtMs: integer("last_attempt_at_ms"),
    lastHttpStatus: integer("last_http_status"),
    lastProblem: text("last_problem"),
    createdAtMs: integer("created_at_ms").notNull(),
    finishedAtMs: integer("finished_at_ms"),
  },
  (table) => [
    index("webhook_deliveries_by_account").on(table.accountId, table.mode, table.id),
    index("webhook_deliveries_line")
      .on(table.accountId, table.mode, table.url, table.id)
      .where(sql`status = 'pending'`),
    index("webhook_deliveries_due")
      .on(table.dueAtMs)
      .where(sql`due_at_ms is not null`),
    index("webhook_deliveries_finished")
      .on(table.finishedAtMs)
      .where(sql`finished_at_ms is not null`),
  ],
);
