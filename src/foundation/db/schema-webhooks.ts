import { sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { counter, modeColumn, requiredInteger, requiredText } from "./schema-columns.ts";

/** Signing secrets of each account and mode. After a rotation the old one also signs until it expires. */
export const webhookSecrets = sqliteTable(
  "webhook_secrets",
  {
    id: text().primaryKey(),
    accountId: requiredText("account_id"),
    mode: modeColumn().default("live"),
    secret: requiredText(),
    createdAtMs: requiredInteger("created_at_ms"),
    validUntilMs: integer("valid_until_ms"),
  },
  (table) => [index("webhook_secrets_by_account").on(table.accountId, table.mode)],
);

/** URLs that responded 410: nothing is sent until they are set again. */
export const webhookGone = sqliteTable(
  "webhook_gone",
  {
    accountId: requiredText("account_id"),
    mode: modeColumn(),
    url: requiredText(),
    atMs: requiredInteger("at_ms"),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.mode, table.url] })],
);

/** Deliveries of events to URLs. The pending ones of an account, mode, URL and subject are a queue: only its first has a time. */
export const webhookDeliveries = sqliteTable(
  "webhook_deliveries",
  {
    id: text().primaryKey(),
    /** The event in the outbox: the header `webhook-id`, and the order within a queue. */
    eventId: requiredText("event_id").default(""),
    accountId: requiredText("account_id"),
    mode: modeColumn(),
    url: requiredText(),
    subject: requiredText().default(""),
    /** Whether the URL is that of the subject, the account's default, or both. */
    via: text({ enum: ["subject", "default", "both"] })
      .notNull()
      .default("subject"),
    type: requiredText(),
    /** The request body, the same in every attempt. */
    body: requiredText(),
    status: text({ enum: ["pending", "delivered", "summarized", "rejected", "failed", "cancelled"] }).notNull(),
    attempts: counter(),
    /** Attempts that the receiver refused permanently (4xx). */
    rejections: counter(),
    dueAtMs: integer("due_at_ms"),
    /** The result of the last attempt; all null before the first. */
    lastAttemptAtMs: integer("last_attempt_at_ms"),
    lastHttpStatus: integer("last_http_status"),
    lastProblem: text("last_problem"),
    /** The beginning of the response to a failed attempt. */
    lastAnswer: text("last_answer"),
    createdAtMs: requiredInteger("created_at_ms"),
    finishedAtMs: integer("finished_at_ms"),
  },
  (table) => [
    index("webhook_deliveries_by_event").on(table.eventId),
    index("webhook_deliveries_by_account").on(table.accountId, table.mode, table.id),
    index("webhook_deliveries_queue")
      .on(table.accountId, table.mode, table.url, table.subject, table.eventId)
      .where(sql`status = 'pending'`),
    index("webhook_deliveries_due")
      .on(table.accountId, table.mode, table.url, table.dueAtMs)
      .where(sql`due_at_ms is not null`),
    index("webhook_deliveries_finished")
      .on(table.finishedAtMs)
      .where(sql`finished_at_ms is not null`),
  ],
);

/** Attempts at deliveries, and how each ended. They are deleted with their delivery. */
export const webhookAttempts = sqliteTable(
  "webhook_attempts",
  {
    id: integer().primaryKey({ autoIncrement: true }),
    deliveryId: requiredText("delivery_id"),
    accountId: requiredText("account_id"),
    mode: modeColumn(),
    url: requiredText(),
    atMs: requiredInteger("at_ms"),
    /** The status of the response; null without one. */
    httpStatus: integer("http_status"),
    /** Why it failed; null when it was delivered. */
    problem: text(),
    /** The beginning of the response to a failed attempt. */
    answer: text(),
  },
  (table) => [
    index("webhook_attempts_by_delivery").on(table.deliveryId, table.id),
    index("webhook_attempts_by_url").on(table.accountId, table.mode, table.url, table.id),
  ],
);

/** URLs paused by their receiver (Retry-After with 429 or 503). */
export const webhookPauses = sqliteTable(
  "webhook_pauses",
  {
    accountId: requiredText("account_id"),
    mode: modeColumn(),
    url: requiredText(),
    untilMs: requiredInteger("until_ms"),
  },
  (table) => [
    primaryKey({ columns: [table.accountId, table.mode, table.url] }),
    index("webhook_pauses_by_end").on(table.untilMs),
  ],
);

/** Channels with deliveries that wait for the end of a maintenance window: their events are then sent as one message. */
export const webhookHolds = sqliteTable(
  "webhook_holds",
  {
    accountId: requiredText("account_id"),
    mode: modeColumn(),
    url: requiredText(),
    sinceMs: requiredInteger("since_ms"),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.mode, table.url] })],
);

/** Times in which no mail and no messages are sent: one until a time, or one that comes back every week. */
export const maintenanceWindows = sqliteTable(
  "maintenance_windows",
  {
    id: text().primaryKey(),
    /** Null: set by the operator, for all accounts and both modes. */
    accountId: text("account_id"),
    mode: modeColumn(),
    /** The end of a window that began when it was set; null for a weekly one. */
    untilMs: integer("until_ms"),
    /** Of a weekly one: the days on which it begins, as `mon,tue`; null otherwise. */
    days: text(),
    /** Minutes since midnight in `timeZone`; an end before the beginning is on the next day. */
    fromMinute: integer("from_minute"),
    toMinute: integer("to_minute"),
    timeZone: text("time_zone"),
    createdAtMs: requiredInteger("created_at_ms"),
  },
  (table) => [index("maintenance_windows_by_account").on(table.accountId, table.mode)],
);

/** A kind of mail to a recipient, from the first mail on: its link to stop such mail, and whether that was used. */
export const mailSubscriptions = sqliteTable(
  "mail_subscriptions",
  {
    /** 256 random bits in the links of the mails. It can do nothing but stop and resume them, so that it is stored as it is. */
    token: text().primaryKey(),
    accountId: requiredText("account_id"),
    recipient: requiredText(),
    kind: text({ enum: ["blocklist_alerts", "blocklist_digest", "dmarc_alerts", "dmarc_digest", "lists"] }).notNull(),
    /** Null while mail is sent. */
    stoppedAtMs: integer("stopped_at_ms"),
    createdAtMs: requiredInteger("created_at_ms"),
  },
  (table) => [uniqueIndex("mail_subscriptions_by_topic").on(table.accountId, table.recipient, table.kind)],
);

/** Default webhook and recipients of each account and mode, in addition to those of a target, domain or job. */
export const accountNotifications = sqliteTable(
  "account_notifications",
  {
    accountId: requiredText("account_id"),
    mode: modeColumn(),
    webhookUrl: text("webhook_url"),
    recipients: text({ mode: "json" }).$type<readonly string[]>().notNull(),
    /** Lowest severity of listings that are sent; null: all for webhooks, medium for mail. */
    blacklistSeverityMin: text("blacklist_severity_min", { enum: ["critical", "high", "medium", "low", "info"] }),
    blacklistDigest: text("blacklist_digest", { enum: ["off", "daily", "weekly"] })
      .notNull()
      .default("off"),
    /** When the next digest of listings is due; null: never. */
    blacklistDigestDueAtMs: integer("blacklist_digest_due_at_ms"),
    updatedAtMs: requiredInteger("updated_at_ms"),
  },
  (table) => [
    primaryKey({ columns: [table.accountId, table.mode] }),
    index("account_notifications_digest_due")
      .on(table.blacklistDigestDueAtMs)
      .where(sql`blacklist_digest_due_at_ms is not null`),
  ],
);
