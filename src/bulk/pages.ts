import { nextTurn } from "../base/clock.ts";
import { VERDICT_OF } from "../verify/result.ts";
import type { ListedRow, ListStore } from "./list-store.ts";
import { type ResultColumns, toResult, toResultJson } from "./result-columns.ts";
import type { ResultRow } from "./results-csv.ts";
import type { ItemFilters } from "./schemas.ts";

/** Rows read at one go: a few milliseconds. */
const READ_AT_ONCE = 2_000;
const EXPORTED_AT_ONCE = 500;

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
 * The items of a job in the order of their rows, from behind `after` (-1: from the start), as JSON. With filters that
 * few rows pass, the list is walked in steps between which others have their turn.
 */
export const readItems = async (
  lists: ListStore,
  job: number,
  page: { after: number; limit: number; filters: ItemFilters },
): Promise<ItemPage> => {
  const { limit, filters } = page;
  const isFiltered = filters.verdict !== undefined || filters.sub_status !== undefined;
  const step = isFiltered ? READ_AT_ONCE : limit + 1;
  const found: ListedRow[] = [];
  for (let after = page.after; ;) {
    const rows = lists.rowsBehind(job, after, step);
    for (const row of rows) if (found.length <= limit && passes(row, filters)) found.push(row);
    after = rows.at(-1)?.rowIndex ?? after;
    if (found.length > limit || rows.length < step) break;
    await nextTurn();
  }
  const items = found.slice(0, limit);
  return { items: items.map(itemJson), next: found.length > limit ? (items.at(-1)?.rowIndex ?? null) : null };
};

const cellsOf = (cells: string | null, email: string): string[] =>
  cells === null ? [email] : (JSON.parse(cells) as string[]);

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
      };
    });
    if (rows.length < EXPORTED_AT_ONCE) return;
  }
}
