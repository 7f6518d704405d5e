import { sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";

/** All tables. Times are milliseconds since 1970, ids UUIDv7, JSON columns hold what the slice's zod schema reads. */

export const accounts = sqliteTable("accounts", {
  id: text().primaryKey(),
  name: text().notNull().unique(),
  plan: text({ enum: ["free", "starter", "growth", "scale"] }).notNull(),
  /** The sums of the ledger's two columns, kept in the transaction that appends to it. */
  creditsAvailable: integer("credits_available").notNull().default(0),
  creditsHeld: integer("credits_held").notNull().default(0),
  createdAtMs: integer("created_at_ms").notNull(),
});

export const apiKeys = sqliteTable(
  "api_keys",
  {
    id: text().primaryKey(),
    accountId: text("account_id")
      .notNull()
      .references(() => accounts.id),
    name: text().notNull(),
    mode: text({ enum: ["live", "test"] }).notNull(),
    scopes: text({ mode: "json" }).$type<readonly string[]>().notNull(),
    expiresAtMs: integer("expires_at_ms"),
    revokedAtMs: integer("revoked_at_ms"),
    lastUsedAtMs: integer("last_used_at_ms"),
    createdAtMs: integer("created_at_ms").notNull(),
  },
  (table) => [index("api_keys_by_account").on(table.accountId)],
);

/** A key's secrets, by SHA-256. After a rotation the old one stays valid until its time. */
export const keySecrets = sqliteTable(
  "key_secrets",
  {
    hash: text().primaryKey(),
    keyId: text("key_id")
      .notNull()
      .references(() => apiKeys.id),
    /** The last characters of the secret, to tell keys apart on a screen. */
    ending: text().notNull(),
    validUntilMs: integer("valid_until_ms"),
    createdAtMs: integer("created_at_ms").notNull(),
  },
  (table) => [index("key_secrets_by_key").on(table.keyId)],
);

/** Append-only (triggers see to it). A grant adds to available; a hold moves to held; settle and release end a hold. */
export const ledger = sqliteTable(
  "ledger",
  {
    id: integer().primaryKey({ autoIncrement: true }),
    accountId: text("account_id")
      .notNull()
      .references(() => accounts.id),
    kind: text({ enum: ["grant", "hold", "settle", "release"] }).notNull(),
    available: integer().notNull(),
    held: integer().notNull(),
    /** What it was for: the id of a verification; null for a grant. */
    reference: text(),
    note: text(),
    atMs: integer("at_ms").notNull(),
  },
  (table) => [
    index("ledger_by_account").on(table.accountId, table.id),
    uniqueIndex("ledger_hold_once")
      .on(table.reference)
      .where(sql`kind = 'hold'`),
    uniqueIndex("ledger_end_once")
      .on(table.reference)
      .where(sql`kind in ('settle', 'release')`),
  ],
);

export const verifications = sqliteTable(
  "verifications",
  {
    id: text().primaryKey(),
    accountId: text("account_id").notNull(),
    keyId: text("key_id").notNull(),
    mode: text({ enum: ["live", "test"] }).notNull(),
    email: text().notNull(),
    normalizedEmail: text("normalized_email").notNull(),
    source: text(),
    status: text({ enum: ["pending", "completed"] }).notNull(),
    verdict: text(),
    subStatus: text("sub_status"),
    /** The result object as JSON text; null while pending. */
    result: text(),
    createdAtMs: integer("created_at_ms").notNull(),
    completedAtMs: integer("completed_at_ms"),
    /** Pending only: when the next attempt is due. */
    dueAtMs: integer("due_at_ms"),
    attempts: integer().notNull().default(0),
  },
  (table) => [
    index("verifications_by_key").on(table.keyId, table.id),
    uniqueIndex("verifications_pending_once")
      .on(table.accountId, table.mode, table.normalizedEmail)
      .where(sql`status = 'pending'`),
    index("verifications_due")
      .on(table.dueAtMs)
      .where(sql`status = 'pending'`),
  ],
);

/** Why a verification says what it says: the evidence object as JSON text, rewritten after every attempt. */
export const verificationEvidence = sqliteTable("verification_evidence", {
  verificationId: text("verification_id").primaryKey(),
  body: text().notNull(),
});

/** What an Idempotency-Key of an API key stands for, for a day. */
export const idempotencyKeys = sqliteTable(
  "idempotency_keys",
  {
    keyId: text("key_id").notNull(),
    idempotencyKey: text("idempotency_key").notNull(),
    requestHash: text("request_hash").notNull(),
    resourceId: text("resource_id").notNull(),
    createdAtMs: integer("created_at_ms").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.keyId, table.idempotencyKey] }),
    index("idempotency_keys_by_age").on(table.createdAtMs),
  ],
);

/** What the operator never wants mailed: whole addresses (normalized) and domains (A-labels, subdomains included). */
export const suppressions = sqliteTable("suppressions", {
  entry: text().primaryKey(),
  note: text(),
  createdAtMs: integer("created_at_ms").notNull(),
});
