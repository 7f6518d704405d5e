import { index, integer, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";

/** Failure reports (RFC 9991), one message each, of domains that store them. */
export const dmarcFailureReports = sqliteTable(
  "dmarc_failure_reports",
  {
    id: text().primaryKey(),
    domain: integer().notNull(),
    ingestion: text().notNull(),
    receivedAtMs: integer("received_at_ms").notNull(),
    isRedacted: integer("is_redacted", { mode: "boolean" }).notNull(),
    /** The report as JSON. */
    body: text().notNull(),
    /** Hashed deduplication key. */
    sameness: text().notNull(),
  },
  (table) => [
    uniqueIndex("dmarc_failure_reports_once").on(table.domain, table.sameness),
    index("dmarc_failure_reports_by_domain").on(table.domain, table.id),
    index("dmarc_failure_reports_by_age").on(table.domain, table.receivedAtMs),
  ],
);
