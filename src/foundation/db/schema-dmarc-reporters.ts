import { integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";

/** Reporters of trusted reports about a domain. */
export const dmarcReporters = sqliteTable(
  "dmarc_reporters",
  {
    number: integer().primaryKey({ autoIncrement: true }),
    domain: integer().notNull(),
    /** The organizational domain of its authenticated mail; the name in reports that the owner handed in. */
    author: text().notNull(),
    /** Whether its reports have voucher 1. */
    isKnown: integer("is_known", { mode: "boolean" }).notNull(),
    /** The first and last day in its reports, since 1970 (UTC). */
    firstDay: integer("first_day").notNull(),
    lastDay: integer("last_day").notNull(),
    /** When its counts were found far above those of all others; null while they were not. */
    excessiveSinceMs: integer("excessive_since_ms"),
  },
  (table) => [uniqueIndex("dmarc_reporters_once").on(table.domain, table.author, table.isKnown)],
);

/** Unknown reporters that the owner of an account accepted: their reports count as those of known ones. */
export const dmarcAcceptedReporters = sqliteTable(
  "dmarc_accepted_reporters",
  {
    accountId: text("account_id").notNull(),
    mode: text({ enum: ["live", "test"] }).notNull(),
    /** The organizational domain of its authenticated mail. */
    author: text().notNull(),
    atMs: integer("at_ms").notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.mode, table.author] })],
);

/** Senders of authenticated report mail about a domain, and their disk usage today. */
export const dmarcReportAuthors = sqliteTable(
  "dmarc_report_authors",
  {
    domain: integer().notNull(),
    /** The organizational domain of the authenticated mail. */
    author: text().notNull(),
    /** The days of the first and the last such mail, since 1970 (UTC). */
    firstDay: integer("first_day").notNull(),
    lastDay: integer("last_day").notNull(),
    /** Disk usage on `usageDay` after the domain had used up its quota. */
    usageDay: integer("usage_day").notNull().default(0),
    usageBytes: integer("usage_bytes").notNull().default(0),
  },
  (table) => [primaryKey({ columns: [table.domain, table.author] })],
);
