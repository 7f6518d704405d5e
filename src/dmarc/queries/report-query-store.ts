import type { Db } from "../../db/open.ts";
import { AUTHOR } from "../ingest/report-store.ts";

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
  /** Who sent one that is not trusted: the domain that its mail is authenticated as, or `UNAUTHENTICATED`; empty for others. */
  readonly author: string;
  /** Whether the bytes that brought it are still kept. */
  readonly hasRaw: 0 | 1;
}

/** The place of a report in the order of reading: the greatest comes first. */
export interface ReportKey {
  readonly day: number;
  readonly number: number;
}

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

/** What brought a report, as it came. */
export interface RawRow {
  readonly name: string | null;
  readonly via: "smtp" | "http" | "import" | "imap";
  readonly bytes: Uint8Array;
}

const REPORT = `SELECT r.number, r.id, r.ingestion, r.org, r.email, r.report_id reportId, r.begin_ms beginMs, r.end_ms endMs, r.day,
  r.received_at_ms receivedAtMs, r.policy_domain policyDomain, r.policy, r.body, r.rows, r.messages, r.aligned, r.authenticity,
  r.authenticity_body authenticityBody, ${AUTHOR} author, EXISTS (SELECT 1 FROM dmarc_raw w WHERE w.ingestion = r.ingestion) hasRaw
  FROM dmarc_reports r`;

/** Reads reports as they came. What is still being written is not there. */
export const createReportQueryStore = ({ sqlite }: Pick<Db, "sqlite">) => {
  const behind = sqlite.prepare<ReportRowStored, [number, number, number, number, number]>(
    `${REPORT} WHERE r.domain = ? AND r.is_complete = 1 AND r.day >= ? AND (r.day, r.number) < (?, ?)
      ORDER BY r.day DESC, r.number DESC LIMIT ?`,
  );
  const byId = sqlite.prepare<ReportRowStored, [string, number]>(
    `${REPORT} WHERE r.id = ? AND r.domain = ? AND r.is_complete = 1`,
  );
  const raw = sqlite.prepare<RawRow, [string]>(
    `SELECT i.name, i.via, w.bytes FROM dmarc_raw w JOIN dmarc_ingestions i ON i.id = w.ingestion WHERE w.ingestion = ?`,
  );
  const tls = sqlite.prepare<TlsReportRow, [number, string, number]>(
    `SELECT id, ingestion, org, report_id reportId, begin_ms beginMs, end_ms endMs, successful_sessions successfulSessions,
      failed_sessions failedSessions, body, received_at_ms receivedAtMs
      FROM dmarc_tls_reports WHERE domain = ? AND id < ? ORDER BY id DESC LIMIT ?`,
  );

  return {
    /** The reports behind `before`, the newest day first, down to `fromDay`. */
    reportsBehind: (domain: number, fromDay: number, before: ReportKey, limit: number): ReportRowStored[] =>
      behind.all(domain, fromDay, before.day, before.number, limit),
    /** A report of a domain by its id. */
    find: (domain: number, id: string): ReportRowStored | undefined => byId.get(id, domain) ?? undefined,
    /** What brought a report; undefined when it is no longer kept. */
    findRaw: (ingestion: string): RawRow | undefined => raw.get(ingestion) ?? undefined,
    /** Newest first, older than the id `before`. */
    tlsReports: (domain: number, before: string | null, limit: number): TlsReportRow[] =>
      tls.all(domain, before ?? LAST_ID, limit),
  };
};

export type ReportQueryStore = ReturnType<typeof createReportQueryStore>;

/** Behind every id. */
const LAST_ID = "~";
