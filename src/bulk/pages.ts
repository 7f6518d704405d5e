import { nextTurn } from "../base/clock.ts";
import { VERDICT_OF } from "../verify/result.ts";
import { testEvidence } from "../verify/test-keys.ts";
import type { ListedRow, ListStore } from "./list-store.ts";
import { type ResultColumns, toResult, toResultJson } from "./result-columns.ts";
import type { ResultRow } from "./results-csv.ts";
import { hintsOf, type RowHints } from "./row-hints.ts";
import type { ItemFilters } from "./schemas.ts";

/** Rows read at one go: a few milliseconds. */
const READ_AT_ONCE = 2_000;
/** An export is read in such batches: one of rows of 64 KiB each has few of them. */
const EXPORTED_AT_ONCE = { rows: 500, bytes: 1024 * 1024 };
/** A page ends when it has so many bytes, whatever its limit: many callers may read one at a time. */
export const PAGE_BYTES_MAX = 4 * 1024 * 1024;

/** A page of items: JSON of each, and the row index behind which the next page begins, null on the last. */
export interface ItemPage {
  readonly items: readonly string[];
  readonly next: number | null;
}

const columnsOf = (row: ListedRow): ResultColumns | null => {
  const { subStatus } = row;
  return subStatus === null ? null : { ...row, subStatus };
};

const itemJson = (row: ListedRow): string => {
  const { rowIndex, submittedEmail, normalizedEmail } = row;
  const columns = columnsOf(row);
  const result = columns === null ? "null" : toResultJson(columns, submittedEmail, normalizedEmail);
  return (
    `{"row_index":${rowIndex},"submitted_email":${JSON.stringify(submittedEmail)},` +
    `"normalized_email":${JSON.stringify(normalizedEmail)},"result":${result}}`
  );
};

const passes = ({ subStatus }: ListedRow, filters: ItemFilters): boolean => {
  if (filters.verdict === undefined && filters.sub_status === undefined) return true;
  if (subStatus === null) return false;
  return (
    (filters.verdict === undefined || VERDICT_OF[subStatus] === filters.verdict) &&
    (filters.sub_status === undefined || subStatus === filters.sub_status)
  );
};

/**
 * The items of a job in the order of their rows, from behind `after` (-1: from the start), as JSON. A page ends
 * early when it has `PAGE_BYTES_MAX`. With filters that few rows pass, the list is walked in steps between which others have their turn.
 */
export const readItems = async (
  lists: ListStore,
  job: number,
  page: { after: number; limit: number; filters: ItemFilters },
): Promise<ItemPage> => {
  const { limit, filters } = page;
  const isFiltered = filters.verdict !== undefined || filters.sub_status !== undefined;
  const step = isFiltered ? READ_AT_ONCE : limit + 1;
  const items: string[] = [];
  let bytes = 0;
  let last = page.after;
  for (let after = page.after; ;) {
    const rows = lists.rowsBehind(job, after, step);
    for (const row of rows) {
      if (!passes(row, filters)) continue;
      if (items.length >= limit || bytes >= PAGE_BYTES_MAX) return { items, next: last };
      const item = itemJson(row);
      items.push(item);
      bytes += Buffer.byteLength(item);
      last = row.rowIndex;
    }
    after = rows.at(-1)?.rowIndex ?? after;
    if (rows.length < step) return { items, next: null };
    await nextTurn();
  }
};

const cellsOf = (cells: string | null, email: string): string[] =>
  cells === null ? [email] : (JSON.parse(cells) as string[]);

const NO_HINTS: RowHints = { suggestion: null, problem: null };

/** The texts of a test key's triggers are addresses; the key's table says why they are taken for none. */
const hintsFor = ({ subStatus, submittedEmail }: ListedRow): RowHints => {
  if (subStatus === null) return NO_HINTS;
  const hints = hintsOf(submittedEmail);
  if (subStatus !== "invalid_syntax" || hints.problem !== null) return hints;
  return { suggestion: null, problem: testEvidence(submittedEmail.trim()).address.problem };
};

/** The rows of a job that pass the filters, for its export, in batches: an empty one where no row of a step passes. */
export async function* exportRows(
  lists: ListStore,
  job: number,
  filters: ItemFilters = {},
): AsyncGenerator<readonly ResultRow[], void> {
  for (let after = -1; ;) {
    const rows = lists.cellsBehind(job, after, EXPORTED_AT_ONCE);
    if (rows.length === 0) return;
    after = rows.at(-1)?.rowIndex ?? after;
    const passing = rows.filter((row) => passes(row, filters));
    yield passing.map((row) => {
      const columns = columnsOf(row);
      return {
        cells: cellsOf(row.cells, row.submittedEmail),
        result: columns === null ? null : toResult(columns, row.submittedEmail, row.normalizedEmail),
        ...hintsFor(row),
      };
    });
  }
}
