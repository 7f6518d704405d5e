import type { Db, Tx } from "../../db/open.ts";
import type { Report } from "../report/report.ts";
import type { ReportRow } from "../report/report-row.ts";
import { createFailureReportStore } from "./failure-report-store.ts";
import type { CountedRow } from "./rollup.ts";
import type { TlsReport } from "../report/tls-report.ts";

/** What the column `body` of a report holds, as JSON. */
export type ReportBody = Pick<
  Report,
  "version" | "extraContactInfo" | "generator" | "errors" | "notices" | "skippedRows"
>;

/** What the column `body` of a record holds, as JSON. */
export type RecordBody = Pick<ReportRow, "envelopeFrom" | "envelopeTo" | "reasons" | "dkimResults" | "spfResults">;

/** Reads what `insertRecord` wrote. */
export const readRecordBody = (body: string): RecordBody => JSON.parse(body) as RecordBody;

/** A report to be stored. */
export interface NewReport {
  readonly id: string;
  readonly domain: number;
  readonly ingestion: string;
  readonly report: Report;
  readonly day: number;
  readonly receivedAtMs: number;
  readonly messages: number;
  readonly aligned: number;
  readonly sameness: string;
  readonly content: string;
  readonly authenticity: "pending" | "pass" | "fail" | "unknown" | null;
  readonly authenticityBody: string | null;
  readonly isComplete: boolean;
}

/** A record to be stored. */
export interface NewRecord {
  /** `number` of the report, and the row's place in it. */
  readonly report: number;
  readonly position: number;
  readonly domain: number;
  readonly day: number;
  readonly row: ReportRow;
  readonly counted: Pick<CountedRow, "source" | "facts">;
}

export interface NewTlsReport {
  readonly id: string;
  readonly domain: number;
  readonly ingestion: string;
  /** With the policies of that domain only. */
  readonly report: TlsReport;
  readonly sameness: string;
  readonly receivedAtMs: number;
}

/** The report that is there already. */
export interface SameReport {
  readonly number: number;
  readonly id: string;
  readonly ingestion: string;
  readonly content: string;
  readonly day: number;
  readonly rows: number;
  readonly authenticity: NewReport["authenticity"];
  /** Who sent one that is not trusted, as in its sameness; empty for others. */
  readonly author: string;
  /** How it came; null when its ingestion is no longer on the list. */
  readonly via: "smtp" | "http" | "import" | "imap" | null;
}

/** A complete report as far as taking it back needs to know it. */
export interface CountedReport {
  readonly org: string | null;
  readonly policy: Report["policy"];
}

/** A record with the source that it was counted for. */
export interface CountedRecord {
  readonly source: number;
  readonly row: ReportRow;
}

const RECORDS = `SELECT position, source, source_ip AS sourceIp, count, disposition, dkim, spf, header_from AS headerFrom, body
  FROM dmarc_records WHERE report = ? AND position > ? ORDER BY position LIMIT ?`;

const INSERT_REPORT = `INSERT INTO dmarc_reports (id, domain, ingestion, org, email, report_id, begin_ms, end_ms, day, received_at_ms,
  policy_domain, policy, body, rows, messages, aligned, sameness, content, authenticity, authenticity_body, is_complete)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

const INSERT_RECORD = `INSERT INTO dmarc_records (report, position, domain, day, source, source_ip, count, disposition, dkim, spf,
  is_aligned, is_forwarded, header_from, rank, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

const INSERT_TLS = `INSERT INTO dmarc_tls_reports (id, domain, ingestion, org, report_id, begin_ms, end_ms, successful_sessions,
  failed_sessions, body, sameness, received_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

const RECORDS_AT_ONCE = 1_000;

/** The author in the sameness of a report that is not trusted; empty for others. */
export const AUTHOR =
  "CASE instr(r.sameness, ' ') WHEN 0 THEN '' ELSE substr(r.sameness, instr(r.sameness, ' ') + 1) END";

interface StoredRecord {
  readonly position: number;
  readonly source: number;
  readonly body: string;
}

/** Reports and their records. Statements are prepared once: this is where an import spends its time. */
export const createReportStore = ({ sqlite }: Db) => {
  const failures = createFailureReportStore({ sqlite });
  const insertReport = sqlite.prepare(INSERT_REPORT);
  const insertRecord = sqlite.prepare(INSERT_RECORD);
  const insertTls = sqlite.prepare(INSERT_TLS);
  const same = sqlite.prepare<SameReport, [number, string]>(
    `SELECT r.number, r.id, r.ingestion, r.content, r.day, r.rows, r.authenticity, i.via, ${AUTHOR} author FROM dmarc_reports r
      LEFT JOIN dmarc_ingestions i ON i.id = r.ingestion WHERE r.domain = ? AND r.sameness = ?`,
  );
  const twins = sqlite.prepare<SameReport, [number, string, string, number]>(
    `SELECT r.number, r.id, r.ingestion, r.content, r.day, r.rows, r.authenticity, i.via, ${AUTHOR} author FROM dmarc_reports r
      LEFT JOIN dmarc_ingestions i ON i.id = r.ingestion WHERE r.domain = ? AND r.sameness > ? AND r.sameness < ? LIMIT ?`,
  );
  const counted = sqlite.prepare<{ org: string | null; policy: string }, [number]>(
    "SELECT org, policy FROM dmarc_reports WHERE number = ? AND is_complete = 1",
  );
  const records = sqlite.prepare<Omit<ReportRow, keyof RecordBody> & StoredRecord, [number, number, number]>(RECORDS);
  const takeBack = sqlite.prepare(
    "UPDATE dmarc_reports SET is_complete = 0, sameness = 'replaced ' || id WHERE number = ? AND is_complete = 1",
  );
  const sameTls = sqlite.prepare<{ id: string; ingestion: string }, [number, string]>(
    "SELECT id, ingestion FROM dmarc_tls_reports WHERE domain = ? AND sameness = ?",
  );
  const isIncomplete = sqlite.prepare<unknown, [number]>(
    "SELECT 1 FROM dmarc_reports WHERE number = ? AND is_complete = 0",
  );
  const complete = sqlite.prepare(
    "UPDATE dmarc_reports SET is_complete = 1, sameness = ?, aligned = ? WHERE number = ?",
  );
  const incomplete = sqlite.prepare<{ number: number }, []>(
    "SELECT number FROM dmarc_reports WHERE is_complete = 0 ORDER BY number",
  );
  const removeRecords = sqlite.prepare(
    "DELETE FROM dmarc_records WHERE rowid IN (SELECT rowid FROM dmarc_records WHERE report = ? LIMIT ?)",
  );
  const removeReport = sqlite.prepare("DELETE FROM dmarc_reports WHERE number = ? AND is_complete = 0");

  return {
    /** Failure reports, for domains that want them. */
    failures,
    /** The complete report of a domain that is the same one. */
    findSame: (domain: number, sameness: string): SameReport | null => same.get(domain, sameness),
    /** Stores a report without its rows, and answers its number. Throws when the same one is there. */
    insertReport(_tx: Tx, { report, ...row }: NewReport): number {
      const { orgName, email, reportId, beginMs, endMs, policy, rows } = report;
      const { version, extraContactInfo, generator, errors, notices, skippedRows } = report;
      const body: ReportBody = { version, extraContactInfo, generator, errors, notices, skippedRows };
      const { lastInsertRowid } = insertReport.run(
        row.id,
        row.domain,
        row.ingestion,
        orgName,
        email,
        reportId,
        beginMs,
        endMs,
        row.day,
        row.receivedAtMs,
        policy.domain,
        JSON.stringify(policy),
        JSON.stringify(body),
        rows.length,
        row.messages,
        row.aligned,
        row.sameness,
        row.content,
        row.authenticity,
        row.authenticityBody,
        row.isComplete ? 1 : 0,
      );
      return Number(lastInsertRowid);
    },
    insertRecord(_tx: Tx, { report, position, domain, day, row, counted }: NewRecord): void {
      const { envelopeFrom, envelopeTo, reasons, dkimResults, spfResults } = row;
      const body: RecordBody = { envelopeFrom, envelopeTo, reasons, dkimResults, spfResults };
      insertRecord.run(
        report,
        position,
        domain,
        day,
        counted.source,
        row.sourceIp,
        row.count,
        row.disposition,
        row.dkim,
        row.spf,
        counted.facts.isAligned ? 1 : 0,
        counted.facts.isForwarded ? 1 : 0,
        row.headerFrom,
        counted.facts.rank,
        JSON.stringify(body),
      );
    },

    /** Reports of other authors under the same name: those that are not trusted. */
    findTwins: (domain: number, sameness: string, limit: number): SameReport[] =>
      twins.all(domain, `${sameness} `, `${sameness}!`, limit),
    /** Whether a report is still being written; false also when it is gone. */
    isIncomplete: (number: number): boolean => isIncomplete.get(number) !== null,
    /** Makes a report count, from now on known by its own sameness. */
    complete: (_tx: Tx, number: number, told: Pick<NewReport, "sameness" | "aligned">): void =>
      void complete.run(told.sameness, told.aligned, number),
    /** The complete report of a number; null when it is gone. */
    findCounted(number: number): CountedReport | null {
      const found = counted.get(number);
      return found === null ? null : { org: found.org, policy: JSON.parse(found.policy) as Report["policy"] };
    },
    /** All records of a report, in their order, read in pages. */
    *records(number: number): Generator<CountedRecord> {
      for (let after = -1; ;) {
        const page = records.all(number, after, RECORDS_AT_ONCE);
        const last = page.at(-1);
        if (last === undefined) return;
        after = last.position;
        for (const { source, body, position: _, ...row } of page) {
          yield { source, row: { ...row, ...(JSON.parse(body) as RecordBody) } };
        }
      }
    },
    /** Makes a report that counted one that does not, and is the same as no other: to be removed as such. */
    takeBack: (_tx: Tx, number: number): void => void takeBack.run(number),
    /** Numbers of the reports that are being written, or were when the service ended. */
    incomplete: (): number[] => incomplete.all().map(({ number }) => number),
    /** Removes some records of a report that is not complete, then the report; true when it is gone. */
    removeIncomplete(_tx: Tx, number: number, limit: number): boolean {
      if (isIncomplete.get(number) === null) return true;
      if (removeRecords.run(number, limit).changes >= limit) return false;
      removeReport.run(number);
      return true;
    },

    findSameTls: (domain: number, sameness: string) => sameTls.get(domain, sameness),
    insertTls(_tx: Tx, { id, domain, ingestion, report, sameness, receivedAtMs }: NewTlsReport): void {
      const { orgName, reportId, contact, beginMs, endMs, policies } = report;
      const successful = policies.reduce((sum, { successfulSessions }) => sum + successfulSessions, 0);
      const failed = policies.reduce((sum, { failedSessions }) => sum + failedSessions, 0);
      const sessions = [successful, failed, JSON.stringify({ contact, policies })];
      insertTls.run(id, domain, ingestion, orgName, reportId, beginMs, endMs, ...sessions, sameness, receivedAtMs);
    },
  };
};

export type ReportStore = ReturnType<typeof createReportStore>;
