import { sql } from "drizzle-orm";
import { blob, index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { counter, requiredFlag, requiredInteger, requiredText } from "./schema-columns.ts";

/** The raw mails and files: their first bytes, which are all of most. See `RawStore`. */
export const dmarcRaw = sqliteTable("dmarc_raw", {
  ingestion: text().primaryKey(),
  bytes: blob({ mode: "buffer" }).notNull(),
});

/** The other bytes of raw mails and files. */
export const dmarcRawChunks = sqliteTable(
  "dmarc_raw_chunks",
  {
    ingestion: requiredText(),
    /** From 0 on. */
    chunk: requiredInteger(),
    bytes: blob({ mode: "buffer" }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.ingestion, table.chunk] })],
);

/** An aggregate report. */
export const dmarcReports = sqliteTable(
  "dmarc_reports",
  {
    number: integer().primaryKey({ autoIncrement: true }),
    id: requiredText().unique(),
    domain: requiredInteger(),
    ingestion: requiredText(),
    org: text(),
    email: text(),
    reportId: text("report_id"),
    beginMs: requiredInteger("begin_ms"),
    endMs: requiredInteger("end_ms"),
    /** The day that most of it covers, in days since 1970 (UTC). */
    day: requiredInteger(),
    receivedAtMs: requiredInteger("received_at_ms"),
    /** The domain of the policy: the enrolled one or a subdomain. */
    policyDomain: requiredText("policy_domain"),
    /** The policy that the reporter found, as JSON. */
    policy: requiredText(),
    /** Other metadata as JSON: version, contact, errors, notices, omitted rows. */
    body: requiredText(),
    rows: requiredInteger(),
    messages: requiredInteger(),
    aligned: requiredInteger(),
    /**
     * Hashed deduplication key; for an untrusted report followed by a space and its author: the domain that its mail is
     * authenticated as, or `unauthenticated`.
     */
    sameness: requiredText(),
    /** Hash of the rows: a duplicate report with other rows is noted. */
    content: requiredText(),
    /** Under whom it is counted: see `voucher`. 0 or 1 for one that is not trusted. */
    voucher: requiredInteger().default(1),
    /** Whether the mail was authenticated; null for files. */
    authenticity: text({ enum: ["pending", "pass", "fail", "unknown"] }),
    /** The authentication results, as JSON. */
    authenticityBody: text("authenticity_body"),
    /** False while its rows are being written; it is not counted or shown then. */
    isComplete: requiredFlag("is_complete"),
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
    report: requiredInteger(),
    position: requiredInteger(),
    domain: requiredInteger(),
    day: requiredInteger(),
    /** `number` of the source. */
    source: requiredInteger(),
    sourceIp: requiredText("source_ip"),
    count: requiredInteger(),
    disposition: text(),
    /** The aligned results: `pass`, `fail`, or null if not reported. */
    dkim: text(),
    spf: text(),
    isAligned: requiredFlag("is_aligned"),
    isForwarded: requiredFlag("is_forwarded"),
    headerFrom: text("header_from"),
    /** Sort key, worst first: failing, forwarded, aligned; each by number of messages. */
    rank: requiredInteger(),
    /** Envelope, reasons and authentication results, as JSON. */
    body: requiredText(),
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
    domain: requiredInteger(),
    key: requiredText(),
    /** The first and last day in reports. */
    firstDay: requiredInteger("first_day"),
    lastDay: requiredInteger("last_day"),
    firstSeenAtMs: requiredInteger("first_seen_at_ms"),
    /** Whether the alert rules have evaluated it. */
    isReviewed: requiredFlag("is_reviewed").default(false),
    /** Whether a report of voucher 1 contains it; also true for sources older than this column. */
    isVouched: requiredFlag("is_vouched").default(true),
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
  messages: requiredInteger(),
  /** Messages that passed DMARC: aligned DKIM or aligned SPF. */
  aligned: requiredInteger(),
  alignedDkim: requiredInteger("aligned_dkim"),
  alignedSpf: requiredInteger("aligned_spf"),
  /** Not aligned, but forwarded by a host that the receiver knows. */
  forwarded: requiredInteger(),
  /** Not aligned, although DKIM or SPF passed for another domain. */
  authenticated: requiredInteger(),
  quarantined: requiredInteger(),
  rejected: requiredInteger(),
};

/**
 * Who vouches for counts. 0: nobody, their mail is not authenticated as the reporter's. 1: the owner, who handed the reports in, or a
 * reporter of `fixtures/dmarc/reporters.json`. Above: the unknown reporter whose `number` in `dmarc_reporters` is one less. Advice and
 * alerts rely on some of them only, so they are counted separately. Counts from before these distinctions have 1.
 */
const voucher = requiredInteger("is_trusted").default(sql`true`);

/** Messages of a source per day. */
export const dmarcDaily = sqliteTable(
  "dmarc_daily",
  { domain: requiredInteger(), day: requiredInteger(), source: requiredInteger(), ...counts, voucher },
  (table) => [primaryKey({ columns: [table.domain, table.day, table.source, table.voucher] })],
);

/** Messages of a source per week (`day / 7`), kept by triggers of `dmarc_daily`: a migration that creates it again creates them, too. */
export const dmarcWeekly = sqliteTable(
  "dmarc_weekly",
  { domain: requiredInteger(), source: requiredInteger(), voucher, week: requiredInteger(), ...counts },
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
    domain: requiredInteger(),
    day: requiredInteger(),
    /** The name in its reports, in lower case; empty without one. */
    reporter: requiredText(),
    /** The organizational domain of its authenticated mail; `unauthenticated`; empty for uploads. */
    author: requiredText().default(""),
    reports: requiredInteger(),
    messages: requiredInteger(),
    aligned: requiredInteger(),
    voucher,
  },
  (table) => [primaryKey({ columns: [table.domain, table.day, table.reporter, table.author, table.voucher] })],
);

/** Messages per day and header_from domain: the domain or a subdomain; `` for all others. */
export const dmarcDailyNames = sqliteTable(
  "dmarc_daily_names",
  {
    domain: requiredInteger(),
    day: requiredInteger(),
    name: requiredText(),
    messages: requiredInteger(),
    aligned: requiredInteger(),
    voucher,
  },
  (table) => [primaryKey({ columns: [table.domain, table.day, table.name, table.voucher] })],
);

/** Every header_from domain ever seen at or below a domain. */
export const dmarcNames = sqliteTable(
  "dmarc_names",
  {
    domain: requiredInteger(),
    name: requiredText(),
    firstDay: requiredInteger("first_day"),
    firstSeenAtMs: requiredInteger("first_seen_at_ms"),
    isReviewed: requiredFlag("is_reviewed").default(false),
  },
  (table) => [primaryKey({ columns: [table.domain, table.name] })],
);

/** The user's classification of a source, by the key under which it was shown. */
export const dmarcSourceWords = sqliteTable(
  "dmarc_source_words",
  {
    domain: requiredInteger(),
    key: requiredText(),
    classification: text({ enum: ["authorized", "misconfigured", "forwarder", "unknown", "threat"] }).notNull(),
    atMs: requiredInteger("at_ms"),
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
    isConfirmed: requiredFlag("is_confirmed"),
    /** When the name is to be queried (again). */
    dueAtMs: requiredInteger("due_at_ms"),
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
    networkDueAtMs: counter("network_due_at_ms"),
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
  dueAtMs: requiredInteger("due_at_ms"),
});

/** TLS reports (RFC 8460), reduced to their results by policy. */
export const dmarcTlsReports = sqliteTable(
  "dmarc_tls_reports",
  {
    id: text().primaryKey(),
    domain: requiredInteger(),
    ingestion: requiredText(),
    org: text(),
    reportId: text("report_id"),
    beginMs: integer("begin_ms"),
    endMs: integer("end_ms"),
    successfulSessions: requiredInteger("successful_sessions"),
    failedSessions: requiredInteger("failed_sessions"),
    /** The results by policy, as JSON. */
    body: requiredText(),
    sameness: requiredText(),
    /** As that of an aggregate report. */
    voucher: requiredInteger().default(1),
    receivedAtMs: requiredInteger("received_at_ms"),
  },
  (table) => [
    uniqueIndex("dmarc_tls_reports_once").on(table.domain, table.sameness),
    index("dmarc_tls_reports_by_domain").on(table.domain, table.id),
  ],
);
