import { index, integer, sqliteTable, text, primaryKey } from "drizzle-orm/sqlite-core";
import { accounts } from "./schema.ts";

/** Who signs in to the dashboard. */
export const users = sqliteTable(
  "users",
  {
    id: text().primaryKey(),
    accountId: text("account_id")
      .notNull()
      .references(() => accounts.id),
    /** Normalized, lower case: one person has one user on a service. */
    email: text().notNull().unique(),
    role: text({ enum: ["owner", "member"] }).notNull(),
    /** Whether it also sees what concerns the whole service. */
    isOperator: integer("is_operator", { mode: "boolean" }).notNull(),
    /** Argon2id; null until a set-up link is used. */
    passwordHash: text("password_hash"),
    /** Base32 (RFC 6238); it counts once it is confirmed by a code. */
    totpSecret: text("totp_secret"),
    totpConfirmedAtMs: integer("totp_confirmed_at_ms"),
    /** The time step of the last code: no code is accepted twice. */
    totpLastCounter: integer("totp_last_counter").notNull().default(0),
    /** SHA-256 of the recovery codes that are left. */
    recoveryCodes: text("recovery_codes", { mode: "json" }).$type<readonly string[]>().notNull(),
    /** IANA name; null: that of the browser or UTC. */
    timeZone: text("time_zone"),
    createdAtMs: integer("created_at_ms").notNull(),
    lastSignInAtMs: integer("last_sign_in_at_ms"),
  },
  (table) => [index("users_by_account").on(table.accountId)],
);

/** Browsers that are signed in. */
export const sessions = sqliteTable(
  "sessions",
  {
    /** SHA-256 of the token in the cookie. */
    hash: text().primaryKey(),
    /** Names the session on pages, without a secret. */
    id: text().notNull().unique(),
    userId: text("user_id")
      .notNull()
      .references(() => users.id),
    csrfToken: text("csrf_token").notNull(),
    address: text().notNull(),
    userAgent: text("user_agent").notNull(),
    createdAtMs: integer("created_at_ms").notNull(),
    lastSeenAtMs: integer("last_seen_at_ms").notNull(),
  },
  (table) => [index("sessions_by_user").on(table.userId)],
);

/** One-time links by which a person sets a password: the first user, invitations and resets. */
export const setupLinks = sqliteTable(
  "setup_links",
  {
    /** SHA-256 of the token in the URL. */
    hash: text().primaryKey(),
    accountId: text("account_id")
      .notNull()
      .references(() => accounts.id),
    /** Whose password is set; null: the link creates the first user, an owner and operator. */
    userId: text("user_id").references(() => users.id),
    createdAtMs: integer("created_at_ms").notNull(),
    expiresAtMs: integer("expires_at_ms").notNull(),
    usedAtMs: integer("used_at_ms"),
  },
  (table) => [index("setup_links_by_user").on(table.userId)],
);

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
