import type { Db, Tx } from "../../../foundation/db/open.ts";
import type { dmarcFailureReports } from "../../../foundation/db/schema-dmarc.ts";
import { prepareRowInsert, rows, sqlStatements } from "../../../foundation/db/statements.ts";
import {
  countMessages,
  parseRecordBody,
  type RecordBody,
  type Report,
  type ReportBody,
  type TlsReportBody,
} from "../report/report.ts";
import type { ReportRow } from "../report/report-row.ts";
import type { TlsReport } from "../report/tls-report.ts";
import type { RowFacts } from "./rollup.ts";

/** An incomplete report whose rows are being written, under a fingerprint that no other report has. */
export interface StagedReport {
  readonly number: number;
  readonly stagedAs: string;
}

/** A record to be stored. */
export interface NewRecord {
  /** `number` of the report, and the position of the row in it. */
  readonly report: number;
  readonly position: number;
  readonly domain: number;
  readonly day: number;
  readonly row: ReportRow;
  readonly source: number;
  readonly facts: RowFacts;
}

/** A stored report with the same fingerprint. */
export interface SameReport {
  readonly number: number;
  readonly id: string;
  readonly ingestion: string;
  readonly rowsHash: string;
  readonly day: number;
  readonly org: string | null;
  readonly messages: number;
  readonly policy: string;
  /** Who sent a report that is not trusted, as in its fingerprint; empty for a trusted one. */
  readonly author: string;
}

/** A stored record and the source under which it is counted. */
export interface CountedRecord {
  readonly source: number;
  readonly row: ReportRow;
}

interface ReportCopy {
  readonly day: number;
  readonly rowsHash: string;
  readonly author: string;
}

/** The author in the fingerprint of a report that is not trusted; empty for a trusted one. */
export const AUTHOR =
  "CASE instr(r.sameness, ' ') WHEN 0 THEN '' ELSE substr(r.sameness, instr(r.sameness, ' ') + 1) END";

const RECORDS_PER_PAGE = 1_000;

type StoredRecord = Omit<ReportRow, keyof RecordBody> & {
  readonly position: number;
  readonly source: number;
  readonly body: string;
};

const SAME = `SELECT r.number, r.id, r.ingestion, r.content AS rowsHash, r.day, r.org, r.messages, r.policy, ${AUTHOR} AS author
  FROM dmarc_reports r WHERE r.domain = ?`;

const RECORDS = `SELECT position, source, source_ip AS sourceIp, count, disposition, dkim, spf, header_from AS headerFrom, body
  FROM dmarc_records WHERE report = ? AND position > ? ORDER BY position LIMIT ?`;

const INSERT_REPORT = `INSERT INTO dmarc_reports (id, domain, ingestion, org, email, report_id, begin_ms, end_ms, day, received_at_ms,
  policy_domain, policy, body, rows, messages, aligned, sameness, content, voucher, authenticity, authenticity_body, is_complete)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

const RECORD_COLUMNS = [
  "report",
  "position",
  "domain",
  "day",
  "source",
  "source_ip",
  "count",
  "disposition",
  "dkim",
  "spf",
  "is_aligned",
  "is_forwarded",
  "header_from",
  "rank",
  "body",
];

const INSERT_TLS = `INSERT INTO dmarc_tls_reports (id, domain, ingestion, org, report_id, begin_ms, end_ms, successful_sessions,
  failed_sessions, body, sameness, voucher, received_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

/** Prepared once: an import spends its time here. */
const prepareStatements = (db: Pick<Db, "sqlite">) =>
  sqlStatements(db, {
    insertReport: INSERT_REPORT,
    insertRecords: () =>
      prepareRowInsert(db, { into: `dmarc_records (${RECORD_COLUMNS.join(", ")})`, columns: RECORD_COLUMNS.length }),
    insertTls: INSERT_TLS,
    same: rows<SameReport, [number, string]>(`${SAME} AND r.sameness = ?`),
    copy: rows<SameReport, [number, number, string | null, string, number, number, string, string]>(
      `${SAME} AND r.day = ? AND r.org IS ? AND r.is_complete = 1 AND r.content = ? AND r.begin_ms = ? AND r.end_ms = ?
        AND r.policy_domain = ? AND ${AUTHOR} IN (?, '') ORDER BY r.number LIMIT 1`,
    ),
    // Without columns: naming those of a row costs more than looking for one that hardly ever exists.
    hasTwin: rows<unknown, [number, string, string]>(
      "SELECT 1 FROM dmarc_reports WHERE domain = ? AND sameness > ? AND sameness < ? LIMIT 1",
    ),
    twins: rows<SameReport, [number, string, string, number]>(`${SAME} AND r.sameness > ? AND r.sameness < ? LIMIT ?`),
    records: rows<StoredRecord, [number, number, number]>(RECORDS),
    withdraw: "UPDATE dmarc_reports SET is_complete = 0, sameness = 'replaced ' || id WHERE number = ?",
    sameTls: rows<{ id: string; ingestion: string }, [number, string]>(
      "SELECT id, ingestion FROM dmarc_tls_reports WHERE domain = ? AND sameness = ?",
    ),
    isIncomplete: rows<unknown, [number]>("SELECT 1 FROM dmarc_reports WHERE number = ? AND is_complete = 0"),
    isStaged: rows<unknown, [number, string]>(
      "SELECT 1 FROM dmarc_reports WHERE number = ? AND is_complete = 0 AND sameness = ?",
    ),
    complete:
      "UPDATE dmarc_reports SET is_complete = 1, sameness = ?, aligned = ? WHERE number = ? AND is_complete = 0 AND sameness = ?",
    incomplete: rows<{ number: number }, []>("SELECT number FROM dmarc_reports WHERE is_complete = 0 ORDER BY number"),
    removeRecords:
      "DELETE FROM dmarc_records WHERE rowid IN (SELECT rowid FROM dmarc_records WHERE report = ? LIMIT ?)",
    removeReport: "DELETE FROM dmarc_reports WHERE number = ? AND is_complete = 0",
  });

/** Aggregate reports with their records, and TLS reports. `domain` is always the `number` of a domain. */
export class ReportStore {
  readonly #sql;

  constructor(db: Db) {
    this.#sql = prepareStatements(db);
  }

  /** The report of a domain with this fingerprint. */
  findSame(domain: number, fingerprint: string): SameReport | null {
    return this.#sql.same.get(domain, fingerprint);
  }

  /**
   * The report of the same reporter about the same period with the same rows, whatever its id. `author`: of a report that is not
   * trusted; empty for a trusted one, of which only trusted ones are copies.
   */
  findCopy(domain: number, { orgName, beginMs, endMs, policy }: Report, of: ReportCopy): SameReport | null {
    return this.#sql.copy.get(domain, of.day, orgName, of.rowsHash, beginMs, endMs, policy.domain, of.author);
  }

  /** Reports with this fingerprint that are not trusted, from any sender. */
  findUntrustedTwins(domain: number, fingerprint: string, limit: number): SameReport[] {
    const range = [`${fingerprint} `, `${fingerprint}!`] as const;
    return this.#sql.hasTwin.get(domain, ...range) === null ? [] : this.#sql.twins.all(domain, ...range, limit);
  }

  /** Stores a report without its rows and returns its number. Throws when the domain has the fingerprint. */
  insertReport(
    _tx: Tx,
    {
      report,
      ...row
    }: {
      id: string;
      domain: number;
      ingestion: string;
      report: Report;
      day: number;
      receivedAtMs: number;
      fingerprint: string;
      rowsHash: string;
      /** See `ReporterStore`. */
      voucher: number;
      authenticity: "pending" | "pass" | "fail" | "unknown" | null;
      authenticityBody: string | null;
      /** The messages of the report that passed DMARC; null for a report that is incomplete until `complete` is called. */
      aligned: number | null;
    },
  ): number {
    const { orgName, email, reportId, beginMs, endMs, policy, rows } = report;
    const { version, extraContactInfo, generator, errors, notices, skippedRows } = report;
    const body: ReportBody = { version, extraContactInfo, generator, errors, notices, skippedRows };
    const { lastInsertRowid } = this.#sql.insertReport.run(
      ...[row.id, row.domain, row.ingestion, orgName, email, reportId, beginMs, endMs, row.day, row.receivedAtMs],
      ...[policy.domain, JSON.stringify(policy), JSON.stringify(body), rows.length, countMessages(report)],
      ...[row.aligned ?? 0, row.fingerprint, row.rowsHash, row.voucher, row.authenticity, row.authenticityBody],
      row.aligned === null ? 0 : 1,
    );
    return Number(lastInsertRowid);
  }

  insertRecords(_tx: Tx, records: readonly NewRecord[]): void {
    this.#sql.insertRecords(
      records.map(({ report, position, domain, day, row, source, facts }) => {
        const { envelopeFrom, envelopeTo, reasons, dkimResults, spfResults } = row;
        const body: RecordBody = { envelopeFrom, envelopeTo, reasons, dkimResults, spfResults };
        return [
          report,
          position,
          domain,
          day,
          source,
          row.sourceIp,
          row.count,
          row.disposition,
          row.dkim,
          row.spf,
          facts.isAligned ? 1 : 0,
          facts.isForwarded ? 1 : 0,
          row.headerFrom,
          facts.rank,
          JSON.stringify(body),
        ];
      }),
    );
  }

  /**
   * Completes a report that `isStaged`: from now on it counts and is known by its fingerprint. `aligned`: its messages that passed
   * DMARC. False, and nothing changed, when it is not staged.
   */
  complete(
    _tx: Tx,
    { number, stagedAs }: StagedReport,
    { fingerprint, aligned }: { fingerprint: string; aligned: number },
  ): boolean {
    return this.#sql.complete.run(fingerprint, aligned, number, stagedAs).changes > 0;
  }

  /** Whether an incomplete report still has all rows that were written. False once its removal began, here or in another process. */
  isStaged({ number, stagedAs }: StagedReport): boolean {
    return this.#sql.isStaged.get(number, stagedAs) !== null;
  }

  /** Whether there is such a report and it has to be completed or removed. */
  isIncomplete(number: number): boolean {
    return this.#sql.isIncomplete.get(number) !== null;
  }

  /** Numbers of the reports that are being written or removed, or were when the service ended. */
  incomplete(): number[] {
    return this.#sql.incomplete.all().map(({ number }) => number);
  }

  /** Makes a complete report incomplete and gives its fingerprint free. It has to be removed then. */
  withdraw(_tx: Tx, number: number): void {
    this.#sql.withdraw.run(number);
  }

  /**
   * Removes up to `limit` records of an incomplete report, then the report; true when it is deleted. From the first step on it
   * cannot be completed.
   */
  removeIncomplete(tx: Tx, number: number, limit: number): boolean {
    if (!this.isIncomplete(number)) return true;
    this.withdraw(tx, number);
    if (this.#sql.removeRecords.run(number, limit).changes >= limit) return false;
    this.#sql.removeReport.run(number);
    return true;
  }

  /** All records of a report in their order, read in pages. */
  *records(number: number): Generator<CountedRecord> {
    for (let after = -1; ;) {
      const page = this.#sql.records.all(number, after, RECORDS_PER_PAGE);
      const last = page.at(-1);
      if (last === undefined) return;
      after = last.position;
      for (const { source, body, position: _, ...row } of page) {
        yield { source, row: { ...row, ...parseRecordBody(body) } };
      }
    }
  }

  findSameTls(domain: number, fingerprint: string): { readonly id: string; readonly ingestion: string } | null {
    return this.#sql.sameTls.get(domain, fingerprint);
  }

  insertTls(
    _tx: Tx,
    {
      id,
      domain,
      ingestion,
      report,
      fingerprint,
      voucher,
      receivedAtMs,
    }: {
      id: string;
      domain: number;
      ingestion: string;
      /** With the policies of that domain only. */
      report: TlsReport;
      fingerprint: string;
      voucher: number;
      receivedAtMs: number;
    },
  ): void {
    const { orgName, reportId, contact, beginMs, endMs, policies } = report;
    const successful = policies.reduce((sum, { successfulSessions }) => sum + successfulSessions, 0);
    const failed = policies.reduce((sum, { failedSessions }) => sum + failedSessions, 0);
    const body: TlsReportBody = { contact, policies };
    this.#sql.insertTls.run(
      ...[id, domain, ingestion, orgName, reportId, beginMs, endMs],
      ...[successful, failed, JSON.stringify(body), fingerprint, voucher, receivedAtMs],
    );
  }
}

/** A stored failure report. `body` is the JSON of a `FailureReport`. */
export type FailureReportRow = Readonly<Omit<typeof dmarcFailureReports.$inferSelect, "sameness">> & {
  readonly fingerprint: string;
};

type StoredRow = Omit<FailureReportRow, "isRedacted"> & { readonly isRedacted: 0 | 1 };

const SELECT = `SELECT id, domain, ingestion, received_at_ms AS receivedAtMs, is_redacted AS isRedacted, body, sameness AS fingerprint
  FROM dmarc_failure_reports`;
/** Greater than every id. */
const AFTER_ALL_IDS = "~";

const FAILURE_STATEMENTS = {
  insert: `INSERT INTO dmarc_failure_reports (id, domain, ingestion, received_at_ms, is_redacted, body, sameness)
      VALUES ($id, $domain, $ingestion, $receivedAtMs, $isRedacted, $body, $fingerprint)`,
  same: rows<{ id: string; ingestion: string }, [number, string]>(
    "SELECT id, ingestion FROM dmarc_failure_reports WHERE domain = ? AND sameness = ?",
  ),
  count: rows<{ count: number }, [number, number, number]>(
    "SELECT count(*) AS count FROM dmarc_failure_reports WHERE domain = ? AND received_at_ms >= ? AND received_at_ms < ?",
  ),
  page: rows<StoredRow, [number, string, number]>(`${SELECT} WHERE domain = ? AND id < ? ORDER BY id DESC LIMIT ?`),
  byId: rows<StoredRow, [number, string]>(`${SELECT} WHERE domain = ? AND id = ?`),
};

const rowOf = ({ isRedacted, ...row }: StoredRow): FailureReportRow => ({ ...row, isRedacted: isRedacted === 1 });

/** Failure reports of domains that store them. `domain` is always the `number` of a domain. */
export class FailureReportStore {
  readonly #sql;

  constructor(db: Db) {
    this.#sql = sqlStatements(db, FAILURE_STATEMENTS);
  }

  /** Throws when the domain has the same report. */
  insert(_tx: Tx, row: FailureReportRow): void {
    this.#sql.insert.run(row);
  }

  findSameFailure(domain: number, fingerprint: string): { readonly id: string; readonly ingestion: string } | null {
    return this.#sql.same.get(domain, fingerprint);
  }

  /** How many arrived in a span of time, its end excluded. */
  countBetween(domain: number, fromMs: number, toMs: number): number {
    return this.#sql.count.get(domain, fromMs, toMs)?.count ?? 0;
  }

  /** Newest first, older than the id `before`. */
  listFailures(domain: number, page: { before: string | null; limit: number }): FailureReportRow[] {
    return this.#sql.page.all(domain, page.before ?? AFTER_ALL_IDS, page.limit).map(rowOf);
  }

  findFailure(domain: number, id: string): FailureReportRow | undefined {
    const row = this.#sql.byId.get(domain, id);
    return row === null ? undefined : rowOf(row);
  }
}
