import type { Db } from "../../foundation/db/open.ts";
import { LISTED_COLUMNS, type ListedRow } from "./list-store.ts";

/** Which rows of a list are wanted; null: every row. */
export interface ListRowFilter {
  /** Rows with one of these results; `"unfinished"`: rows without a result. */
  readonly results: readonly string[] | "unfinished" | null;
  /** Rows that have this text in the address as submitted or in normal form, whatever the case. */
  readonly text: string | null;
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

const conditionOf = ({ results, text }: ListRowFilter): string => {
  const conditions = ["r.job = $job", "r.row_index BETWEEN $from AND $to"];
  if (results === "unfinished") conditions.push("a.sub_status IS NULL");
  else if (results !== null) conditions.push("a.sub_status IN (SELECT value FROM json_each($results))");
  if (text !== null)
    conditions.push(
      "(instr(lower(coalesce(r.submitted_email, a.email)), $text) > 0 OR instr(a.normalized_email, $text) > 0)",
    );
  return conditions.join(" AND ");
};

type Parameters = Record<string, string | number>;

/** Reads windows of rows in either direction. */
export class RowStore {
  constructor(private readonly db: Db) {}

  /** The rows of a window that pass, at most `limit`. */
  inWindow(job: number, filter: ListRowFilter, { from, to, order, limit }: RowWindow): WaitingRow[] {
    const { results, text } = filter;
    // Bun keeps the statements: there are a dozen.
    const statement = this.db.sqlite.query<WaitingRow, [Parameters]>(
      `SELECT ${LISTED_COLUMNS}, a.due_at_ms AS dueAtMs
        FROM bulk_rows r JOIN bulk_addresses a ON a.job = r.job AND a.position = r.position
        WHERE ${conditionOf(filter)} ORDER BY r.row_index ${order === "first" ? "ASC" : "DESC"} LIMIT $limit`,
    );
    return statement.all({
      ...{ job, from, to, limit },
      ...(Array.isArray(results) ? { results: JSON.stringify(results) } : {}),
      ...(text === null ? {} : { text: text.toLowerCase() }),
    });
  }
}
