import { backgroundTurn } from "../../foundation/base/fair-queue.ts";
import type { Db } from "../../foundation/db/open.ts";
import type { JobRow } from "./job-store.ts";
import { LISTED_COLUMNS, type ListedRow } from "./list-store.ts";

/** Which rows of a list are wanted; null: every row. */
export interface ListRowFilter {
  /** Rows with an address and one of these results; `"unfinished"`: without a result; `"no_address"`: without an address. */
  readonly results: readonly string[] | "unfinished" | "no_address" | null;
  /** Rows that have this text in the address as submitted or in normal form, whatever the case. */
  readonly text: string | null;
  /** Rows whose address had this trouble with a mail host last. */
  readonly trouble?: number | undefined;
}

/** Rows of a list from one index to another, both included. */
export interface RowWindow {
  readonly from: number;
  readonly to: number;
  readonly order: "first" | "last";
  readonly limit: number;
}

/** A row with the time of the next attempt at its address; 0 before the first. */
export interface WaitingRow extends ListedRow {
  readonly dueAtMs: number;
}

/** What a filter without a text says of addresses. */
const addressConditions = ({ results, trouble }: ListRowFilter): readonly string[] => [
  ...(results === null ? [] : [resultCondition(results)]),
  ...(trouble === undefined ? [] : ["a.trouble = $trouble"]),
];

const resultCondition = (results: NonNullable<ListRowFilter["results"]>): string => {
  if (results === "unfinished") return "a.sub_status IS NULL";
  if (results === "no_address") return "a.normalized_email = ''";
  return "a.normalized_email <> '' AND a.sub_status IN (SELECT value FROM json_each($results))";
};

const conditionOf = (filter: ListRowFilter): string => {
  const conditions = ["r.job = $job", "r.row_index BETWEEN $from AND $to", ...addressConditions(filter)];
  if (filter.text !== null)
    conditions.push(
      "(instr(lower(coalesce(r.submitted_email, a.email)), $text) > 0 OR instr(a.normalized_email, $text) > 0)",
    );
  return conditions.join(" AND ");
};

type Parameters = Record<string, string | number>;

/** Addresses that pass a filter, and their rows. */
interface AddressCount {
  readonly addresses: number;
  readonly rows: number;
}

/** Reads windows of rows in either direction. */
export class RowStore {
  constructor(private readonly db: Db) {}

  /** The rows of a window that pass, at most `limit`. */
  inWindow(job: number, filter: ListRowFilter, { from, to, order, limit }: RowWindow): WaitingRow[] {
    // Bun keeps the statements: there are a dozen.
    const statement = this.db.sqlite.query<WaitingRow, [Parameters]>(
      `SELECT ${LISTED_COLUMNS}, a.due_at_ms AS dueAtMs
        FROM bulk_rows r JOIN bulk_addresses a ON a.job = r.job AND a.position = r.position
        WHERE ${conditionOf(filter)} ORDER BY r.row_index ${order === "first" ? "ASC" : "DESC"} LIMIT $limit`,
    );
    return statement.all({ job, from, to, limit, ...parametersOf(filter) });
  }

  /** Counts the addresses from one position to another that pass a filter without a text. */
  countAddresses(job: number, filter: ListRowFilter, { from, to }: Pick<RowWindow, "from" | "to">): AddressCount {
    const statement = this.db.sqlite.query<AddressCount, [Parameters]>(
      `SELECT coalesce(sum(a.normalized_email <> ''), 0) AS addresses, coalesce(sum(a.rows), 0) AS rows
        FROM bulk_addresses a WHERE ${["a.job = $job", "a.position BETWEEN $from AND $to", ...addressConditions(filter)].join(" AND ")}`,
    );
    return statement.get({ job, from, to, ...parametersOf({ ...filter, text: null }) }) ?? { addresses: 0, rows: 0 };
  }
}

const parametersOf = ({ results, text, trouble }: ListRowFilter): Parameters => ({
  ...(Array.isArray(results) ? { results: JSON.stringify(results) } : {}),
  ...(text === null ? {} : { text: text.toLowerCase() }),
  ...(trouble === undefined ? {} : { trouble }),
});

/** Positions looked at in one step of a count: a few milliseconds. */
const POSITIONS_PER_STEP = 20_000;
const ROWS_PER_STEP = 5_000;
/** In a longer list the rows that hold a text are not counted: that would take seconds. */
const TEXT_ROWS_MAX = 200_000;

/**
 * How many rows of a list pass a filter; `isDistinct`: how many different addresses. Null when that is not counted.
 */
export const countMatching = async (
  rows: RowStore,
  { number, accountId, rowsTotal, addressesTotal }: JobRow,
  { filter, isDistinct }: { readonly filter: ListRowFilter; readonly isDistinct: boolean },
): Promise<number | null> => {
  if (filter.text === null) {
    let count = 0;
    // The rows without an address have a position, too.
    for (let from = 0; from <= addressesTotal; from += POSITIONS_PER_STEP) {
      await backgroundTurn(accountId);
      const window = { from, to: from + POSITIONS_PER_STEP - 1 };
      const counted = rows.countAddresses(number, filter, window);
      count += isDistinct ? counted.addresses : counted.rows;
    }
    return count;
  }
  if (rowsTotal > TEXT_ROWS_MAX) return null;
  const seen = new Set<string>();
  let count = 0;
  for (let from = 0; from < rowsTotal; from += ROWS_PER_STEP) {
    await backgroundTurn(accountId);
    const window = { from, to: from + ROWS_PER_STEP - 1, order: "first", limit: ROWS_PER_STEP } as const;
    const found = rows.inWindow(number, filter, window);
    count += found.length;
    if (isDistinct) for (const { normalizedEmail } of found) if (normalizedEmail !== "") seen.add(normalizedEmail);
  }
  return isDistinct ? seen.size : count;
};
