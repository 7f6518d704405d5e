import { sql } from "drizzle-orm";
import { index, integer, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";

/** A domain or address that is watched on blocklists. */
export const blocklistTargets = sqliteTable(
  "blocklist_targets",
  {
    id: text().primaryKey(),
    accountId: text("account_id").notNull(),
    mode: text({ enum: ["live", "test"] }).notNull(),
    kind: text({ enum: ["ipv4", "ipv6", "domain"] }).notNull(),
    value: text().notNull(),
    label: text(),
    status: text({ enum: ["pending", "clean", "listed", "unknown"] }).notNull(),
    /** Listing ids, as far as known: a list without an answer keeps those of its last one. */
    listedOn: text("listed_on", { mode: "json" }).$type<readonly string[]>().notNull(),
    /** Ids of lists that are not asked for this target. */
    mutedLists: text("muted_lists", { mode: "json" }).$type<readonly string[]>().notNull(),
    monitoringEnabled: integer("monitoring_enabled", { mode: "boolean" }).notNull(),
    webhookUrl: text("webhook_url"),
    /** Addresses that alert mail goes to. */
    recipients: text({ mode: "json" }).$type<readonly string[]>().notNull(),
    lastCheckedAtMs: integer("last_checked_at_ms"),
    nextCheckAtMs: integer("next_check_at_ms").notNull(),
    createdAtMs: integer("created_at_ms").notNull(),
  },
  (table) => [
    uniqueIndex("blocklist_targets_once").on(table.accountId, table.mode, table.kind, table.value),
    index("blocklist_targets_by_account").on(table.accountId, table.mode, table.id),
    index("blocklist_targets_due")
      .on(table.nextCheckAtMs)
      .where(sql`monitoring_enabled = 1`),
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
