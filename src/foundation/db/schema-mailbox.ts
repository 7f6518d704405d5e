import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** Progress of reading reports from a mailbox. At most one row: the mailbox opened last. */
export const dmarcMailboxes = sqliteTable("dmarc_mailboxes", {
  /** User, host and folder. */
  mailbox: text().primaryKey(),
  /** UIDs with another UIDVALIDITY denote other messages. */
  uidValidity: text("uid_validity").notNull(),
  /** All messages up to this UID were stored or skipped. */
  lastUid: integer("last_uid").notNull(),
  /** The last day (since 1970, UTC) on which messages were fetched, and their bytes on that day. */
  usageDay: integer("usage_day").notNull().default(0),
  usageBytes: integer("usage_bytes").notNull().default(0),
});

/** Stored messages of the mailbox that are still to be flagged, moved or deleted there. */
export const dmarcMailboxMarks = sqliteTable("dmarc_mailbox_marks", {
  uid: integer().primaryKey(),
  ingestion: text().notNull(),
});
