import { sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";

/** What is watched on blocklists: a domain, an address, or a range of IPv4 addresses, each of which has a row of its own. */
export const blocklistTargets = sqliteTable(
  "blocklist_targets",
  {
    id: text().primaryKey(),
    accountId: text("account_id").notNull(),
    mode: text({ enum: ["live", "test"] }).notNull(),
    kind: text({ enum: ["ipv4", "ipv6", "domain"] }).notNull(),
    value: text().notNull(),
    /** The range that an address belongs to; empty for what was added by itself. */
    rangeId: text("range_id").notNull().default(""),
    /** How many addresses a range has; null for all else. A range is never checked itself. */
    members: integer(),
    label: text(),
    status: text({ enum: ["pending", "clean", "listed", "unknown"] }).notNull(),
    /** Listing ids, as far as known: a list without an answer keeps those of its last one. */
    listedOn: text("listed_on", { mode: "json" }).$type<readonly string[]>().notNull(),
    /** The worst listing: 5 critical, 4 high, 3 medium, 2 low, 1 info; 0 when there is none. */
    severityRank: integer("severity_rank").notNull().default(0),
    /** From which severity on changes are sent; null: as the account says. */
    alertSeverityMin: text("alert_severity_min", { enum: ["critical", "high", "medium", "low", "info"] }),
    /** Ids of lists that are not asked for this target. */
    mutedLists: text("muted_lists", { mode: "json" }).$type<readonly string[]>().notNull(),
    monitoringEnabled: integer("monitoring_enabled", { mode: "boolean" }).notNull(),
    webhookUrl: text("webhook_url"),
    /** Addresses that alert mail goes to. */
    recipients: text({ mode: "json" }).$type<readonly string[]>().notNull(),
    /** Checks in a row that ended `unknown`. */
    unknownChecks: integer("unknown_checks").notNull().default(0),
    lastCheckedAtMs: integer("last_checked_at_ms"),
    nextCheckAtMs: integer("next_check_at_ms").notNull(),
    createdAtMs: integer("created_at_ms").notNull(),
  },
  (table) => [
    uniqueIndex("blocklist_targets_once").on(table.accountId, table.mode, table.kind, table.value, table.rangeId),
    index("blocklist_targets_by_account").on(table.accountId, table.mode, table.id),
    index("blocklist_targets_by_range").on(table.accountId, table.mode, table.rangeId, table.id),
    index("blocklist_targets_by_severity").on(table.accountId, table.mode, table.rangeId, table.severityRank, table.id),
    index("blocklist_targets_of_range")
      .on(table.rangeId, table.status, table.severityRank)
      .where(sql`range_id <> ''`),
    index("blocklist_targets_without_severity")
      .on(table.id)
      .where(sql`severity_rank = 0 and listed_on <> '[]'`),
    index("blocklist_targets_due")
      .on(table.nextCheckAtMs)
      .where(sql`monitoring_enabled = 1 and members is null`),
  ],
);

/** What lists a target now, and what was noted about it. A range has none: they stand with its addresses. */
export const blocklistListings = sqliteTable(
  "blocklist_listings",
  {
    targetId: text("target_id").notNull(),
    /** Id of the listing, as in `listed_on`. */
    listing: text().notNull(),
    /** The range that the target belongs to; empty when to none. */
    rangeId: text("range_id").notNull().default(""),
    /** What the list said when it was last seen; null for listings that are older than these columns. */
    severity: text({ enum: ["critical", "high", "medium", "low", "info"] }),
    meaning: text(),
    sinceMs: integer("since_ms").notNull(),
    seenAtMs: integer("seen_at_ms").notNull(),
    /** Name of the key by which it was acknowledged, and when; null before. */
    acknowledgedBy: text("acknowledged_by"),
    acknowledgedAtMs: integer("acknowledged_at_ms"),
    delistingRequestedBy: text("delisting_requested_by"),
    delistingRequestedAtMs: integer("delisting_requested_at_ms"),
    note: text(),
    noteBy: text("note_by"),
    noteAtMs: integer("note_at_ms"),
  },
  (table) => [
    primaryKey({ columns: [table.targetId, table.listing] }),
    index("blocklist_listings_of_range")
      .on(table.rangeId, table.listing)
      .where(sql`range_id <> ''`),
  ],
);

/** The history of a target: every finished check. */
export const blocklistChecks = sqliteTable(
  "blocklist_checks",
  {
    id: text().primaryKey(),
    targetId: text("target_id").notNull(),
    trigger: text({ enum: ["scheduled", "manual"] }).notNull(),
    startedAtMs: integer("started_at_ms").notNull(),
    finishedAtMs: integer("finished_at_ms").notNull(),
    status: text({ enum: ["clean", "listed", "unknown"] }).notNull(),
    /** Whether a listing came or went. */
    isChange: integer("is_change", { mode: "boolean" }).notNull(),
    /** Listings, what came, what went, counts and results, as JSON. */
    body: text().notNull(),
  },
  (table) => [
    index("blocklist_checks_by_target").on(table.targetId, table.id),
    index("blocklist_checks_by_age").on(table.finishedAtMs),
  ],
);

/** Lists of which accounts were told that they cannot be used. */
export const blocklistUsability = sqliteTable("blocklist_usability", {
  listId: text("list_id").primaryKey(),
  sinceMs: integer("since_ms").notNull(),
});

/** What a list was asked on a day: reserved before it is asked, so that a crash forgets nothing. */
export const blocklistBudgets = sqliteTable("blocklist_budgets", {
  listId: text("list_id").primaryKey(),
  /** Days since 1970, UTC. */
  day: integer().notNull(),
  reserved: integer().notNull(),
});

/** Changes that wait for the next alert mail to somebody. */
export const blocklistAlerts = sqliteTable(
  "blocklist_alerts",
  {
    id: text().primaryKey(),
    recipient: text().notNull(),
    /** What the mail says of it, as JSON. */
    body: text().notNull(),
    createdAtMs: integer("created_at_ms").notNull(),
  },
  (table) => [index("blocklist_alerts_by_recipient").on(table.recipient, table.id)],
);
