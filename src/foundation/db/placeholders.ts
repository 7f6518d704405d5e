import { getTableColumns, type Placeholder, sql } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";

/** A placeholder for every column of a table, for a prepared statement that inserts a row. */
export const placeholdersOf = <T extends SQLiteTable>(table: T) =>
  Object.fromEntries(Object.keys(getTableColumns(table)).map((name) => [name, sql.placeholder(name)])) as {
    [Name in keyof T["$inferInsert"]]: Placeholder;
  };
