import { sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { counter, requiredInteger, requiredText } from "./schema-columns.ts";

/** Messages to an address that came back, as others reported them. Of live keys only: a bounce is about real mail. */
export const bounces = sqliteTable(
  "bounces",
  {
    id: text().primaryKey(),
    accountId: requiredText("account_id"),
    /** A digest of what the reporter calls the event: the same event is stored once. */
    eventKey: requiredText("event_key"),
    source: text({ enum: ["postfix", "ses", "sendgrid", "mailgun", "postmark", "mailbox"] }).notNull(),
    /** Normalized. */
    email: requiredText(),
    kind: text({ enum: ["hard", "soft"] }).notNull(),
    status: text(),
    diagnostic: text(),
    bouncedAtMs: requiredInteger("bounced_at_ms"),
    createdAtMs: requiredInteger("created_at_ms"),
    /** The verdict of the last check of the address before the bounce, and when it was; null without one. */
    promised: text({ enum: ["deliverable", "risky", "undeliverable"] }),
    promisedAtMs: integer("promised_at_ms"),
    /** Who runs the mail hosts, as that check found them; null when nothing is known. */
    provider: text(),
    /** When a later check proved that the mailbox exists: from then on the bounce decides nothing. */
    refutedAtMs: integer("refuted_at_ms"),
    /** When the account's lists were searched for what they had said; null: they will be, at night. */
    soughtAtMs: integer("sought_at_ms"),
  },
  (table) => [
    uniqueIndex("bounces_once").on(table.accountId, table.eventKey),
    index("bounces_by_account").on(table.accountId, table.id),
    index("bounces_by_email").on(table.accountId, table.email, table.bouncedAtMs),
    index("bounces_that_count")
      .on(table.accountId, table.email, table.bouncedAtMs)
      .where(sql`kind = 'hard' and refuted_at_ms is null`),
    index("bounces_by_age").on(table.createdAtMs),
    index("bounces_unsought")
      .on(table.accountId)
      .where(sql`sought_at_ms is null`),
  ],
);

/** Checks with live keys that said `deliverable`, by the provider of the mail hosts; empty for providers that are counted together. */
export const deliverableChecks = sqliteTable(
  "deliverable_checks",
  {
    accountId: requiredText("account_id"),
    /** In days since 1970 (UTC). */
    day: requiredInteger(),
    provider: requiredText(),
    checks: requiredInteger(),
  },
  (table) => [
    primaryKey({ columns: [table.accountId, table.day, table.provider] }),
    index("deliverable_checks_by_day").on(table.day),
  ],
);

/** Progress of reading bounces from a mailbox, as `dmarc_mailboxes`. */
export const bounceMailboxes = sqliteTable("bounce_mailboxes", {
  mailbox: text().primaryKey(),
  uidValidity: requiredText("uid_validity"),
  lastUid: requiredInteger("last_uid"),
  usageDay: counter("usage_day"),
  usageBytes: counter("usage_bytes"),
});

/** Messages of that mailbox that were read, and are still to be flagged, moved or deleted there. */
export const bounceMailboxMarks = sqliteTable("bounce_mailbox_marks", {
  uid: integer().primaryKey(),
  /** What the message was (`verify/bounces/mailbox/read-bounce-mail.ts`). */
  outcome: requiredText(),
});
