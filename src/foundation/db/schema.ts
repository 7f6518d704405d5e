import { sql } from "drizzle-orm";
import { blob, customType, index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { FormRules } from "../base/form-rules.ts";
import { counter, requiredFlag, modeColumn, requiredInteger, requiredText } from "./schema-columns.ts";

/** Compressed bytes in a column that held text before: SQLite keeps either as it is. */
const bytesOrText = customType<{ data: Uint8Array | string }>({ dataType: () => "text" });

/** All tables. Times are milliseconds since 1970, ids are UUIDv7, JSON columns are parsed with a zod schema of the slice. */

export const accounts = sqliteTable("accounts", {
  id: text().primaryKey(),
  name: requiredText().unique(),
  plan: text({ enum: ["free", "starter", "growth", "scale"] }).notNull(),
  /** The sums of the ledger's two columns, updated in the transaction that appends to it. */
  creditsAvailable: counter("credits_available"),
  creditsHeld: counter("credits_held"),
  /** Requests per second and burst of its own; null: those of the plan. */
  ratePerSecond: integer("rate_per_second"),
  rateBurst: integer("rate_burst"),
  /** From then on the keys of the account are refused and its monitoring is paused; null while it is enabled. */
  disabledAtMs: integer("disabled_at_ms"),
  createdAtMs: requiredInteger("created_at_ms"),
  /** Null unless the account is deleted: its row stays for the ledger, under another name. */
  deletedAtMs: integer("deleted_at_ms"),
});

export const apiKeys = sqliteTable(
  "api_keys",
  {
    id: text().primaryKey(),
    accountId: requiredText("account_id").references(() => accounts.id),
    name: requiredText(),
    mode: modeColumn(),
    scopes: text({ mode: "json" }).$type<readonly string[]>().notNull(),
    expiresAtMs: integer("expires_at_ms"),
    revokedAtMs: integer("revoked_at_ms"),
    lastUsedAtMs: integer("last_used_at_ms"),
    createdAtMs: requiredInteger("created_at_ms"),
    /** What a publishable key may do in sign-up forms; null for a secret key. */
    forms: text({ mode: "json" }).$type<FormRules>(),
  },
  (table) => [
    index("api_keys_by_account").on(table.accountId),
    index("api_keys_of_forms")
      .on(table.id)
      .where(sql`forms is not null`),
  ],
);

/** The secrets of API keys, by SHA-256. After a rotation the old one is valid until it expires. */
export const keySecrets = sqliteTable(
  "key_secrets",
  {
    hash: text().primaryKey(),
    keyId: requiredText("key_id").references(() => apiKeys.id),
    /** The last characters of the secret, shown to identify a key. */
    ending: requiredText(),
    validUntilMs: integer("valid_until_ms"),
    createdAtMs: requiredInteger("created_at_ms"),
  },
  (table) => [index("key_secrets_by_key").on(table.keyId)],
);

/** Append-only but for the note, which may have to be erased (enforced by triggers). A grant adds to available; a hold moves to held; settle and release end a hold. */
export const ledger = sqliteTable(
  "ledger",
  {
    id: integer().primaryKey({ autoIncrement: true }),
    accountId: requiredText("account_id").references(() => accounts.id),
    kind: text({ enum: ["grant", "hold", "settle", "release"] }).notNull(),
    available: requiredInteger(),
    held: requiredInteger(),
    /** The id of a verification or bulk job; null for a grant. */
    reference: text(),
    note: text(),
    atMs: requiredInteger("at_ms"),
  },
  (table) => [
    index("ledger_by_account").on(table.accountId, table.id),
    uniqueIndex("ledger_hold_once")
      .on(table.reference)
      .where(sql`kind = 'hold'`),
    uniqueIndex("ledger_end_once")
      .on(table.reference)
      .where(sql`kind in ('settle', 'release')`),
    index("ledger_grants")
      .on(table.accountId, table.id)
      .where(sql`kind = 'grant'`),
  ],
);

export const verifications = sqliteTable(
  "verifications",
  {
    id: text().primaryKey(),
    accountId: requiredText("account_id"),
    keyId: requiredText("key_id"),
    mode: modeColumn(),
    email: requiredText(),
    normalizedEmail: requiredText("normalized_email"),
    source: text(),
    status: text({ enum: ["pending", "completed"] }).notNull(),
    verdict: text(),
    subStatus: text("sub_status"),
    /** The result object as JSON text; null while pending. */
    result: text(),
    createdAtMs: requiredInteger("created_at_ms"),
    completedAtMs: integer("completed_at_ms"),
    /** Pending only: when the next attempt is due. */
    dueAtMs: integer("due_at_ms"),
    attempts: counter(),
  },
  (table) => [
    index("verifications_by_key").on(table.keyId, table.id),
    index("verifications_by_account").on(table.accountId, table.mode, table.id),
    index("verifications_by_email").on(table.accountId, table.mode, table.normalizedEmail, table.id),
    index("verifications_by_result").on(table.accountId, table.mode, table.subStatus, table.id),
    index("verifications_by_source")
      .on(table.accountId, table.mode, table.source, table.id)
      .where(sql`source is not null`),
    uniqueIndex("verifications_pending_once")
      .on(table.accountId, table.mode, table.normalizedEmail)
      .where(sql`status = 'pending'`),
    index("verifications_due")
      .on(table.dueAtMs)
      .where(sql`status = 'pending'`),
  ],
);

/** The evidence of verifications (`verify/store.ts`; JSON in rows of older versions), rewritten after every attempt. */
export const verificationEvidence = sqliteTable("verification_evidence", {
  verificationId: text("verification_id").primaryKey(),
  body: bytesOrText().notNull(),
});

/** The resources created with an Idempotency-Key, for 24 hours. */
export const idempotencyKeys = sqliteTable(
  "idempotency_keys",
  {
    keyId: requiredText("key_id"),
    idempotencyKey: requiredText("idempotency_key"),
    requestHash: requiredText("request_hash"),
    resourceId: requiredText("resource_id"),
    createdAtMs: requiredInteger("created_at_ms"),
  },
  (table) => [
    primaryKey({ columns: [table.keyId, table.idempotencyKey] }),
    index("idempotency_keys_by_age").on(table.createdAtMs),
    index("idempotency_keys_by_resource").on(table.resourceId),
  ],
);

/** The operator's suppression list: addresses (normalized) and domains (A-labels, including subdomains). */
export const suppressions = sqliteTable("suppressions", {
  entry: text().primaryKey(),
  note: text(),
  createdAtMs: requiredInteger("created_at_ms"),
});

/** Bulk jobs. Numbered, because a million rows and addresses refer to one. */
export const bulkJobs = sqliteTable(
  "bulk_jobs",
  {
    number: integer().primaryKey({ autoIncrement: true }),
    id: requiredText().unique(),
    accountId: requiredText("account_id"),
    keyId: requiredText("key_id"),
    mode: modeColumn(),
    name: text(),
    source: text(),
    /** `receiving` and `deleting` jobs are hidden from the API. */
    status: text({
      enum: ["receiving", "queued", "running", "completed", "cancelled", "failed", "deleting"],
    }).notNull(),
    /** The format of the list for its export, as JSON. */
    format: requiredText(),
    /** How the file was read, as JSON of the API; null for a JSON list. */
    reading: text(),
    webhookUrl: text("webhook_url"),
    /** Who is mailed when the job has ended; null: nobody. */
    notifyEmail: text("notify_email"),
    rowsTotal: counter("rows_total"),
    rowsFinished: counter("rows_finished"),
    /** Rows without an address; finished from the start and free. */
    rowsEmpty: counter("rows_empty"),
    addressesTotal: counter("addresses_total"),
    addressesFinished: counter("addresses_finished"),
    creditsCharged: counter("credits_charged"),
    creditsReleased: counter("credits_released"),
    /** The number of retries of unsettled addresses; each has its own hold in the ledger. */
    round: counter(),
    /** Addresses to retry may still have their old results. */
    isResetting: requiredFlag("is_resetting").default(false),
    createdAtMs: requiredInteger("created_at_ms"),
    startedAtMs: integer("started_at_ms"),
    completedAtMs: integer("completed_at_ms"),
  },
  (table) => [
    index("bulk_jobs_by_account").on(table.accountId, table.mode, table.id),
    index("bulk_jobs_unfinished")
      .on(table.number)
      .where(sql`status in ('receiving', 'queued', 'running', 'deleting')`),
  ],
);

/** The distinct addresses of a list in order of first occurrence. Without a sub_status: not finished. */
export const bulkAddresses = sqliteTable(
  "bulk_addresses",
  {
    job: requiredInteger(),
    position: requiredInteger(),
    /** As first submitted. */
    email: requiredText(),
    normalizedEmail: requiredText("normalized_email"),
    /** The number of its rows. */
    rows: requiredInteger(),
    /** When the next attempt is due; 0 before the first. */
    dueAtMs: counter("due_at_ms"),
    subStatus: text("sub_status"),
    qualityScore: integer("quality_score"),
    confidence: integer(),
    /** The signals, one letter each (`bulk/results/results-csv.ts`). */
    signals: text(),
    verifiedAtMs: integer("verified_at_ms"),
    /** The `number` of the trouble that a mail host made last; null: none did. */
    trouble: integer(),
  },
  (table) => [primaryKey({ columns: [table.job, table.position] })],
);

/** Mail hosts that refused or delayed probes for addresses of a list, one row for each kind of trouble. */
export const bulkTroubles = sqliteTable(
  "bulk_troubles",
  {
    job: requiredInteger(),
    number: requiredInteger(),
    host: requiredText(),
    /** The reading of the reply, or of its absence, in evidence. */
    reading: requiredText(),
    /** Addresses whose last trouble it is. */
    addresses: counter(),
    /** The position of an address whose evidence shows it. */
    position: requiredInteger(),
  },
  (table) => [
    primaryKey({ columns: [table.job, table.number] }),
    uniqueIndex("bulk_troubles_once").on(table.job, table.host, table.reading),
  ],
);

/** Mails about lists that have ended, until they are accepted. */
export const bulkMails = sqliteTable(
  "bulk_mails",
  {
    id: text().primaryKey(),
    recipient: requiredText(),
    accountId: requiredText("account_id"),
    /** `number` of the job. */
    job: requiredInteger(),
    createdAtMs: requiredInteger("created_at_ms"),
  },
  (table) => [
    index("bulk_mails_by_recipient").on(table.recipient, table.id),
    index("bulk_mails_by_account").on(table.accountId),
    index("bulk_mails_by_job").on(table.job),
  ],
);

/** The evidence of addresses, finished or to be retried (`verify/store.ts`). */
export const bulkEvidence = sqliteTable(
  "bulk_evidence",
  {
    job: requiredInteger(),
    position: requiredInteger(),
    body: blob({ mode: "buffer" }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.job, table.position] })],
);

/** The rows of a list. */
export const bulkRows = sqliteTable(
  "bulk_rows",
  {
    job: requiredInteger(),
    rowIndex: requiredInteger("row_index"),
    /** The position of its address. */
    position: requiredInteger(),
    /** Null when it is spelled as on the first occurrence. */
    submittedEmail: text("submitted_email"),
    /** The cells as a JSON array; null when the row is the address alone. */
    cells: text(),
  },
  (table) => [primaryKey({ columns: [table.job, table.rowIndex] })],
);

/** Finished rows of a list by sub_status. */
export const bulkCounts = sqliteTable(
  "bulk_counts",
  {
    job: requiredInteger(),
    subStatus: requiredText("sub_status"),
    rows: requiredInteger(),
  },
  (table) => [primaryKey({ columns: [table.job, table.subStatus] })],
);

/** Events, written in the transaction that changes the state (`foundation/db/outbox.ts`); kept as the event feed. */
export const outbox = sqliteTable(
  "outbox",
  {
    id: text().primaryKey(),
    accountId: requiredText("account_id"),
    mode: modeColumn().default("live"),
    type: requiredText(),
    /** `target:<id>`, `domain:<id>`, `job:<id>` or `list:<id>`. Events of one subject are sent in order. */
    subject: requiredText().default(""),
    /** The `data` of the event, as JSON. */
    data: requiredText(),
    /** The webhook URL of its subject; null without one. The account's default URL receives it, too. */
    url: text(),
    createdAtMs: requiredInteger("created_at_ms"),
    /** When its deliveries were created; null before. */
    deliveredAtMs: integer("delivered_at_ms"),
  },
  (table) => [
    index("outbox_undelivered")
      .on(table.id)
      .where(sql`delivered_at_ms is null`),
    index("outbox_by_account").on(table.accountId, table.mode, table.id),
    index("outbox_by_subject").on(table.accountId, table.mode, table.subject, table.id),
  ],
);
