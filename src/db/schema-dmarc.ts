import { sql } from "drizzle-orm";
import { blob, index, integer, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";

interface SourceRuleColumn {
  readonly reverse_name?: string;
  readonly network?: string;
  readonly asn?: number;
  readonly country?: string;
  readonly authenticated?: boolean;
  readonly classification: "authorized" | "misconfigured" | "forwarder" | "unknown" | "threat";
}

/** A domain whose DMARC reports are received. One that was deleted stays as a row until its data is gone. */
export const dmarcDomains = sqliteTable(
  "dmarc_domains",
  {
    /** The short name of the domain in the large tables. */
    number: integer().primaryKey({ autoIncrement: true }),
    id: text().notNull().unique(),
    accountId: text("account_id").notNull(),
    mode: text({ enum: ["live", "test"] }).notNull(),
    /** Lower-case A-labels. */
    domain: text().notNull(),
    /** The local part of the reporting address. */
    token: text().notNull().unique(),
    status: text({ enum: ["pending", "active", "action_required"] }).notNull(),
    label: text(),
    monitoringEnabled: integer("monitoring_enabled", { mode: "boolean" }).notNull().default(true),
    webhookUrl: text("webhook_url"),
    /** Addresses that alert mail and digests go to. */
    recipients: text({ mode: "json" }).$type<readonly string[]>().notNull(),
    /** Rules that the user turned on or off; those not named are as the service has them. */
    alerts: text({ mode: "json" }).$type<Readonly<Record<string, boolean>>>().notNull(),
    /** What the user set of the thresholds of the rules; see `dmarc/domains/alert-thresholds.ts`. */
    alertThresholds: text("alert_thresholds", { mode: "json" })
      .$type<Readonly<Record<string, number>>>()
      .notNull()
      .default({}),
    /** The user's rules about sources; see `dmarc/domains/source-rules.ts`. */
    sourceRules: text("source_rules", { mode: "json" }).$type<readonly SourceRuleColumn[]>().notNull().default([]),
    digest: text({ enum: ["off", "daily", "weekly", "monthly"] }).notNull(),
    retentionDays: integer("retention_days").notNull(),
    rawRetentionDays: integer("raw_retention_days").notNull(),
    /** Whether the domain sends mail at all; null when the user has not said. */
    sendsMail: integer("sends_mail", { mode: "boolean" }),
    requireAuthenticReports: integer("require_authentic_reports", { mode: "boolean" }).notNull(),
    /** Whether what failure reports say is stored, and whether without what tells of people. */
    storeFailureReports: integer("store_failure_reports", { mode: "boolean" }).notNull().default(false),
    failureReportsRedact: integer("failure_reports_redact", { mode: "boolean" }).notNull().default(true),
    /** What the last definite answers of the DNS said, as JSON; null before there was one. */
    state: text(),
    /** The last check as users see it, as JSON; null before there was one. */
    lastCheck: text("last_check"),
    /** When the first of the bad definite answers came that have not yet moved the status. */
    badSinceMs: integer("bad_since_ms"),
    nextCheckAtMs: integer("next_check_at_ms").notNull(),
    /** The day (since 1970, UTC) on which report mail last took disk space, and how many bytes on that day. */
    usageDay: integer("usage_day").notNull().default(0),
    usageBytes: integer("usage_bytes").notNull().default(0),
    /** When the last report arrived. */
    lastReportAtMs: integer("last_report_at_ms"),
    /** When the next digest is due; null when none is wanted. */
    digestDueAtMs: integer("digest_due_at_ms"),
    /** Whether reports came since the alert rules last looked. */
    isUnreviewed: integer("is_unreviewed", { mode: "boolean" }).notNull().default(false),
    createdAtMs: integer("created_at_ms").notNull(),
    updatedAtMs: integer("updated_at_ms").notNull(),
    deletedAtMs: integer("deleted_at_ms"),
  },
  (table) => [
    uniqueIndex("dmarc_domains_once")
      .on(table.accountId, table.mode, table.domain)
      .where(sql`deleted_at_ms is null`),
    index("dmarc_domains_by_account").on(table.accountId, table.mode, table.id),
    index("dmarc_domains_due")
      .on(table.nextCheckAtMs)
      .where(sql`deleted_at_ms is null and monitoring_enabled = 1`),
    index("dmarc_domains_deleted")
      .on(table.deletedAtMs)
      .where(sql`deleted_at_ms is not null`),
  ],
);

/** What the DNS said about a domain, whenever that changed. */
export const dmarcHistory = sqliteTable(
  "dmarc_history",
  {
    id: text().primaryKey(),
    domain: integer().notNull(),
    trigger: text({ enum: ["enrolled", "scheduled", "manual"] }).notNull(),
    atMs: integer("at_ms").notNull(),
    /** Statuses, record, policy, authorisation and what changed, as JSON. */
    body: text().notNull(),
  },
  (table) => [index("dmarc_history_by_domain").on(table.domain, table.id)],
);

/** A mail or file that came in. It is there before anybody is told that it was taken. */
export const dmarcIngestions = sqliteTable(
  "dmarc_ingestions",
  {
    id: text().primaryKey(),
    accountId: text("account_id").notNull(),
    mode: text({ enum: ["live", "test"] }).notNull(),
    /** The domain whose reporting address it came to; null for uploads and imports. */
    domain: integer(),
    via: text({ enum: ["smtp", "http", "import", "imap"] }).notNull(),
    receivedAtMs: integer("received_at_ms").notNull(),
    /** When the mailbox got a mail that was fetched from one: signatures are judged as of then. */
    deliveredAtMs: integer("delivered_at_ms"),
    /** The name of the file; null for mails. */
    name: text(),
    bytes: integer().notNull(),
    /** Who handed a mail in, and what it called itself and its sender; null for files. */
    client: text(),
    helo: text(),
    mailFrom: text("mail_from"),
    status: text({ enum: ["pending", "done"] }).notNull(),
    /** How often reading was begun: what the service does not survive is not begun for ever. */
    attempts: integer().notNull().default(0),
    /** The most telling of the outcomes found in it; null while pending. */
    outcome: text({ enum: ["stored", "duplicate", "empty", "quarantined", "rejected"] }),
    reason: text(),
    /** Every finding, as JSON; null while pending. */
    findings: text(),
    /** Whether the bytes are still kept. */
    hasRaw: integer("has_raw", { mode: "boolean" }).notNull().default(true),
    /** When the owner accepted the mail although it is not authenticated; null for one that nobody vouched for. */
    acceptedAtMs: integer("accepted_at_ms"),
    finishedAtMs: integer("finished_at_ms"),
  },
  (table) => [
    index("dmarc_ingestions_by_account").on(table.accountId, table.mode, table.id),
    index("dmarc_ingestions_by_domain").on(table.domain, table.id),
    index("dmarc_ingestions_pending")
      .on(table.id)
      .where(sql`status = 'pending'`),
    index("dmarc_ingestions_raw")
      .on(table.receivedAtMs)
      .where(sql`has_raw = 1`),
    index("dmarc_ingestions_by_age").on(table.receivedAtMs),
  ],
);

/** The bytes of what came in, as they came. */
export const dmarcRaw = sqliteTable("dmarc_raw", {
  ingestion: text().primaryKey(),
  bytes: blob({ mode: "buffer" }).notNull(),
});

/** Alerts that were raised. The last one of a rule about a subject keeps the next one quiet for a day. */
export const dmarcAlerts = sqliteTable(
  "dmarc_alerts",
  {
    id: text().primaryKey(),
    domain: integer().notNull(),
    rule: text().notNull(),
    subject: text().notNull(),
    atMs: integer("at_ms").notNull(),
    /** What happened, as JSON. */
    body: text().notNull(),
  },
  (table) => [
    index("dmarc_alerts_by_subject").on(table.domain, table.rule, table.subject, table.atMs),
    index("dmarc_alerts_by_domain").on(table.domain, table.id),
  ],
);

/** Alerts that wait for the next mail to somebody. */
export const dmarcAlertMails = sqliteTable(
  "dmarc_alert_mails",
  {
    id: text().primaryKey(),
    recipient: text().notNull(),
    /** `id` of the alert. */
    alert: text().notNull(),
    createdAtMs: integer("created_at_ms").notNull(),
  },
  (table) => [index("dmarc_alert_mails_by_recipient").on(table.recipient, table.id)],
);

/** The last check of what a domain publishes for mail. */
export const dmarcHealth = sqliteTable(
  "dmarc_health",
  {
    /** `number` of the domain. */
    domain: integer().primaryKey(),
    /** When the next daily check is due. */
    dueAtMs: integer("due_at_ms").notNull(),
    /** What was found, as JSON; null before the first check. */
    body: text(),
  },
  (table) => [index("dmarc_health_due").on(table.dueAtMs)],
);
