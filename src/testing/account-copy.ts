import type { Database as Sqlite } from "bun:sqlite";
import { type KeyMode, newId } from "../foundation/base/secrets.ts";
import { ownerOf, referencesOf } from "./row-owners.ts";
import { columnsOf, schemaFact, tablesOf } from "./upgrade-rows.ts";

type Value = string | number | Uint8Array | null;
type Row = Readonly<Record<string, Value>>;

/** Where the copy goes: to a new account, or to the other mode of the same one. */
export type CopyTarget = { readonly toNewAccount: true } | { readonly fromMode: KeyMode };

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
/** Far above the numbers that a test reaches. */
const NUMBER_STEP = 1_000_000;
/** Copies of this process: each has names and numbers of its own. */
let copies = 0;

/** Columns that alone identify a row, with the exception of the account's. */
const identitiesOf = (sqlite: Sqlite, table: string): readonly string[] =>
  schemaFact(sqlite, `identities of ${table}`, () => findIdentities(sqlite, table));

const findIdentities = (sqlite: Sqlite, table: string): readonly string[] => {
  const indexes = sqlite
    .query<{ name: string; unique: number }, []>(`PRAGMA index_list("${table}")`)
    .all()
    .filter(({ unique }) => unique === 1)
    .map(({ name }) =>
      sqlite
        .query<{ name: string }, []>(`PRAGMA index_info("${name}")`)
        .all()
        .map((one) => one.name),
    );
  const primary = columnsOf(sqlite, table).filter(({ pk }) => pk > 0);
  const single = [primary.map(({ name }) => name), ...indexes].filter((columns) => columns.length === 1).flat();
  const references = referencesOf(sqlite, table);
  return [...new Set(single)].filter((name) => !references.has(name));
};

/** New values for what identifies rows: by table and column, and ids wherever they stand. */
class Renaming {
  readonly #copy = ++copies;
  readonly #byColumn = new Map<string, Value>();
  readonly #ids = new Map<string, string>();

  add(table: string, column: string, value: Value): void {
    const at = `${table}.${column}=${value}`;
    if (value === null || this.#byColumn.has(at)) return;
    if (typeof value === "number") {
      this.#byColumn.set(at, value + NUMBER_STEP * this.#copy);
      return;
    }
    const text = String(value);
    const isId = text.match(UUID)?.[0] === text;
    if (isId && !this.#ids.has(text)) this.#ids.set(text, newId());
    this.#byColumn.set(at, isId ? (this.#ids.get(text) ?? null) : `other${this.#copy}-${text}`);
  }

  /** The new value of a column that identifies its row or refers to one; undefined when it keeps its value. */
  of(table: string, column: string, value: Value): Value | undefined {
    return this.#byColumn.get(`${table}.${column}=${value}`);
  }

  /** A text with the new ids. */
  text(text: string): string {
    return text.replace(UUID, (id) => this.#ids.get(id) ?? id);
  }
}

/**
 * Copies every row of an account, whatever the schema: identifiers are new, everything else is the same. Throws when a table does not
 * get as many rows as it has of the account, so that no table is left out.
 */
export const copyAccount = (sqlite: Sqlite, accountId: string, target: CopyTarget): string => {
  const tables = tablesOf(sqlite).flatMap((table) => {
    const owner = ownerOf(sqlite, table);
    if (owner === null) return [];
    const where = "fromMode" in target ? `AND ${owner.mode} = '${target.fromMode}'` : "";
    const select = `SELECT * FROM "${table}" WHERE ${owner.account} = ? ${where}`;
    return [
      { table, rows: sqlite.query<Row, [string]>(select).all(accountId), references: referencesOf(sqlite, table) },
    ];
  });
  const renaming = new Renaming();
  for (const { table, rows } of tables)
    for (const column of identitiesOf(sqlite, table))
      for (const row of rows) renaming.add(table, column, row[column] ?? null);
  const copyOf = (table: string, row: Row, references: ReturnType<typeof referencesOf>): Row =>
    Object.fromEntries(
      Object.entries(row).map(([column, value]) => {
        if (column === "mode" && "fromMode" in target) return [column, value === "live" ? "test" : "live"];
        const referred = (references.get(column) ?? []).map((to) => renaming.of(to.table, to.key, value));
        const renamed = [renaming.of(table, column, value), ...referred].find((one) => one !== undefined);
        return [column, renamed ?? (typeof value === "string" ? renaming.text(value) : value)];
      }),
    );
  sqlite.transaction(() => {
    sqlite.run("PRAGMA defer_foreign_keys = ON");
    for (const { table, rows, references } of tables)
      for (const row of rows) insertRow(sqlite, table, copyOf(table, row, references));
  })();
  return String(renaming.of("accounts", "id", accountId) ?? accountId);
};

const insertRow = (sqlite: Sqlite, table: string, row: Row): void => {
  const names = Object.keys(row);
  const columns = names.map((name) => `"${name}"`).join(", ");
  // A trigger may have written the row already.
  const statement = `INSERT OR IGNORE INTO "${table}" (${columns}) VALUES (${names.map(() => "?").join(", ")})`;
  if (sqlite.query(statement).run(...Object.values(row)).changes > 0) return;
  const exists = sqlite.query(`SELECT 1 FROM "${table}" WHERE ${names.map((name) => `"${name}" IS ?`).join(" AND ")}`);
  if (exists.get(...Object.values(row)) === null)
    throw new Error(`${table}: the copy of a row is refused: ${JSON.stringify(row)}`);
};
