import { rowFormatOf } from "../../../foundation/http/row-format.ts";
import type { Caller } from "../../../foundation/http/guard.ts";
import type { DomainRow, DomainOwner } from "../../records/domains/domain-store.ts";
import { rangeOf, exportFileName, type QueryContext, csvResponse, ndjsonResponse } from "./domain-query.ts";
import { DomainSources, type ExplainedSource } from "../sources/domain-sources.ts";
import {
  type RecordFilters,
  type ExportedRecord,
  exportRecords,
  readRecords,
  RECORD_COLUMNS,
  recordBatches,
  type RecordPage,
  type RecordQuery,
  recordView,
} from "./records.ts";
import type { RecordScope, RecordRow, RecordStore } from "./record-store.ts";
import type { DayRange } from "../../../foundation/base/days.ts";
import { backgroundTurn } from "../../../foundation/base/fair-queue.ts";
import { encodeCursor } from "../../../foundation/http/route-input.ts";
import { sourceRulesSchema } from "../../records/domains/source-rules.ts";
import type { RollupStore } from "../sources/rollup-store.ts";
import type { ExportedReport, ReportQueryStore } from "./report-query-store.ts";

/** Reads the records of reports about the caller's domains. Throws `not_found` for a domain of another account. */
export class DmarcRecordReader {
  constructor(private readonly deps: QueryContext) {}

  /** A page of records, the newest day first; `next` is not encoded. */
  async page(
    caller: Caller,
    id: string,
    filters: RecordFilters,
    page: { readonly after: string | null; readonly limit: number },
  ): Promise<RecordPage> {
    const { records, findDomain } = this.deps;
    return readRecords(records, await this.#queryOf(findDomain(caller, id), filters), page);
  }

  /** As `page`, of a source that was read before over `range`: who sends is not read again. */
  pageOfSource(
    { source: { key, name }, numbers }: Pick<ExplainedSource, "source" | "numbers">,
    query: Pick<RecordQuery, "range" | "filters">,
    page: { readonly after: string | null; readonly limit: number },
  ): Promise<RecordPage> {
    const names = new Map(numbers.map((number) => [number, { key, name }]));
    return readRecords(this.deps.records, { ...query, scope: { sources: numbers }, names }, page);
  }

  /** All records from a cursor on as a file: NDJSON where the request prefers that, else CSV. */
  async file(
    caller: Caller,
    id: string,
    request: Request,
    query: { filters: RecordFilters; after: string | null },
  ): Promise<Response> {
    const { records, findDomain } = this.deps;
    const domain = findDomain(caller, id);
    const found = await this.#queryOf(domain, query.filters);
    const format = rowFormatOf(request) === "ndjson" ? "ndjson" : "csv";
    const name = exportFileName("records", domain, found.range, format);
    if (format === "ndjson") return ndjsonResponse(request, name, recordBatches(records, found, query.after));
    return csvResponse(request, name, {
      columns: RECORD_COLUMNS,
      batches: exportRecords(records, found, query.after),
    });
  }

  /** The scope and range of a request. A report is read whole, whatever its day, unless a range is given. */
  async #queryOf(
    domain: DomainRow,
    { from, to, source, report: reportId, ...rest }: RecordFilters,
  ): Promise<RecordQuery> {
    const { clock, rollups, reports } = this.deps;
    const range = rangeOf({ from, to }, clock.nowMs());
    if (reportId === undefined) {
      return DomainSources.read(rollups, domain, function* (sources) {
        const names = yield* sources.names(range);
        const scope: RecordScope =
          source === undefined ? { domain: domain.number } : { sources: yield* sources.numbersOf([source], range) };
        return { scope, range, filters: rest, names };
      });
    }
    const report = reports.find(domain.number, reportId);
    if (report === undefined) return { scope: { sources: [] }, range, filters: rest, names: new Map() };
    const whole = from === undefined && to === undefined ? { fromDay: report.day, toDay: report.day } : range;
    const byNetwork = source?.startsWith("net:") === true;
    const names = await DomainSources.read(rollups, domain, (sources) => sources.names(whole, { byNetwork }));
    return { scope: { report: report.number }, range: whole, filters: { ...rest, source }, names };
  }
}

/** The position of a record in the order in which reports were stored. */
interface ExportPosition {
  /** `number` of the report. */
  readonly report: number;
  readonly position: number;
}

/** Reports read in one step, whoever they belong to. */
const REPORTS_AT_ONCE = 2_000;
const RECORDS_AT_ONCE = 250;
/** Domains whose source names are cached. */
const CACHED_DOMAINS_MAX = 100;

const CURSOR = /^(\d{1,15})\.(\d{1,9})$/;
const START: ExportPosition = { report: 0, position: -1 };

export const isExportCursor = (text: string): boolean => CURSOR.test(text);

/** The position that a cursor stands for; null is the start. */
export const readExportCursor = (text: string | null): ExportPosition => {
  if (text === null) return START;
  const [report = 0, position = 0] = text.split(".").map(Number);
  return { report, position };
};

/**
 * The records of all domains of an owner after a position, in batches: report by report in the order in which they were stored,
 * so that new reports come after everything that was read before, whatever their day. Yields to other work between batches.
 */
export async function* exportAllRecords(
  {
    records,
    reports,
    rollups,
  }: {
    readonly records: RecordStore;
    readonly reports: ReportQueryStore;
    readonly rollups: RollupStore;
  },
  owner: DomainOwner,
  { range, after }: { readonly range: DayRange; readonly after: ExportPosition },
): AsyncGenerator<readonly ExportedRecord[], void> {
  const last = reports.lastExportable(after.report);
  const namesOf = createNameCache(rollups, owner, range);
  let batch: ExportedRecord[] = [];
  for (let from = after.report; from <= last; from += REPORTS_AT_ONCE) {
    await backgroundTurn(owner.accountId);
    const to = Math.min(last, from + REPORTS_AT_ONCE - 1);
    for (const report of reports.exportedReports(owner, { from, to }, range)) {
      const position = report.number === after.report ? after.position : START.position;
      const names = await namesOf(report);
      for (const rows of pagesOf(records, report.number, position)) {
        batch.push(...rows.map((row) => exportedView(report, row, names)));
        if (batch.length < RECORDS_AT_ONCE) continue;
        yield batch;
        batch = [];
      }
    }
  }
  if (batch.length > 0) yield batch;
}

type Names = RecordQuery["names"];

/** The names of the sources of a report's domain. */
const createNameCache = (rollups: RollupStore, { accountId }: DomainOwner, range: DayRange) => {
  const cache = new Map<number, Names>();
  return async ({ domainNumber: number, domainId: id, domain, sourceRules, state }: ExportedReport) => {
    const cached = cache.get(number);
    if (cached !== undefined) return cached;
    if (cache.size >= CACHED_DOMAINS_MAX) cache.clear();
    const rules = sourceRulesSchema.parse(JSON.parse(sourceRules));
    const read = { accountId, number, id, domain, sourceRules: rules, state };
    const names = await DomainSources.read(rollups, read, (all) => all.names(range));
    cache.set(number, names);
    return names;
  };
};

const exportedView = ({ domainId, domain }: ExportedReport, row: RecordRow, names: Names) => ({
  domain_id: domainId,
  domain,
  ...recordView(row, { names }),
  cursor: encodeCursor(`${row.report}.${row.position}`),
});

/** The records of a report after a position, in pages. */
function* pagesOf(records: RecordStore, report: number, after: number): Generator<readonly RecordRow[], void> {
  for (let position = after; ;) {
    const rows = records.recordsOfReport(report, position, RECORDS_AT_ONCE);
    yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < RECORDS_AT_ONCE) return;
    position = last.position;
  }
}
