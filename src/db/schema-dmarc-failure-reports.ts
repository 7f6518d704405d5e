import { index, integer, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";

/** What a failure report (RFC 9991) said about one message of a domain that wants that stored. */
export const dmarcFailureReports = sqliteTable(
  "dmarc_failure_reports",
  {
    id: text().primaryKey(),
    domain: integer().notNull(),
    ingestion: text().notNull(),
    receivedAtMs: integer("received_at_ms").notNull(),
    isRedacted: integer("is_redacted", { mode: "boolean" }).notNull(),
    /** What it said, as JSON. */
    body: text().notNull(),
    /** What makes two of them the same one, hashed. */
    sameness: text().notNull(),
  },
  (table) => [
    uniqueIndex("dmarc_failure_reports_once").on(table.domain, table.sameness),
    index("dmarc_failure_reports_by_domain").on(table.domain, table.id),
    index("dmarc_failure_reports_by_age").on(table.domain, table.receivedAtMs),
  ],
);
