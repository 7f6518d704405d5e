import type { SQLQueryBindings } from "bun:sqlite";
import type { Db } from "./open.ts";

/** Rows of one statement, largest first: what SQLite does once for each statement costs as much as a row of numbers. */
const ROWS_AT_ONCE = [64, 8, 1] as const;

/** What is inserted. */
export interface RowInsert {
  /** The table with its columns: `accounts (id, name)`. */
  readonly into: string;
  readonly columns: number;
  /** What follows the rows, such as `ON CONFLICT …`. */
  readonly ending?: string;
}

/** Prepares statements that insert rows, many with each. What they return takes one array for each row, as long as `columns`. */
export const prepareRowInsert = (
  { sqlite }: Pick<Db, "sqlite">,
  { into, columns, ending = "" }: RowInsert,
): ((rows: ReadonlyArray<readonly SQLQueryBindings[]>) => void) => {
  const row = `(${Array.from({ length: columns }, () => "?").join(", ")})`;
  const statements = ROWS_AT_ONCE.map((count) => {
    const rows = Array.from({ length: count }, () => row).join(", ");
    return {
      count,
      statement: sqlite.prepare<unknown, SQLQueryBindings[]>(`INSERT INTO ${into} VALUES ${rows} ${ending}`),
    };
  });
  return (rows) => {
    let at = 0;
    for (const { count, statement } of statements) {
      for (; at + count <= rows.length; at += count) statement.run(...rows.slice(at, at + count).flat());
    }
  };
};
