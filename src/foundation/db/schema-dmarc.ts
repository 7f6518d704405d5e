import { sql } from "drizzle-orm";
import { index, integer, sqliteTable, text, uniqueIndex, primaryKey } from "drizzle-orm/sqlite-core";
import { counter, requiredFlag, modeColumn, requiredInteger, requiredText } from "./schema-columns.ts";

interface SourceRuleColumn {
  readonly reverse_name?: string;
  readonly network?: string;
  readonly asn?: number;
  readonly country?: string;
  readonly authenticated?: boolean;
  readonly classification: "authorized" | "misconfigured" | "forwarder" | "unknown" | "threat";
}

/** Enrolled domains. A deleted one is kept until its data is purged. */
export const dmarcDomains = sqliteTable(
  "dmarc_domains",
  {
    /** Identifies the domain in the large tables. */
    number: integer().primaryKey({ autoIncrement: true }),
    id: requiredText().unique(),
    accountId: requiredText("account_id"),
    mode: modeColumn(),
    /** Lower-case A-labels. */
    domain: requiredText(),
    /** The local part of the reporting address. */
    token: requiredText().unique(),
    status: text({ enum: ["pending", "active", "action_required"] }).notNull(),
    label: text(),
    monitoringEnabled: requiredFlag("monitoring_enabled").default(true),
    webhookUrl: text("webhook_url"),
    /** Recipients of alert mail and digests. */
    recipients: text({ mode: "json" }).$type<readonly string[]>().notNull(),
    /** Rules that the user enabled or disabled; the others have their defaults. */
    alerts: text({ mode: "json" }).$type<Readonly<Record<string, boolean>>>().notNull(),
    /** Thresholds that the user set; see `dmarc/records/domains/alert-store.ts`. */
    alertThresholds: text("alert_thresholds", { mode: "json" })
      .$type<Readonly<Record<string, number>>>()
      .notNull()
      .default({}),
    /** The user's rules about sources; see `dmarc/records/domains/source-rules.ts`. */
    sourceRules: text("source_rules", { mode: "json" }).$type<readonly SourceRuleColumn[]>().notNull().default([]),
    /** Keys of sources whose volume raises no alert. */
    bulkSenders: text("bulk_senders", { mode: "json" }).$type<readonly string[]>().notNull().default([]),
    /** The user's groups, in lower case. */
    tags: text({ mode: "json" }).$type<readonly string[]>().notNull().default([]),
    digest: text({ enum: ["off", "daily", "weekly", "monthly"] }).notNull(),
    retentionDays: requiredInteger("retention_days"),
    rawRetentionDays: requiredInteger("raw_retention_days"),
    /** Whether the domain sends mail; null if the user has not stated it. */
    sendsMail: integer("sends_mail", { mode: "boolean" }),
    requireAuthenticReports: requiredFlag("require_authentic_reports"),
    /** Whether failure reports are stored, and whether without personal data. */
    storeFailureReports: requiredFlag("store_failure_reports").default(false),
    failureReportsRedact: requiredFlag("failure_reports_redact").default(true),
    /** The last definite DNS responses, as JSON; null before the first. */
    state: text(),
    /** The last check as the API shows it, as JSON; null before the first. */
    lastCheck: text("last_check"),
    /** Time of the first definite negative response that has not changed the status yet. */
    badSinceMs: integer("bad_since_ms"),
    nextCheckAtMs: requiredInteger("next_check_at_ms"),
    /** The last day (since 1970, UTC) with report mail, and its bytes on that day. */
    usageDay: counter("usage_day"),
    usageBytes: counter("usage_bytes"),
    /** When the last report arrived. */
    lastReportAtMs: integer("last_report_at_ms"),
    /** When the next digest is due; null if digests are off. */
    digestDueAtMs: integer("digest_due_at_ms"),
    /** Whether reports arrived since the last evaluation of the alert rules; 2 while these are evaluated. */
    isUnreviewed: requiredFlag("is_unreviewed").default(false),
    createdAtMs: requiredInteger("created_at_ms"),
    updatedAtMs: requiredInteger("updated_at_ms"),
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

/** The DNS history of a domain. */
export const dmarcHistory = sqliteTable(
  "dmarc_history",
  {
    id: text().primaryKey(),
    domain: requiredInteger(),
    trigger: text({ enum: ["enrolled", "scheduled", "manual"] }).notNull(),
    atMs: requiredInteger("at_ms"),
    /** Statuses, record, policy, authorization and changes, as JSON. */
    body: requiredText(),
  },
  (table) => [index("dmarc_history_by_domain").on(table.domain, table.id)],
);

/** Received mails and files; stored before they are acknowledged. */
export const dmarcIngestions = sqliteTable(
  "dmarc_ingestions",
  {
    id: text().primaryKey(),
    accountId: requiredText("account_id"),
    mode: modeColumn(),
    /** The domain of the reporting address; null for uploads and imports. */
    domain: integer(),
    via: text({ enum: ["smtp", "http", "import", "imap"] }).notNull(),
    receivedAtMs: requiredInteger("received_at_ms"),
    /** When the mailbox received a fetched mail; signatures are verified as of then. */
    deliveredAtMs: integer("delivered_at_ms"),
    /** The name of the file; null for mails. */
    name: text(),
    bytes: requiredInteger(),
    /** Client address, EHLO name and envelope sender of a mail; null for files. */
    client: text(),
    helo: text(),
    mailFrom: text("mail_from"),
    status: text({ enum: ["pending", "done"] }).notNull(),
    /** Attempts at processing: a mail that crashes the service is not retried forever. */
    attempts: counter(),
    /** The most significant outcome; null while pending. */
    outcome: text({ enum: ["stored", "duplicate", "empty", "quarantined", "rejected"] }),
    reason: text(),
    /** All outcomes, as JSON; null while pending. */
    findings: text(),
    /** Whether the bytes are still kept. */
    hasRaw: requiredFlag("has_raw").default(true),
    /** When the owner accepted an unauthenticated mail; null otherwise. */
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

/** Alerts. After one, the same rule about the same subject is suppressed for a day. */
export const dmarcAlerts = sqliteTable(
  "dmarc_alerts",
  {
    id: text().primaryKey(),
    domain: requiredInteger(),
    rule: requiredText(),
    subject: requiredText(),
    atMs: requiredInteger("at_ms"),
    /** The event, as JSON. */
    body: requiredText(),
    /** When a user acknowledged it; null until then. */
    acknowledgedAtMs: integer("acknowledged_at_ms"),
  },
  (table) => [
    index("dmarc_alerts_by_subject").on(table.domain, table.rule, table.subject, table.atMs),
    index("dmarc_alerts_by_domain").on(table.domain, table.id),
  ],
);

/** Alerts that wait for the next mail to a recipient. */
export const dmarcAlertMails = sqliteTable(
  "dmarc_alert_mails",
  {
    id: text().primaryKey(),
    recipient: requiredText(),
    /** `id` of the alert. */
    alert: requiredText(),
    createdAtMs: requiredInteger("created_at_ms"),
  },
  (table) => [index("dmarc_alert_mails_by_recipient").on(table.recipient, table.id)],
);

/** The last domain health check. */
export const dmarcHealth = sqliteTable(
  "dmarc_health",
  {
    /** `number` of the domain. */
    domain: integer().primaryKey(),
    /** When the next daily check is due. */
    dueAtMs: requiredInteger("due_at_ms"),
    /** The findings, as JSON; null before the first check. */
    body: text(),
  },
  (table) => [index("dmarc_health_due").on(table.dueAtMs)],
);

/** The changes of DNS records that health checks found, and the first records that they saw. */
export const dmarcRecordHistory = sqliteTable(
  "dmarc_record_history",
  {
    id: text().primaryKey(),
    /** `number` of the domain. */
    domain: requiredInteger(),
    kind: text({ enum: ["dmarc", "spf", "dkim", "mx", "mta_sts"] }).notNull(),
    host: requiredText(),
    atMs: requiredInteger("at_ms"),
    /** The records before, as a JSON array; null for the first that were seen. */
    before: text(),
    /** The records since then, as a JSON array. */
    value: requiredText(),
  },
  (table) => [
    index("dmarc_record_history_by_domain").on(table.domain, table.id),
    index("dmarc_record_history_by_host").on(table.domain, table.kind, table.host, table.id),
  ],
);

/** What lists show of a domain, as it was last computed: see `OverviewJob`. */
export const dmarcOverviews = sqliteTable("dmarc_overviews", {
  /** `number` of the domain. */
  domain: integer().primaryKey(),
  computedAtMs: requiredInteger("computed_at_ms"),
  /** Messages of the last seven and the last 30 days, including the day on which this was computed. */
  messages7: requiredInteger("messages_7"),
  aligned7: requiredInteger("aligned_7"),
  /** The same of the seven days before; null when no report covers them, and in rows of earlier versions. */
  messagesBefore7: integer("messages_before_7"),
  alignedBefore7: integer("aligned_before_7"),
  messages30: requiredInteger("messages_30"),
  aligned30: requiredInteger("aligned_30"),
  /** Failing messages of 30 days that somebody must act on: neither forwarded nor forged. */
  actionable30: requiredInteger("actionable_30"),
  /** Messages of each day, and the next step, as JSON. */
  body: requiredText(),
});

/** Progress of reading reports from a mailbox. At most one row: the mailbox opened last. */
export const dmarcMailboxes = sqliteTable("dmarc_mailboxes", {
  /** User, host and folder. */
  mailbox: text().primaryKey(),
  /** UIDs with another UIDVALIDITY denote other messages. */
  uidValidity: requiredText("uid_validity"),
  /** All messages up to this UID were stored or skipped. */
  lastUid: requiredInteger("last_uid"),
  /** The last day (since 1970, UTC) on which messages were fetched, and their bytes on that day. */
  usageDay: counter("usage_day"),
  usageBytes: counter("usage_bytes"),
});

/** Stored messages of the mailbox that are still to be flagged, moved or deleted there. */
export const dmarcMailboxMarks = sqliteTable("dmarc_mailbox_marks", {
  uid: integer().primaryKey(),
  ingestion: requiredText(),
});

/** Failure reports (RFC 9991), one message each, of domains that store them. */
export const dmarcFailureReports = sqliteTable(
  "dmarc_failure_reports",
  {
    id: text().primaryKey(),
    domain: requiredInteger(),
    ingestion: requiredText(),
    receivedAtMs: requiredInteger("received_at_ms"),
    isRedacted: requiredFlag("is_redacted"),
    /** The report as JSON. */
    body: requiredText(),
    /** Hashed deduplication key. */
    sameness: requiredText(),
  },
  (table) => [
    uniqueIndex("dmarc_failure_reports_once").on(table.domain, table.sameness),
    index("dmarc_failure_reports_by_domain").on(table.domain, table.id),
    index("dmarc_failure_reports_by_age").on(table.domain, table.receivedAtMs),
  ],
);

/** Reporters of trusted reports about a domain. */
export const dmarcReporters = sqliteTable(
  "dmarc_reporters",
  {
    number: integer().primaryKey({ autoIncrement: true }),
    domain: requiredInteger(),
    /** The organizational domain of its authenticated mail; the name in reports that the owner handed in. */
    author: requiredText(),
    /** Whether its reports have voucher 1. */
    isKnown: requiredFlag("is_known"),
    /** The first and last day in its reports, since 1970 (UTC). */
    firstDay: requiredInteger("first_day"),
    lastDay: requiredInteger("last_day"),
    /** When its counts were found far above those of all others; null while they were not. */
    excessiveSinceMs: integer("excessive_since_ms"),
  },
  (table) => [uniqueIndex("dmarc_reporters_once").on(table.domain, table.author, table.isKnown)],
);

/** Unknown reporters that the owner of an account accepted: their reports count as those of known ones. */
export const dmarcAcceptedReporters = sqliteTable(
  "dmarc_accepted_reporters",
  {
    accountId: requiredText("account_id"),
    mode: modeColumn(),
    /** The organizational domain of its authenticated mail. */
    author: requiredText(),
    atMs: requiredInteger("at_ms"),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.mode, table.author] })],
);

/** Senders of authenticated report mail about a domain, and their disk usage today. */
export const dmarcReportAuthors = sqliteTable(
  "dmarc_report_authors",
  {
    domain: requiredInteger(),
    /** The organizational domain of the authenticated mail. */
    author: requiredText(),
    /** The days of the first and the last such mail, since 1970 (UTC). */
    firstDay: requiredInteger("first_day"),
    lastDay: requiredInteger("last_day"),
    /** Disk usage on `usageDay` after the domain had used up its quota. */
    usageDay: counter("usage_day"),
    usageBytes: counter("usage_bytes"),
  },
  (table) => [primaryKey({ columns: [table.domain, table.author] })],
);

/** Links that show the report of a domain to anybody who has them, until they end. */
export const dmarcShares = sqliteTable(
  "dmarc_shares",
  {
    /** SHA-256 of the token in the URL. */
    hash: text().primaryKey(),
    /** Names the link on pages and in the API, without a secret. */
    id: requiredText().unique(),
    /** `number` of the domain. */
    domain: requiredInteger(),
    note: text(),
    createdAtMs: requiredInteger("created_at_ms"),
    expiresAtMs: requiredInteger("expires_at_ms"),
    revokedAtMs: integer("revoked_at_ms"),
    lastUsedAtMs: integer("last_used_at_ms"),
  },
  (table) => [index("dmarc_shares_by_domain").on(table.domain, table.id)],
);

/** Digests about all domains with a tag. */
export const dmarcTagDigests = sqliteTable(
  "dmarc_tag_digests",
  {
    accountId: requiredText("account_id"),
    mode: modeColumn(),
    tag: requiredText(),
    digest: text({ enum: ["off", "daily", "weekly", "monthly"] }).notNull(),
    recipients: text({ mode: "json" }).$type<readonly string[]>().notNull(),
    /** When the next digest is due; null if digests are off. */
    dueAtMs: integer("due_at_ms"),
  },
  (table) => [
    primaryKey({ columns: [table.accountId, table.mode, table.tag] }),
    index("dmarc_tag_digests_due").on(table.dueAtMs),
  ],
);

/** The MTA-STS policies that this service serves for domains (RFC 8461). */
export const dmarcMtaSts = sqliteTable(
  "dmarc_mta_sts",
  {
    /** `number` of the domain. */
    domain: integer().primaryKey(),
    mode: text({ enum: ["testing", "enforce", "none"] }).notNull(),
    modeSinceMs: requiredInteger("mode_since_ms"),
    /** The MX hosts that the policy names. */
    hosts: text({ mode: "json" }).$type<readonly string[]>().notNull(),
    /** When the text of the policy last changed. */
    sinceMs: requiredInteger("since_ms"),
    /** The MX hosts of the last definite DNS response, and since when they are the same. */
    seen: text({ mode: "json" }).$type<readonly string[]>().notNull(),
    seenSinceMs: requiredInteger("seen_since_ms"),
    /** The id in the TXT record at _mta-sts; empty without exactly one record; null while unknown. */
    publishedId: text("published_id"),
    /** Why the policy cannot follow the MX records; null while it does. */
    problem: text({ enum: ["dns_failure", "no_mx", "unusable_mx"] }),
    /** The last check with a DNS response about the MX records. */
    checkedAtMs: requiredInteger("checked_at_ms"),
    dueAtMs: requiredInteger("due_at_ms"),
    /** Until when senders may still hold an enforced policy; null while none was served, or one is. */
    enforcedUntilMs: integer("enforced_until_ms"),
  },
  (table) => [index("dmarc_mta_sts_due").on(table.dueAtMs)],
);
