import { RawStore } from "../../reports/ingest/raw-store.ts";
import { DAY_MS, type DayRange } from "../../../foundation/base/days.ts";
import type { Db } from "../../../foundation/db/open.ts";
import type { DomainOwner } from "../../records/domains/domain-store.ts";
import { AUTHOR } from "../../reports/ingest/report-store.ts";
import { statements } from "../../../foundation/db/statements.ts";

/** A complete report as it is stored. `policy`, `body` and `authenticityBody` are JSON. */
export interface ReportRowStored {
  readonly number: number;
  readonly id: string;
  readonly ingestion: string;
  readonly org: string | null;
  readonly email: string | null;
  readonly reportId: string | null;
  readonly beginMs: number;
  readonly endMs: number;
  readonly day: number;
  readonly receivedAtMs: number;
  readonly policyDomain: string;
  readonly policy: string;
  readonly body: string;
  readonly rows: number;
  readonly messages: number;
  readonly aligned: number;
  readonly authenticity: "pending" | "pass" | "fail" | "unknown" | null;
  readonly authenticityBody: string | null;
  /** Of an untrusted report: the domain that authenticated its mail, or `UNAUTHENTICATED`; empty for trusted ones. */
  readonly author: string;
  /** Whether the mail or file that brought it is still stored. */
  readonly hasRaw: 0 | 1;
}

/** What filters of a list need to know about a report. */
export type ReportFacts = Pick<ReportRowStored, "number" | "day" | "org" | "authenticity" | "author">;

/** The position of a report in a list: the greatest key comes first. */
export interface ReportKey {
  readonly day: number;
  readonly number: number;
}

/** The reports of a domain (by its number) about a day and later ones. */
interface ReportScope {
  readonly domain: number;
  readonly fromDay: number;
}

/** The filters that each report must pass. */
export interface ReportFilters {
  /** The name of the reporter, or the domain that authenticated its mail; lower case. */
  readonly reporter?: string | undefined;
  readonly authenticity?: NonNullable<ReportRowStored["authenticity"]> | undefined;
  readonly trusted?: boolean | undefined;
}

type Parameters = [Readonly<Record<string, string | number | null>>];

/** A TLS report as it is stored. `body` is the JSON of its contact and policies. */
export interface TlsReportRow {
  readonly id: string;
  readonly ingestion: string;
  readonly org: string | null;
  readonly reportId: string | null;
  readonly beginMs: number | null;
  readonly endMs: number | null;
  readonly successfulSessions: number;
  readonly failedSessions: number;
  readonly body: string;
  readonly receivedAtMs: number;
}

/** The mail or file that brought a report. */
export interface RawRow {
  readonly name: string | null;
  readonly via: "smtp" | "http" | "import" | "imap";
  readonly bytes: Uint8Array;
}

/** A complete report whose records are exported. */
export interface ExportedReport {
  readonly number: number;
  readonly domainNumber: number;
  readonly domainId: string;
  /** JSON. */
  readonly sourceRules: string;
  /** JSON; null before the first DNS check. */
  readonly state: string | null;
  readonly domain: string;
}

const REPORT = `SELECT r.number, r.id, r.ingestion, r.org, r.email, r.report_id reportId, r.begin_ms beginMs, r.end_ms endMs, r.day,
  r.received_at_ms receivedAtMs, r.policy_domain policyDomain, r.policy, r.body, r.rows, r.messages, r.aligned, r.authenticity,
  r.authenticity_body authenticityBody, ${AUTHOR} author, EXISTS (SELECT 1 FROM dmarc_raw w WHERE w.ingestion = r.ingestion) hasRaw
  FROM dmarc_reports r`;
const REPORTS = `${REPORT} WHERE r.domain = ? AND r.is_complete = 1 AND r.day >= ? AND (r.day, r.number) < (?, ?)
  ORDER BY r.day DESC, r.number DESC LIMIT ?`;
const NEWEST_FIRST = "ORDER BY r.day DESC, r.number DESC";
// SQLite cannot fold the case of names beyond ASCII: they all match here.
const REPORTER = `($reporter IS NULL OR lower(coalesce(r.org, '')) = $reporter OR r.org GLOB '*[^ -~]*' OR ${AUTHOR} = $reporter)`;
/** Reads reports by an index that has all or nearly all of what they are filtered by. */
const listing = (from: string) => {
  const listed = `FROM dmarc_reports r ${from} AND r.domain = $domain AND r.is_complete = 1 AND (r.day, r.number) < ($day, $number)`;
  return {
    keyAt: `SELECT r.day, r.number ${listed} AND r.day >= $fromDay ${NEWEST_FIRST} LIMIT 1 OFFSET $skipped`,
    // SQLite ends a search at one condition only: with a second one about the day it would read on to the first day.
    matching: `SELECT r.number, r.day, r.org, r.authenticity, ${AUTHOR} author ${listed} AND (r.day, r.number) >= ($endDay, $endNumber)
      AND ($trusted IS NULL OR (instr(r.sameness, ' ') = 0) = $trusted) AND ${REPORTER} ${NEWEST_FIRST} LIMIT $limit`,
  };
};
const ALL = listing("INDEXED BY dmarc_reports_by_day WHERE ($authenticity IS NULL OR r.authenticity = $authenticity)");
const DOUBTFUL = listing(
  "INDEXED BY dmarc_reports_doubtful WHERE r.authenticity <> 'pass' AND r.authenticity = $authenticity",
);
/** The days on which reports may pass a filter, from the few rows of reporters. */
const DAYS_OF_REPORTERS = `SELECT min(day) fromDay, max(day) toDay FROM dmarc_daily_reporters WHERE domain = $domain
  AND day BETWEEN $fromDay AND $toDay AND ($trusted IS NULL OR is_trusted = $trusted)
  AND ($reporter IS NULL OR reporter = $reporter OR author = $reporter)`;
const ORIGIN = "SELECT name, via FROM dmarc_ingestions WHERE id = ?";
/** A time in the day that a TLS report is about: see `dayOfTlsReport`. */
const TLS_DAY_MS =
  "iif(begin_ms IS NULL, received_at_ms, min((begin_ms + coalesce(end_ms, begin_ms)) / 2, received_at_ms))";
const TLS_REPORTS = `SELECT id, ingestion, org, report_id reportId, begin_ms beginMs, end_ms endMs,
  successful_sessions successfulSessions, failed_sessions failedSessions, body, received_at_ms receivedAtMs
  FROM dmarc_tls_reports WHERE domain = ? AND id < ? AND ${TLS_DAY_MS} BETWEEN ? AND ? ORDER BY id DESC LIMIT ?`;
const EXPORTED_REPORTS = `SELECT r.number, d.number domainNumber, d.id domainId, d.domain, d.source_rules sourceRules, d.state FROM dmarc_reports r
  CROSS JOIN dmarc_domains d ON d.number = r.domain AND d.account_id = ? AND d.mode = ? AND d.deleted_at_ms IS NULL
  WHERE r.number >= ? AND r.number <= ? AND r.day BETWEEN ? AND ? AND r.is_complete = 1 ORDER BY r.number`;
const LAST_EXPORTABLE = `SELECT min(coalesce((SELECT max(number) FROM dmarc_reports), 0),
  coalesce((SELECT min(number) - 1 FROM dmarc_reports WHERE is_complete = 0 AND number > ?), ${Number.MAX_SAFE_INTEGER})) number`;
/** Sorts after every id. */
const LAST_ID = "~";

/** Reads aggregate and TLS reports as they were received. Reports that are still being written are absent. */
export class ReportQueryStore {
  readonly #raw: RawStore;
  readonly #sql;
  readonly #all;
  readonly #doubtful;

  constructor(db: Db) {
    const { sqlite } = db;
    this.#raw = new RawStore(db);
    const prepare = ({ keyAt, matching }: typeof ALL) =>
      statements({
        keyAt: () => sqlite.prepare<ReportKey, Parameters>(keyAt),
        matching: () => sqlite.prepare<ReportFacts, Parameters>(matching),
      });
    this.#all = prepare(ALL);
    this.#doubtful = prepare(DOUBTFUL);
    this.#sql = statements({
      reports: () => sqlite.prepare<ReportRowStored, [number, number, number, number, number]>(REPORTS),
      daysOfReporters: () => sqlite.prepare<DayRange | Record<keyof DayRange, null>, Parameters>(DAYS_OF_REPORTERS),
      byNumber: () => sqlite.prepare<ReportRowStored, [number]>(`${REPORT} WHERE r.number = ?`),
      byId: () =>
        sqlite.prepare<ReportRowStored, [string, number]>(
          `${REPORT} WHERE r.id = ? AND r.domain = ? AND r.is_complete = 1`,
        ),
      origin: () => sqlite.prepare<Pick<RawRow, "name" | "via">, [string]>(ORIGIN),
      tlsReports: () => sqlite.prepare<TlsReportRow, [number, string, number, number, number]>(TLS_REPORTS),
      exportedReports: () =>
        sqlite.prepare<ExportedReport, [string, string, number, number, number, number]>(EXPORTED_REPORTS),
      lastExportable: () => sqlite.prepare<{ number: number }, [number]>(LAST_EXPORTABLE),
    });
  }

  /** The reports after the key `before`, the newest day first, down to `fromDay`. */
  reports(domain: number, fromDay: number, before: ReportKey, limit: number): ReportRowStored[] {
    return this.#sql.reports.all(domain, fromDay, before.day, before.number, limit);
  }

  /** The part of a range in which reports may pass filters; undefined when none does. */
  daysOf(domain: number, range: DayRange, { reporter, trusted }: ReportFilters): DayRange | undefined {
    const conditions = { reporter: reporter ?? null, trusted: trusted === undefined ? null : Number(trusted) };
    const days = this.#sql.daysOfReporters.get({ domain, ...range, ...conditions });
    return days === null || days.fromDay === null ? undefined : days;
  }

  /** The key of the report that is the `count`th after `before`; undefined when there are fewer. */
  keyAt(
    { domain, fromDay }: ReportScope,
    before: ReportKey,
    filters: ReportFilters,
    count: number,
  ): ReportKey | undefined {
    const authenticity = filters.authenticity ?? null;
    const { keyAt } = this.#listingOf(authenticity);
    return keyAt.get({ domain, fromDay, ...before, authenticity, skipped: count - 1 }) ?? undefined;
  }

  /** What filters need of the reports after `before` down to `end` that may pass them; nearly all do. */
  matching(
    { domain, fromDay }: ReportScope,
    { before, end }: { readonly before: ReportKey; readonly end: ReportKey | undefined },
    filters: ReportFilters,
    limit: number,
  ): ReportFacts[] {
    const authenticity = filters.authenticity ?? null;
    const trusted = filters.trusted === undefined ? null : Number(filters.trusted);
    return this.#listingOf(authenticity).matching.all({
      domain,
      ...before,
      endDay: end?.day ?? fromDay,
      endNumber: end?.number ?? 0,
      reporter: filters.reporter ?? null,
      authenticity,
      trusted,
      limit,
    });
  }

  #listingOf(authenticity: ReportRowStored["authenticity"]) {
    return authenticity === null || authenticity === "pass" ? this.#all : this.#doubtful;
  }

  findByNumber(number: number): ReportRowStored | undefined {
    return this.#sql.byNumber.get(number) ?? undefined;
  }

  find(domain: number, id: string): ReportRowStored | undefined {
    return this.#sql.byId.get(id, domain) ?? undefined;
  }

  /** The mail or file that brought a report; undefined when it is no longer stored. */
  async findRaw(ingestion: string): Promise<RawRow | undefined> {
    const origin = this.#sql.origin.get(ingestion);
    const bytes = await this.#raw.find(ingestion);
    return origin === null || bytes === undefined ? undefined : { ...origin, bytes };
  }

  /** Newest first, older than the id `before`, about a range of days; null for all. */
  tlsReports(domain: number, before: string | null, limit: number, range: DayRange | null): TlsReportRow[] {
    const fromMs = range === null ? Number.MIN_SAFE_INTEGER : range.fromDay * DAY_MS;
    const toMs = range === null ? Number.MAX_SAFE_INTEGER : (range.toDay + 1) * DAY_MS - 1;
    return this.#sql.tlsReports.all(domain, before ?? LAST_ID, fromMs, toMs, limit);
  }

  /** The reports of all domains of an owner between two numbers (inclusive), in the order in which they were stored. */
  exportedReports(
    { accountId, mode }: DomainOwner,
    numbers: { readonly from: number; readonly to: number },
    { fromDay, toDay }: DayRange,
  ): ExportedReport[] {
    return this.#sql.exportedReports.all(accountId, mode, numbers.from, numbers.to, fromDay, toDay);
  }

  /** The last number that can be exported now. A cursor must not pass a report that is still being written. */
  lastExportable(after: number): number {
    return this.#sql.lastExportable.get(after)?.number ?? 0;
  }
}
