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
    /** The day that most of it covers, in days since 1970 (UTC). */
    day: integer().notNull(),
    receivedAtMs: integer("received_at_ms").notNull(),
    /** The domain of the policy: the enrolled one or a subdomain. */
    policyDomain: text("policy_domain").notNull(),
    /** The policy that the reporter found, as JSON. */
    policy: text().notNull(),
    /** Other metadata as JSON: version, contact, errors, notices, omitted rows. */
    body: text().notNull(),
    rows: integer().notNull(),
    messages: integer().notNull(),
    aligned: integer().notNull(),
    /**
     * Hashed deduplication key; for an untrusted report followed by a space and its author: the domain that its mail is
     * authenticated as, or `unauthenticated`.
     */
    sameness: text().notNull(),
    /** Hash of the rows: a duplicate report with other rows is noted. */
    content: text().notNull(),
    /** Under whom it is counted: see `voucher`. 0 or 1 for one that is not trusted. */
    voucher: integer().notNull().default(1),
    /** Whether the mail was authenticated; null for files. */
    authenticity: text({ enum: ["pending", "pass", "fail", "unknown"] }),
    /** The authentication results, as JSON. */
    authenticityBody: text("authenticity_body"),
    /** False while its rows are being written; it is not counted or shown then. */
    isComplete: integer("is_complete", { mode: "boolean" }).notNull(),
  },
  (table) => [
    uniqueIndex("dmarc_reports_once").on(table.domain, table.sameness),
    // Everything that lists are filtered by, so that a filter reads no report in vain.
    index("dmarc_reports_by_day").on(
      ...[table.domain, table.day, table.number, table.isComplete, table.org, table.authenticity, table.sameness],
    ),
    index("dmarc_reports_by_domain").on(table.domain, table.id),
    index("dmarc_reports_incomplete")
      .on(table.number)
      .where(sql`is_complete = 0`),
    index("dmarc_reports_doubtful")
      .on(table.domain, table.authenticity, table.day, table.number)
      .where(sql`authenticity <> 'pass' AND is_complete = 1`),
    index("dmarc_reports_unproven")
      .on(table.number)
      .where(sql`authenticity = 'pending'`),
  ],
);

/** A row of a report: messages of one source with the same results. */
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
    /** The aligned results: `pass`, `fail`, or null if not reported. */
    dkim: text(),
    spf: text(),
    isAligned: integer("is_aligned", { mode: "boolean" }).notNull(),
    isForwarded: integer("is_forwarded", { mode: "boolean" }).notNull(),
    headerFrom: text("header_from"),
    /** Sort key, worst first: failing, forwarded, aligned; each by number of messages. */
    rank: integer().notNull(),
    /** Envelope, reasons and authentication results, as JSON. */
    body: text().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.report, table.position] }),
    index("dmarc_records_by_day").on(table.domain, table.day, table.rank, table.report, table.position),
    index("dmarc_records_by_source").on(table.source, table.day, table.rank, table.report, table.position),
  ],
);

/**
 * Sources by address and authenticated domains (`keyOfEvidence`). The service or organization is determined on reading.
 * Keys without a space are from versions that did not store sources by address.
 */
export const dmarcSources = sqliteTable(
  "dmarc_sources",
  {
    number: integer().primaryKey({ autoIncrement: true }),
    domain: integer().notNull(),
    key: text().notNull(),
    /** The first and last day in reports. */
    firstDay: integer("first_day").notNull(),
    lastDay: integer("last_day").notNull(),
    firstSeenAtMs: integer("first_seen_at_ms").notNull(),
    /** Whether the alert rules have evaluated it. */
    isReviewed: integer("is_reviewed", { mode: "boolean" }).notNull().default(false),
    /** Whether a report of voucher 1 contains it; also true for sources older than this column. */
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
  /** Not aligned, but forwarded by a host that the receiver knows. */
  forwarded: integer().notNull(),
  /** Not aligned, although DKIM or SPF passed for another domain. */
  authenticated: integer().notNull(),
  quarantined: integer().notNull(),
  rejected: integer().notNull(),
};

/**
 * Who vouches for counts. 0: nobody, their mail is not authenticated as the reporter's. 1: the owner, who handed the reports in, or a
 * reporter of `fixtures/dmarc/reporters.json`. Above: the unknown reporter whose `number` in `dmarc_reporters` is one less. Advice and
 * alerts rely on some of them only, so they are counted separately. Counts from before these distinctions have 1.
 */
const voucher = integer("is_trusted")
  .notNull()
  .default(sql`true`);

/** Messages of a source per day. */
export const dmarcDaily = sqliteTable(
  "dmarc_daily",
  { domain: integer().notNull(), day: integer().notNull(), source: integer().notNull(), ...counts, voucher },
  (table) => [primaryKey({ columns: [table.domain, table.day, table.source, table.voucher] })],
);

/** Messages of a source per week (`day / 7`), kept by triggers of `dmarc_daily`: a migration that creates it again creates them, too. */
export const dmarcWeekly = sqliteTable(
  "dmarc_weekly",
  { domain: integer().notNull(), source: integer().notNull(), voucher, week: integer().notNull(), ...counts },
  (table) => [
    primaryKey({ columns: [table.domain, table.source, table.voucher, table.week] }),
    // Unknown reporters are many: seeking each for every source would take long.
    index("dmarc_weekly_unknown")
      .on(table.domain, table.week)
      .where(sql`is_trusted > 1`),
  ],
);

/** Messages of a reporter per day. */
export const dmarcDailyReporters = sqliteTable(
  "dmarc_daily_reporters",
  {
    domain: integer().notNull(),
    day: integer().notNull(),
    /** The name in its reports, in lower case; empty without one. */
    reporter: text().notNull(),
    /** The organizational domain of its authenticated mail; `unauthenticated`; empty for uploads. */
    author: text().notNull().default(""),
    reports: integer().notNull(),
    messages: integer().notNull(),
    aligned: integer().notNull(),
    voucher,
  },
  (table) => [primaryKey({ columns: [table.domain, table.day, table.reporter, table.author, table.voucher] })],
);

/** Messages per day and header_from domain: the domain or a subdomain; `` for all others. */
export const dmarcDailyNames = sqliteTable(
  "dmarc_daily_names",
  {
    domain: integer().notNull(),
    day: integer().notNull(),
    name: text().notNull(),
    messages: integer().notNull(),
    aligned: integer().notNull(),
    voucher,
  },
  (table) => [primaryKey({ columns: [table.domain, table.day, table.name, table.voucher] })],
);

/** Every header_from domain ever seen at or below a domain. */
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

/** The user's classification of a source, by the key under which it was shown. */
export const dmarcSourceWords = sqliteTable(
  "dmarc_source_words",
  {
    domain: integer().notNull(),
    key: text().notNull(),
    classification: text({ enum: ["authorized", "misconfigured", "forwarder", "unknown", "threat"] }).notNull(),
    atMs: integer("at_ms").notNull(),
    /** Why, in the user's words. */
    note: text(),
  },
  (table) => [primaryKey({ columns: [table.domain, table.key] })],
);

/** Reverse name and network of addresses in reports. */
export const dmarcReverseNames = sqliteTable(
  "dmarc_reverse_names",
  {
    ip: text().primaryKey(),
    /** Lower-case A-labels; null without one, or before the first query. */
    name: text(),
    /** Whether the name resolves to the address. */
    isConfirmed: integer("is_confirmed", { mode: "boolean" }).notNull(),
    /** When the name is to be queried (again). */
    dueAtMs: integer("due_at_ms").notNull(),
    /** Null before the first response. */
    askedAtMs: integer("asked_at_ms"),
    /** The AS that announces the address; null without one, or before the first lookup. */
    asn: integer(),
    asName: text("as_name"),
    /** ISO 3166 alpha-2: where the network is registered, or located by the user's database. */
    country: text(),
    /** The announced network, such as `192.0.2.0/24`. */
    prefix: text(),
    /** When the network is to be looked up (again); 0 before the first lookup. */
    networkDueAtMs: integer("network_due_at_ms").notNull().default(0),
    /** Null before the first response. */
    networkAskedAtMs: integer("network_asked_at_ms"),
  },
  (table) => [
    index("dmarc_reverse_names_due").on(table.dueAtMs),
    index("dmarc_reverse_names_network_due").on(table.networkDueAtMs),
  ],
);

/** Names of AS numbers from DNS. */
export const dmarcAsNames = sqliteTable("dmarc_as_names", {
  asn: integer().primaryKey(),
  /** Null without one. */
  name: text(),
  /** When it expires. */
  dueAtMs: integer("due_at_ms").notNull(),
});

/** TLS reports (RFC 8460), reduced to their results by policy. */
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
    /** As that of an aggregate report. */
    voucher: integer().notNull().default(1),
    receivedAtMs: integer("received_at_ms").notNull(),
  },
  (table) => [
    uniqueIndex("dmarc_tls_reports_once").on(table.domain, table.sameness),
    index("dmarc_tls_reports_by_domain").on(table.domain, table.id),
  ],
);
