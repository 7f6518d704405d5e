import type { Caller } from "../../../foundation/http/guard.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import { rangeOf } from "../sources/day-range.ts";
import { DomainSources } from "../sources/domain-sources.ts";
import { csvResponse, rowFormatOf } from "./csv.ts";
import { exportFileName, type QueryContext } from "./domain-query.ts";
import { ndjsonResponse } from "./ndjson.ts";
import type { RecordFilters } from "./record-schemas.ts";
import type { RecordScope } from "./record-store.ts";
import {
  exportRecords,
  readRecords,
  RECORD_COLUMNS,
  recordBatches,
  type RecordPage,
  type RecordQuery,
} from "./records.ts";

/** Reads the records of reports about the caller's domains. Throws `not_found` for a domain of another account. */
export class DmarcRecordReader {
  readonly #context: QueryContext;

  constructor(context: QueryContext) {
    this.#context = context;
  }

  /** A page of records, the newest day first; `next` is not encoded. */
  page(
    caller: Caller,
    id: string,
    filters: RecordFilters,
    page: { readonly after: string | null; readonly limit: number },
  ): Promise<RecordPage> {
    const { records, findDomain } = this.#context;
    return readRecords(records, this.#queryOf(findDomain(caller, id), filters), page);
  }

  /** All records from a cursor on as a file: NDJSON where the request prefers that, else CSV. */
  file(
    caller: Caller,
    id: string,
    request: Request,
    query: { filters: RecordFilters; after: string | null },
  ): Response {
    const { records, findDomain } = this.#context;
    const domain = findDomain(caller, id);
    const found = this.#queryOf(domain, query.filters);
    const format = rowFormatOf(request) === "ndjson" ? "ndjson" : "csv";
    const name = exportFileName("records", domain, found.range, format);
    if (format === "ndjson") return ndjsonResponse(request, name, recordBatches(records, found, query.after));
    return csvResponse(request, name, {
      columns: RECORD_COLUMNS,
      batches: exportRecords(records, found, query.after),
    });
  }

  /** The scope and range of a request. A report is read whole, whatever its day, unless a range is given. */
  #queryOf(domain: DomainRow, { from, to, source, report: reportId, ...rest }: RecordFilters): RecordQuery {
    const { db, clock, rollups, reports } = this.#context;
    const range = rangeOf({ from, to }, clock.nowMs());
    if (reportId === undefined) {
      return db.snapshot(() => {
        const sources = new DomainSources(rollups, domain);
        const scope: RecordScope =
          source === undefined ? { domain: domain.number } : { sources: sources.numbersOf(source, range) };
        return { scope, range, filters: rest, names: sources.names(range) };
      });
    }
    const report = reports.find(domain.number, reportId);
    if (report === undefined) return { scope: { sources: [] }, range, filters: rest, names: new Map() };
    const whole = from === undefined && to === undefined ? { fromDay: report.day, toDay: report.day } : range;
    const byNetwork = source?.startsWith("net:") === true;
    const names = new DomainSources(rollups, domain).names(whole, { byNetwork });
    return { scope: { report: report.number }, range: whole, filters: { ...rest, source }, names };
  }
}
