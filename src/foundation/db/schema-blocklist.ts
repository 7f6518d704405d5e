import { sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { counter, requiredFlag, modeColumn, requiredInteger, requiredText } from "./schema-columns.ts";

/** Monitored targets: a domain, an address, or a range of IPv4 addresses; each address of a range also has a row. */
export const blocklistTargets = sqliteTable(
  "blocklist_targets",
  {
    id: text().primaryKey(),
    accountId: requiredText("account_id"),
    mode: modeColumn(),
    kind: text({ enum: ["ipv4", "ipv6", "domain"] }).notNull(),
    value: requiredText(),
    /** The range of an address; empty for targets added individually. */
    rangeId: requiredText("range_id").default(""),
    /** The number of addresses of a range, null otherwise. Ranges themselves are not checked. */
    members: integer(),
    label: text(),
    status: text({ enum: ["pending", "clean", "listed", "unknown"] }).notNull(),
    /** Listing ids; those of a list that did not respond are kept. */
    listedOn: text("listed_on", { mode: "json" }).$type<readonly string[]>().notNull(),
    /** The most severe listing: 5 critical, 4 high, 3 medium, 2 low, 1 info; 0 without one. */
    severityRank: counter("severity_rank"),
    /** Lowest severity of changes that are sent; null: the setting of the account. */
    alertSeverityMin: text("alert_severity_min", { enum: ["critical", "high", "medium", "low", "info"] }),
    /** Ids of lists that are not queried for this target. */
    mutedLists: text("muted_lists", { mode: "json" }).$type<readonly string[]>().notNull(),
    monitoringEnabled: requiredFlag("monitoring_enabled"),
    webhookUrl: text("webhook_url"),
    /** Recipients of alert mail. */
    recipients: text({ mode: "json" }).$type<readonly string[]>().notNull(),
    /** Consecutive checks that ended `unknown`. */
    unknownChecks: counter("unknown_checks"),
    lastCheckedAtMs: integer("last_checked_at_ms"),
    nextCheckAtMs: requiredInteger("next_check_at_ms"),
    createdAtMs: requiredInteger("created_at_ms"),
  },
  (table) => [
    uniqueIndex("blocklist_targets_once").on(table.accountId, table.mode, table.kind, table.value, table.rangeId),
    index("blocklist_targets_by_account").on(table.accountId, table.mode, table.id),
    index("blocklist_targets_by_range").on(table.accountId, table.mode, table.rangeId, table.id),
    index("blocklist_targets_by_severity").on(table.accountId, table.mode, table.rangeId, table.severityRank, table.id),
    // The dashboard: counts by state, and the order from the worst to paused targets, read backwards.
    index("blocklist_targets_by_state").on(
      ...[table.accountId, table.mode, table.rangeId, table.monitoringEnabled, table.severityRank, table.status],
      table.id,
    ),
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

/** Removed targets whose history, listings and mutes are still to be removed. */
export const blocklistRemovedTargets = sqliteTable("blocklist_removed_targets", {
  id: text().primaryKey(),
  accountId: requiredText("account_id"),
});

/** The current listings of a target, with their notes. Those of a range belong to its addresses. */
export const blocklistListings = sqliteTable(
  "blocklist_listings",
  {
    targetId: requiredText("target_id"),
    /** Id of the listing, as in `listed_on`. */
    listing: requiredText(),
    /** The range of the target; empty without one. */
    rangeId: requiredText("range_id").default(""),
    /** The last response of the list; null for listings older than these columns. */
    severity: text({ enum: ["critical", "high", "medium", "low", "info"] }),
    meaning: text(),
    sinceMs: requiredInteger("since_ms"),
    seenAtMs: requiredInteger("seen_at_ms"),
    /** The name of the API key that acknowledged it, and when; null before. */
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

/** Until when and why a list or listing is muted, for those in `muted_lists` where somebody said so. */
export const blocklistMutes = sqliteTable(
  "blocklist_mutes",
  {
    targetId: requiredText("target_id"),
    /** As in `muted_lists`. */
    muted: requiredText(),
    reason: text(),
    /** Null: until somebody ends it. */
    untilMs: integer("until_ms"),
    mutedBy: requiredText("muted_by"),
    mutedAtMs: requiredInteger("muted_at_ms"),
  },
  (table) => [
    primaryKey({ columns: [table.targetId, table.muted] }),
    index("blocklist_mutes_by_end")
      .on(table.untilMs)
      .where(sql`until_ms is not null`),
  ],
);

/** The history of a target: every finished check. */
export const blocklistChecks = sqliteTable(
  "blocklist_checks",
  {
    id: text().primaryKey(),
    targetId: requiredText("target_id"),
    trigger: text({ enum: ["scheduled", "manual"] }).notNull(),
    startedAtMs: requiredInteger("started_at_ms"),
    finishedAtMs: requiredInteger("finished_at_ms"),
    status: text({ enum: ["clean", "listed", "unknown"] }).notNull(),
    /** Whether a listing was added or removed. */
    isChange: requiredFlag("is_change"),
    /** Listings, added, removed, counts and results, as JSON. */
    body: requiredText(),
  },
  (table) => [
    // With the columns by which a history is filtered and drawn, so that bodies are only read of the checks that are shown.
    index("blocklist_checks_by_target").on(
      ...[table.targetId, table.id, table.finishedAtMs, table.isChange, table.status],
      table.trigger,
    ),
    // Checks with a change are kept longer than others: the purge reads either alone.
    index("blocklist_checks_by_change_and_age").on(table.isChange, table.finishedAtMs),
  ],
);

/** Lists that accounts were notified about as unusable. */
export const blocklistUsability = sqliteTable("blocklist_usability", {
  listId: text("list_id").primaryKey(),
  sinceMs: requiredInteger("since_ms"),
});

/** Queries to a list per day, reserved before they are sent, so that a crash does not lose any. */
export const blocklistBudgets = sqliteTable("blocklist_budgets", {
  listId: text("list_id").primaryKey(),
  /** Days since 1970, UTC. */
  day: requiredInteger(),
  reserved: requiredInteger(),
});

/** Changes that wait for the next alert mail to a recipient. */
export const blocklistAlerts = sqliteTable(
  "blocklist_alerts",
  {
    id: text().primaryKey(),
    /** Empty in rows of versions that mailed several accounts at once. */
    accountId: requiredText("account_id").default(""),
    recipient: requiredText(),
    /** The content of the mail, as JSON. */
    body: requiredText(),
    createdAtMs: requiredInteger("created_at_ms"),
  },
  (table) => [index("blocklist_alerts_by_recipient").on(table.recipient, table.id)],
);
