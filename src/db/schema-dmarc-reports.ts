import { sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";

/** An aggregate report. */
export const dmarcReports = sqliteTable(
  "dmarc_reports",
  {
    number: integer().primaryKey({ autoIncrement: true }),
    id: text().notNull().unique(),
    domain: integer().notNull(),
    ingestion: text().notNull(),
    org: text(),
    email: text(),
    reportId: text("report_id"),
    beginMs: integer("begin_ms").notNull(),
    endMs: integer("end_ms").notNull(),
    /** The day most of it is about, in days since 1970 (UTC). */
    day: integer().notNull(),
    receivedAtMs: integer("received_at_ms").notNull(),
    /** The domain that the policy stands at: the enrolled one or one below it. */
    policyDomain: text("policy_domain").notNull(),
    /** The policy that the reporter found, as JSON. */
    policy: text().notNull(),
    /** What else the report says about itself, as JSON: version, contact, errors, notices, rows left out. */
    body: text().notNull(),
    rows: integer().notNull(),
    messages: integer().notNull(),
    aligned: integer().notNull(),
    /**
     * What makes two reports the same one, hashed; behind a space the author of a report that is not trusted: the domain that
     * its mail is authenticated as, or `unauthenticated`.
     */
    sameness: text().notNull(),
    /** The rows, hashed: a report that comes twice with other rows is worth a word. */
    content: text().notNull(),
    /** Whether the mail that brought it was authentic; null when it came in no mail. */
    authenticity: text({ enum: ["pending", "pass", "fail", "unknown"] }),
    /** How that was found out, as JSON. */
    authenticityBody: text("authenticity_body"),
    /** False while its rows are still being written: it is not counted and not shown. */
    isComplete: integer("is_complete", { mode: "boolean" }).notNull(),
  },
  (table) => [
    uniqueIndex("dmarc_reports_once").on(table.domain, table.sameness),
    index("dmarc_reports_by_day").on(table.domain, table.day),
    index("dmarc_reports_by_domain").on(table.domain, table.id),
    index("dmarc_reports_incomplete")
      .on(table.number)
      .where(sql`is_complete = 0`),
    index("dmarc_reports_unproven")
      .on(table.number)
      .where(sql`authenticity = 'pending'`),
  ],
);

/** A row of a report: messages of one source that fared alike. */
export const dmarcRecords = sqliteTable(
  "dmarc_records",
  {
    /** `number` of the report. */
    report: integer().notNull(),
    position: integer().notNull(),
    domain: integer().notNull(),
    day: integer().notNull(),
    /** `number` of the source. */
    source: integer().notNull(),
    sourceIp: text("source_ip").notNull(),
    count: integer().notNull(),
    disposition: text(),
    /** The aligned results: `pass`, `fail`, or null when the reporter does not say. */
    dkim: text(),
    spf: text(),
    isAligned: integer("is_aligned", { mode: "boolean" }).notNull(),
    isForwarded: integer("is_forwarded", { mode: "boolean" }).notNull(),
    headerFrom: text("header_from"),
    /** The greater the worse: what fails before what was passed on before what is aligned, and of each the most first. */
    rank: integer().notNull(),
    /** Envelope, reasons and what was checked, as JSON. */
    body: text().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.report, table.position] }),
    index("dmarc_records_by_day").on(table.domain, table.day, table.rank, table.report, table.position),
    index("dmarc_records_by_source").on(table.source, table.day, table.rank, table.report, table.position),
  ],
);

/**
 * Who sends in a domain's name, at the finest: an address and what authenticated there (`keyOfEvidence`). Which service or
 * organization that is, is decided when sources are read. Keys without a space are of before sources were stored by address.
 */
export const dmarcSources = sqliteTable(
  "dmarc_sources",
  {
    number: integer().primaryKey({ autoIncrement: true }),
    domain: integer().notNull(),
    key: text().notNull(),
    /** The first and last day that reports tell of it. */
    firstDay: integer("first_day").notNull(),
    lastDay: integer("last_day").notNull(),
    firstSeenAtMs: integer("first_seen_at_ms").notNull(),
    /** Whether the alert rules have looked at it. */
    isReviewed: integer("is_reviewed", { mode: "boolean" }).notNull().default(false),
    /** Whether a trusted report names it; also of sources from before this was stored. */
    isVouched: integer("is_vouched", { mode: "boolean" }).notNull().default(true),
  },
  (table) => [
    uniqueIndex("dmarc_sources_once").on(table.domain, table.key),
    index("dmarc_sources_legacy")
      .on(table.domain, table.number)
      .where(sql`instr(key, ' ') = 0`),
    index("dmarc_sources_unreviewed")
      .on(table.domain)
      .where(sql`is_reviewed = 0`),
  ],
);

const counts = {
  messages: integer().notNull(),
  /** Messages that passed DMARC: aligned DKIM or aligned SPF. */
  aligned: integer().notNull(),
  alignedDkim: integer("aligned_dkim").notNull(),
  alignedSpf: integer("aligned_spf").notNull(),
  /** Not aligned, but passed on by somebody the receiver knows. */
  forwarded: integer().notNull(),
  /** Not aligned, although DKIM or SPF passed for some other domain. */
  authenticated: integer().notNull(),
  quarantined: integer().notNull(),
  rejected: integer().notNull(),
};

/**
 * Whether the reports were handed in by the owner, or came in mail that is authenticated as the reporter's. What is counted of
 * others is kept apart: advice must not rest on it. What was counted before they were told apart is among the trusted.
 */
const isTrusted = integer("is_trusted", { mode: "boolean" }).notNull().default(true);

/** What a source sent on a day. */
export const dmarcDaily = sqliteTable(
  "dmarc_daily",
  { domain: integer().notNull(), day: integer().notNull(), source: integer().notNull(), ...counts, isTrusted },
  (table) => [primaryKey({ columns: [table.domain, table.day, table.source, table.isTrusted] })],
);

/** What a reporter told of a day. */
export const dmarcDailyReporters = sqliteTable(
  "dmarc_daily_reporters",
  {
    domain: integer().notNull(),
    day: integer().notNull(),
    /** The name that its reports give, in lower case; empty when they give none. */
    reporter: text().notNull(),
    /** The organisational domain that its mail is authenticated as; `unauthenticated`, and empty for what the owner handed in. */
    author: text().notNull().default(""),
    reports: integer().notNull(),
    messages: integer().notNull(),
    aligned: integer().notNull(),
    isTrusted,
  },
  (table) => [primaryKey({ columns: [table.domain, table.day, table.reporter, table.author, table.isTrusted] })],
);

/** Who sent authenticated reports by mail about a domain, and what that took of the disk today. */
export const dmarcReportAuthors = sqliteTable(
  "dmarc_report_authors",
  {
    domain: integer().notNull(),
    /** The organisational domain that the mail is authenticated as. */
    author: text().notNull(),
    /** The days, since 1970 (UTC), on which the first and the last such mail came in. */
    firstDay: integer("first_day").notNull(),
    lastDay: integer("last_day").notNull(),
    /** What its mail and reports took of the disk on `usageDay`, where the domain had used up its share. */
    usageDay: integer("usage_day").notNull().default(0),
    usageBytes: integer("usage_bytes").notNull().default(0),
  },
  (table) => [primaryKey({ columns: [table.domain, table.author] })],
);

/** What was sent on a day under a name in `From`: the domain's or one below it; `` for all others. */
export const dmarcDailyNames = sqliteTable(
  "dmarc_daily_names",
  {
    domain: integer().notNull(),
    day: integer().notNull(),
    name: text().notNull(),
    messages: integer().notNull(),
    aligned: integer().notNull(),
    isTrusted,
  },
  (table) => [primaryKey({ columns: [table.domain, table.day, table.name, table.isTrusted] })],
);

/** Every name in `From` that was ever seen at or below a domain. */
export const dmarcNames = sqliteTable(
  "dmarc_names",
  {
    domain: integer().notNull(),
    name: text().notNull(),
    firstDay: integer("first_day").notNull(),
    firstSeenAtMs: integer("first_seen_at_ms").notNull(),
    isReviewed: integer("is_reviewed", { mode: "boolean" }).notNull().default(false),
  },
  (table) => [primaryKey({ columns: [table.domain, table.name] })],
);

/** The user's word about a source, by the key under which it was shown. */
export const dmarcSourceWords = sqliteTable(
  "dmarc_source_words",
  {
    domain: integer().notNull(),
    key: text().notNull(),
    classification: text({ enum: ["authorized", "misconfigured", "forwarder", "unknown", "threat"] }).notNull(),
    atMs: integer("at_ms").notNull(),
  },
  (table) => [primaryKey({ columns: [table.domain, table.key] })],
);

/** What is known of an address that reports tell of: its reverse name, and the network that announces it. */
export const dmarcReverseNames = sqliteTable(
  "dmarc_reverse_names",
  {
    ip: text().primaryKey(),
    /** Lower-case A-labels; null when there is none, or none was asked yet. */
    name: text(),
    /** Whether the name leads back to the address. */
    isConfirmed: integer("is_confirmed", { mode: "boolean" }).notNull(),
    /** When the DNS is to be asked (again) for the name. */
    dueAtMs: integer("due_at_ms").notNull(),
    /** Null before the first answer. */
    askedAtMs: integer("asked_at_ms"),
    /** The AS that announces the address; null when none does, or it was not found out yet. */
    asn: integer(),
    asName: text("as_name"),
    /** ISO 3166 alpha-2: where the network is registered, or stands by the user's database. */
    country: text(),
    /** The announced network, such as `192.0.2.0/24`. */
    prefix: text(),
    /** When the network is to be looked up (again); 0 before the first time. */
    networkDueAtMs: integer("network_due_at_ms").notNull().default(0),
    /** Null before the first answer. */
    networkAskedAtMs: integer("network_asked_at_ms"),
  },
  (table) => [
    index("dmarc_reverse_names_due").on(table.dueAtMs),
    index("dmarc_reverse_names_network_due").on(table.networkDueAtMs),
  ],
);

/** The name of an AS, as the DNS last said; as many rows as there are AS numbers at most. */
export const dmarcAsNames = sqliteTable("dmarc_as_names", {
  asn: integer().primaryKey(),
  /** Null when it has none. */
  name: text(),
  /** Until when it counts. */
  dueAtMs: integer("due_at_ms").notNull(),
});

/** A TLS report (RFC 8460) in its simplest useful form. */
export const dmarcTlsReports = sqliteTable(
  "dmarc_tls_reports",
  {
    id: text().primaryKey(),
    domain: integer().notNull(),
    ingestion: text().notNull(),
    org: text(),
    reportId: text("report_id"),
    beginMs: integer("begin_ms"),
    endMs: integer("end_ms"),
    successfulSessions: integer("successful_sessions").notNull(),
    failedSessions: integer("failed_sessions").notNull(),
    /** The results by policy, as JSON. */
    body: text().notNull(),
    sameness: text().notNull(),
    receivedAtMs: integer("received_at_ms").notNull(),
  },
  (table) => [
    uniqueIndex("dmarc_tls_reports_once").on(table.domain, table.sameness),
    index("dmarc_tls_reports_by_domain").on(table.domain, table.id),
  ],
);
