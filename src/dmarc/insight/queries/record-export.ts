import type { DayRange } from "../../../foundation/base/days.ts";
import { backgroundTurn } from "../../../foundation/base/background.ts";
import { encodeCursor } from "../../../foundation/http/route-input.ts";
import type { DomainOwner } from "../../records/domains/domain-store.ts";
import { sourceRulesSchema } from "../../records/domains/source-rules.ts";
import { DomainSources } from "../sources/domain-sources.ts";
import type { RollupStore } from "../sources/rollup-store.ts";
import type { ExportedRecord } from "./record-schemas.ts";
import type { RecordRow, RecordStore } from "./record-store.ts";
import { recordView } from "./records.ts";
import type { ExportedReport, ReportQueryStore } from "./report-query-store.ts";

/** The position of a record in the order in which reports were stored. */
export interface ExportPosition {
  /** `number` of the report. */
  readonly report: number;
  readonly position: number;
}

export interface ExportStores {
  readonly records: RecordStore;
  readonly reports: ReportQueryStore;
  readonly rollups: RollupStore;
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
  { records, reports, rollups }: ExportStores,
  owner: DomainOwner,
  { range, after }: { readonly range: DayRange; readonly after: ExportPosition },
): AsyncGenerator<readonly ExportedRecord[], void> {
  const last = reports.lastExportable(after.report);
  const namesOf = createNameCache(rollups, range);
  let batch: ExportedRecord[] = [];
  for (let from = after.report; from <= last; from += REPORTS_AT_ONCE) {
    await backgroundTurn(owner.accountId);
    const to = Math.min(last, from + REPORTS_AT_ONCE - 1);
    for (const report of reports.exportedReports(owner, { from, to }, range)) {
      const position = report.number === after.report ? after.position : START.position;
      for (const rows of pagesOf(records, report.number, position)) {
        batch.push(...rows.map((row) => exportedView(report, row, namesOf(report))));
        if (batch.length < RECORDS_AT_ONCE) continue;
        yield batch;
        batch = [];
      }
    }
  }
  if (batch.length > 0) yield batch;
}

type Names = ReturnType<DomainSources["names"]>;

/** The names of the sources of a report's domain. */
const createNameCache = (rollups: RollupStore, range: DayRange) => {
  const cache = new Map<number, Names>();
  return ({ domainNumber: number, domainId: id, domain, sourceRules }: ExportedReport): Names => {
    const cached = cache.get(number);
    if (cached !== undefined) return cached;
    if (cache.size >= CACHED_DOMAINS_MAX) cache.clear();
    const rules = sourceRulesSchema.parse(JSON.parse(sourceRules));
    const names = new DomainSources(rollups, { number, id, domain, sourceRules: rules }).names(range);
    cache.set(number, names);
    return names;
  };
};

const exportedView = ({ domainId, domain }: ExportedReport, row: RecordRow, names: Names): ExportedRecord => ({
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
