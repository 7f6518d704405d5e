import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** How far the mailbox was read from which reports are fetched. One row at most: that of the mailbox that was opened last. */
export const dmarcMailboxes = sqliteTable("dmarc_mailboxes", {
  /** User, host and folder. */
  mailbox: text().primaryKey(),
  /** UIDs of another validity are those of other messages. */
  uidValidity: text("uid_validity").notNull(),
  /** All messages up to this UID were stored, or passed over. */
  lastUid: integer("last_uid").notNull(),
  /** The day (since 1970, UTC) on which messages were last fetched, and how many bytes on that day. */
  usageDay: integer("usage_day").notNull().default(0),
  usageBytes: integer("usage_bytes").notNull().default(0),
});

/** Messages of the mailbox that were stored and are still to be flagged, moved or deleted there. */
export const dmarcMailboxMarks = sqliteTable("dmarc_mailbox_marks", {
  uid: integer().primaryKey(),
  ingestion: text().notNull(),
});
