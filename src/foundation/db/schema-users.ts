import { index, integer, sqliteTable, text, primaryKey } from "drizzle-orm/sqlite-core";
import { accounts } from "./schema.ts";
import { counter, requiredFlag, modeColumn, requiredInteger, requiredText } from "./schema-columns.ts";

/** Who signs in to the dashboard. */
export const users = sqliteTable(
  "users",
  {
    id: text().primaryKey(),
    accountId: requiredText("account_id").references(() => accounts.id),
    /** Normalized, lower case: one person has one user on a service. */
    email: requiredText().unique(),
    role: text({ enum: ["owner", "member", "viewer"] }).notNull(),
    /** The tag whose domains a viewer sees; null for other roles. */
    tag: text(),
    /** Whether it also sees what concerns the whole service. */
    isOperator: requiredFlag("is_operator"),
    /** Argon2id; null until a set-up link is used. */
    passwordHash: text("password_hash"),
    /** Base32 (RFC 6238); it counts once it is confirmed by a code. */
    totpSecret: text("totp_secret"),
    totpConfirmedAtMs: integer("totp_confirmed_at_ms"),
    /** The time step of the last code: no code is accepted twice. */
    totpLastCounter: counter("totp_last_counter"),
    /** SHA-256 of the recovery codes that are left. */
    recoveryCodes: text("recovery_codes", { mode: "json" }).$type<readonly string[]>().notNull(),
    /** IANA name; null: that of the browser or UTC. */
    timeZone: text("time_zone"),
    /** The first steps that this user does not want to see. */
    hiddenSteps: text("hidden_steps", { mode: "json" }).$type<readonly string[]>().notNull().default([]),
    createdAtMs: requiredInteger("created_at_ms"),
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
    id: requiredText().unique(),
    userId: requiredText("user_id").references(() => users.id),
    csrfToken: requiredText("csrf_token"),
    address: requiredText(),
    userAgent: requiredText("user_agent"),
    createdAtMs: requiredInteger("created_at_ms"),
    lastSeenAtMs: requiredInteger("last_seen_at_ms"),
  },
  (table) => [index("sessions_by_user").on(table.userId)],
);

/** One-time links by which a person sets a password: the first user, invitations and resets. */
export const setupLinks = sqliteTable(
  "setup_links",
  {
    /** SHA-256 of the token in the URL. */
    hash: text().primaryKey(),
    accountId: requiredText("account_id").references(() => accounts.id),
    /** Whose password is set; null: the link creates the first user, an owner and operator. */
    userId: text("user_id").references(() => users.id),
    createdAtMs: requiredInteger("created_at_ms"),
    expiresAtMs: requiredInteger("expires_at_ms"),
    usedAtMs: integer("used_at_ms"),
  },
  (table) => [index("setup_links_by_user").on(table.userId)],
);

/** Warnings about the machine that an operator knows about and does not want to see before a time. */
export const machineAcknowledgements = sqliteTable("machine_acknowledgements", {
  /** Identifies the warning (`warningKey`). */
  warning: text().primaryKey(),
  reason: requiredText(),
  untilMs: requiredInteger("until_ms"),
  /** `user:<id>`. */
  acknowledgedBy: requiredText("acknowledged_by"),
  acknowledgedAtMs: requiredInteger("acknowledged_at_ms"),
});

/** What operators did, append-only (enforced by triggers). It outlives the accounts that it names. */
export const auditLog = sqliteTable(
  "audit_log",
  {
    id: integer().primaryKey({ autoIncrement: true }),
    atMs: requiredInteger("at_ms"),
    /** The user of the operating system; with sudo, the user who called it. */
    user: requiredText(),
    host: requiredText(),
    pid: requiredInteger(),
    /** Such as `accounts.rename`. */
    action: requiredText(),
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
    accountId: requiredText("account_id"),
    mode: modeColumn(),
    /** In days since 1970 (UTC). */
    day: requiredInteger(),
    /** An API key, or the user of the dashboard (`user:<id>`). */
    keyId: requiredText("key_id"),
    source: text({ enum: ["single", "list"] }).notNull(),
    subStatus: requiredText("sub_status"),
    verdict: requiredText(),
    verifications: requiredInteger(),
    /** Credits charged, also for results of addresses that were verified again later. */
    credits: requiredInteger(),
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
    accountId: requiredText("account_id"),
    mode: modeColumn(),
    day: requiredInteger(),
    keyId: requiredText("key_id"),
    requests: requiredInteger(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.mode, table.day, table.keyId] })],
);
