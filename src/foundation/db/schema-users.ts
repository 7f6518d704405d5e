import { index, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
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
