import { AppError } from "../../../foundation/base/errors.ts";
import type { Cell } from "../../../foundation/http/csv.ts";
import type { Caller } from "../../../foundation/http/guard.ts";
import type { DayRange } from "../../../foundation/base/days.ts";
import { rangeOf, exportFileName, type QueryContext } from "./domain-query.ts";
import { DomainSources } from "../sources/domain-sources.ts";
import { exportRecords, readRecords } from "./records.ts";
import type { RawRow, ReportFilters, ReportRowStored, TlsReportRow } from "./report-query-store.ts";
import {
  type ShownReport,
  type ShownReportDetail,
  rawFileName,
  readReports,
  reportDetailView,
  type ReportPage,
} from "./reports.ts";
import { sumTlsReports, type TlsSummary, TLS_REPORTS_SUMMED_MAX } from "./tls-summary.ts";

/** Which reports to list. Days are UTC days since 1970. */
export interface ReportListQuery extends ReportFilters {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** What reports are read from. */
export type ReportContext = Pick<QueryContext, "clock" | "rollups" | "records" | "reports" | "findDomain">;

/** A report with a page of its records; `next` continues it. */
export interface ReportWithRecords {
  readonly report: Omit<ShownReportDetail, "records_next_cursor">;
  readonly next: string | null;
}

interface PageOf {
  readonly after: string | null;
  readonly limit: number;
}

const EXPORTED_AT_ONCE = 500;

/** The columns of the CSV export of reports. */
export const REPORT_COLUMNS = [
  "id",
  "date",
  "begin",
  "end",
  "received_at",
  "reporter",
  "claimed_name",
  "trusted",
  "authentication",
  "report_id",
  "policy_domain",
  "rows",
  "messages",
  "aligned",
] as const;

/** Reads the aggregate and TLS reports of the caller's domains. Everything throws `not_found` for a domain of another account. */
export class ReportReader {
  constructor(private readonly context: ReportContext) {}

  /** The newest day first; `next` is not encoded. */
  async list(caller: Caller, id: string, query: ReportListQuery, page: PageOf): Promise<ReportPage> {
    const domain = this.context.findDomain(caller, id).number;
    const { from, to, ...filters } = query;
    return readReports(this.context.reports, { domain, range: this.range({ from, to }), filters }, page);
  }

  /** The days of a query; by default the last 30. Throws `Invalid query`. */
  range(days: Pick<ReportListQuery, "from" | "to">): DayRange {
    return rangeOf(days, this.context.clock.nowMs());
  }

  /** All reports of a query as rows of CSV. */
  async *rows(caller: Caller, id: string, query: ReportListQuery): AsyncGenerator<Cell[][], void> {
    for (let after: string | null = null; ;) {
      const { reports, next } = await this.list(caller, id, query, { after, limit: EXPORTED_AT_ONCE });
      yield reports.map(cellsOf);
      if (next === null) return;
      after = next;
    }
  }

  /** A report with a page of its records, failing ones first; `next` is not encoded. Throws `not_found`. */
  async detail(caller: Caller, id: string, reportId: string, page: PageOf): Promise<ReportWithRecords> {
    const { rollups, records, findDomain } = this.context;
    const domain = findDomain(caller, id);
    const report = this.#find(domain.number, reportId);
    const range = { fromDay: report.day, toDay: report.day };
    const names = new DomainSources(rollups, domain).names(range);
    const query = { scope: { report: report.number }, range, filters: {}, names };
    const read = await readRecords(records, query, page);
    return { report: reportDetailView(report, read.records), next: read.next };
  }

  /** All records of a report as rows of CSV, with a name for the file. Throws `not_found`. */
  recordRows(caller: Caller, id: string, reportId: string) {
    const { rollups, records, findDomain } = this.context;
    const domain = findDomain(caller, id);
    const { number, day } = this.#find(domain.number, reportId);
    const range = { fromDay: day, toDay: day };
    const names = new DomainSources(rollups, domain).names(range);
    const query = { scope: { report: number }, range, filters: {}, names };
    return { fileName: exportFileName("report", domain, range, "csv"), batches: exportRecords(records, query, null) };
  }

  /** The mail or file that brought a report, and a name for the file. Throws `not_found`, also when it is no longer stored. */
  raw(caller: Caller, id: string, reportId: string): { readonly bytes: RawRow["bytes"]; readonly fileName: string } {
    const { reports, findDomain } = this.context;
    const { ingestion } = this.#find(findDomain(caller, id).number, reportId);
    const raw = reports.findRaw(ingestion);
    if (raw !== undefined) return { bytes: raw.bytes, fileName: rawFileName(raw, ingestion) };
    throw new AppError("not_found", {
      message: "The mail or file that brought the report is no longer stored (raw_retention_days).",
    });
  }

  /** TLS reports, the most recently received first. */
  tlsReports(caller: Caller, id: string): (page: { before: string | null; limit: number }) => TlsReportRow[] {
    const { reports, findDomain } = this.context;
    const domain = findDomain(caller, id).number;
    return ({ before, limit }) => reports.tlsReports(domain, before, limit);
  }

  /** Sums of the last days by day, policy, failure and host, of the newest TLS reports. */
  tlsSummary(caller: Caller, id: string, days: Pick<ReportListQuery, "from" | "to">): TlsSummary {
    const { reports, findDomain } = this.context;
    const domain = findDomain(caller, id).number;
    return sumTlsReports(reports.tlsReports(domain, null, TLS_REPORTS_SUMMED_MAX), this.range(days));
  }

  #find(domain: number, id: string): ReportRowStored {
    const report = this.context.reports.find(domain, id);
    if (report !== undefined) return report;
    throw new AppError("not_found", { message: "There is no such report of this domain." });
  }
}

const cellsOf = (report: ShownReport): Cell[] => {
  const { reporter, authenticity } = report;
  const flat: Record<(typeof REPORT_COLUMNS)[number], Cell> = {
    ...report,
    reporter: reporter.name,
    claimed_name: reporter.claimed_name,
    trusted: reporter.trusted,
    authentication: authenticity?.result ?? null,
  };
  return REPORT_COLUMNS.map((column) => flat[column]);
};
