import type { SQLQueryBindings, Statement } from "bun:sqlite";
import type { Db } from "./open.ts";
import { getTableColumns } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";

/**
 * Prepares each statement when it is first used, once: a service has hundreds of them, and a start or a command needs a few.
 * Do not spread the returned object: that would prepare all of them.
 */
export const statements = <T extends Readonly<Record<string, () => unknown>>>(
  prepare: T,
): { readonly [K in keyof T]: ReturnType<T[K]> } => {
  const prepared = Object.create(null);
  for (const name of Object.keys(prepare)) {
    const get = () => {
      const value = prepare[name]?.();
      Object.defineProperty(prepared, name, { value, enumerable: true });
      return value;
    };
    Object.defineProperty(prepared, name, { get, enumerable: true, configurable: true });
  }
  return prepared;
};

/** The text of a statement, and what the prepared statement is. */
interface SqlText<S> {
  readonly text: string;
  readonly statement?: S;
}

/** The text of a statement that takes the parameters `P` and returns rows `R`. */
export const rows = <R, P extends SQLQueryBindings | SQLQueryBindings[]>(
  text: string,
): SqlText<Statement<R, P extends SQLQueryBindings[] ? P : [P]>> => ({ text });

type Prepared<T> =
  T extends SqlText<infer S> ? S : T extends () => infer S ? S : Statement<unknown, SQLQueryBindings[]>;

/** As `statements`, where most are given by their text: a statement that only writes needs nothing else. */
export const sqlStatements = <T extends Readonly<Record<string, string | SqlText<unknown> | (() => unknown)>>>(
  { sqlite }: Pick<Db, "sqlite">,
  texts: T,
) =>
  statements(
    Object.fromEntries(
      Object.entries(texts).map(([name, sql]) => [
        name,
        typeof sql === "function" ? sql : () => sqlite.prepare(typeof sql === "string" ? sql : sql.text),
      ]),
    ),
  ) as { readonly [K in keyof T]: Prepared<T[K]> };

/** Rows of one statement, largest first: what SQLite does once for each statement costs as much as a row of numbers. */
const ROWS_AT_ONCE = [64, 8, 1] as const;

/** What is inserted. */
interface RowInsert {
  /** The table with its columns: `accounts (id, name)`. */
  readonly into: string;
  readonly columns: number;
  /** What follows the rows, such as `ON CONFLICT …`. */
  readonly ending?: string;
}

/**
 * Prepares statements that insert rows, many with each. The returned function takes one array for each row, as long as
 * `columns`.
 */
export const prepareRowInsert = (
  { sqlite }: Pick<Db, "sqlite">,
  { into, columns, ending = "" }: RowInsert,
): ((rows: ReadonlyArray<readonly SQLQueryBindings[]>) => void) => {
  const row = `(${Array.from({ length: columns }, () => "?").join(", ")})`;
  const inserts = ROWS_AT_ONCE.map((count) => {
    const rows = Array.from({ length: count }, () => row).join(", ");
    const insert = () => sqlite.prepare<unknown, SQLQueryBindings[]>(`INSERT INTO ${into} VALUES ${rows} ${ending}`);
    return { count, sql: statements({ insert }) };
  });
  return (rows) => {
    let at = 0;
    for (const { count, sql } of inserts) {
      for (; at + count <= rows.length; at += count) sql.insert.run(...rows.slice(at, at + count).flat());
    }
  };
};

/** The columns of a table for a SELECT, under the names of its fields. */
export const selectionOf = (table: SQLiteTable): string =>
  Object.entries(getTableColumns(table))
    .map(([name, column]) => `${column.name} AS ${name}`)
    .join(", ");

/** An SQL condition for rows with an `account_id`: the account is not disabled. Monitoring of disabled accounts is paused. */
export const OF_ENABLED_ACCOUNT = "account_id NOT IN (SELECT id FROM accounts WHERE disabled_at_ms IS NOT NULL)";
