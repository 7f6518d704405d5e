import type { DayRange } from "../../base/days.ts";
import { backgroundTurn } from "../../base/background.ts";
import { writeCursor } from "../../http/query.ts";
import type { DomainOwner } from "../domains/domain-store.ts";
import type { ExportedRecord } from "./record-schemas.ts";
import type { RecordRow, RecordStore } from "./record-store.ts";
import type { ExportedReport, RecordExportStore } from "./record-export-store.ts";
import type { RollupStore } from "../sources/rollup-store.ts";
import type { SourceRule } from "../domains/source-rules.ts";
import { recordView } from "./records.ts";
import { DomainSources } from "../sources/domain-sources.ts";

/** The place of a record in the order in which reports were stored. */
export interface ExportPlace {
  /** `number` of the report. */
  readonly report: number;
  readonly position: number;
}

export interface RecordExportParts {
  readonly records: RecordStore;
  readonly exports: RecordExportStore;
  readonly store: RollupStore;
}

/** Reports looked at in one go, whoever they belong to. */
const REPORTS_AT_ONCE = 2_000;
const RECORDS_AT_ONCE = 250;

const CURSOR = /^(\d{1,15})\.(\d{1,9})$/;
const START: ExportPlace = { report: 0, position: -1 };

export const isExportCursor = (text: string): boolean => CURSOR.test(text);

/** The place that a cursor stands for; null is the start. */
export const readExportCursor = (text: string | null): ExportPlace => {
  if (text === null) return START;
  const [report = 0, position = 0] = text.split(".").map(Number);
  return { report, position };
};

const cursorAt = ({ report, position }: ExportPlace): string => writeCursor(`${report}.${position}`);

/**
 * The records of all domains of an owner behind a place, in batches: report by report as they were stored, so that what comes later
 * stands behind what was read before, whatever day it is about. Between two batches others have their turn.
 */
export async function* exportAllRecords(
  { records, exports, store }: RecordExportParts,
  owner: DomainOwner,
  { range, after }: { readonly range: DayRange; readonly after: ExportPlace },
): AsyncGenerator<readonly ExportedRecord[], void> {
  const last = exports.lastNumber(after.report);
  const namesOf = createNames(store, range);
  let batch: ExportedRecord[] = [];
  for (let from = after.report; from <= last; from += REPORTS_AT_ONCE) {
    await backgroundTurn(owner.accountId);
    const to = Math.min(last, from + REPORTS_AT_ONCE - 1);
    for (const report of exports.reportsBetween(owner, { from, to }, range)) {
      const behind = report.number === after.report ? after.position : START.position;
      for (const rows of pagesOf(records, report.number, behind)) {
        batch.push(...rows.map((row) => exportedView(report, row, namesOf(report))));
        if (batch.length < RECORDS_AT_ONCE) continue;
        yield batch;
        batch = [];
      }
    }
  }
  if (batch.length > 0) yield batch;
}

/** The names of sources are read once for a domain, and for so many domains at a time. */
const DOMAINS_KEPT = 100;

type Names = ReturnType<DomainSources["names"]>;

/** How the sources of the domain of a report are shown. */
const createNames = (store: RollupStore, range: DayRange) => {
  const known = new Map<number, Names>();
  return ({ domainNumber: number, domainId: id, domain, sourceRules }: ExportedReport): Names => {
    const found = known.get(number);
    if (found !== undefined) return found;
    if (known.size >= DOMAINS_KEPT) known.clear();
    const rules = JSON.parse(sourceRules) as readonly SourceRule[];
    const names = new DomainSources(store, { number, id, domain, sourceRules: rules }).names(range);
    known.set(number, names);
    return names;
  };
};

const exportedView = ({ domainId, domain }: ExportedReport, row: RecordRow, names: Names): ExportedRecord => ({
  domain_id: domainId,
  domain,
  ...recordView(row, { names }),
  cursor: cursorAt(row),
});

/** The records of a report behind a position, some at a time. */
function* pagesOf(records: RecordStore, report: number, behind: number): Generator<readonly RecordRow[], void> {
  for (let position = behind; ;) {
    const rows = records.recordsInPlace(report, position, RECORDS_AT_ONCE);
    yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < RECORDS_AT_ONCE) return;
    position = last.position;
  }
}
