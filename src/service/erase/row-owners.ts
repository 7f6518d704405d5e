import type { Database as Sqlite } from "bun:sqlite";

/** A row of another table that a column refers to: `key` is the expression that equals the column's value. */
export interface RowReference {
  readonly table: string;
  readonly key: string;
}

/** References that the schema does not declare, by the name of the column. */
const REFERENCES: Readonly<Record<string, readonly RowReference[]>> = {
  account_id: [{ table: "accounts", key: "id" }],
  // The dashboard's caller is `user:<id>`.
  key_id: [
    { table: "api_keys", key: "id" },
    { table: "users", key: "'user:' || id" },
  ],
  verification_id: [{ table: "verifications", key: "id" }],
  job: [{ table: "bulk_jobs", key: "number" }],
  target_id: [{ table: "blocklist_targets", key: "id" }],
  delivery_id: [{ table: "webhook_deliveries", key: "id" }],
  ingestion: [{ table: "dmarc_ingestions", key: "id" }],
  report: [{ table: "dmarc_reports", key: "number" }],
  alert: [{ table: "dmarc_alerts", key: "id" }],
};

/** The same for whole numbers: text of this name is a name, for example of a domain. */
const NUMBER_REFERENCES: Readonly<Record<string, readonly RowReference[]>> = {
  domain: [{ table: "dmarc_domains", key: "number" }],
  source: [{ table: "dmarc_sources", key: "number" }],
};

/** SQL expressions over a row, for a table or its alias: the id of its account, and its mode; null without one. */
export interface RowOwner {
  readonly account: string;
  readonly mode: string;
}

interface ForeignKey {
  readonly from: string;
  readonly table: string;
  readonly to: string;
}

const columnsOfTable = (sqlite: Sqlite, table: string) =>
  sqlite.query<{ name: string; type: string }, []>(`PRAGMA table_info("${table}")`).all();

/** What the columns of a table refer to: declared foreign keys, and the references above. */
export const findRowReferences = (sqlite: Sqlite, table: string): ReadonlyMap<string, readonly RowReference[]> => {
  const declared = sqlite.query<ForeignKey, []>(`PRAGMA foreign_key_list("${table}")`).all();
  return new Map(
    columnsOfTable(sqlite, table).flatMap(({ name, type }) => {
      const foreign = declared.filter(({ from }) => from === name).map((key) => ({ table: key.table, key: key.to }));
      const named = REFERENCES[name] ?? (/int/i.test(type) ? NUMBER_REFERENCES[name] : undefined);
      const found = foreign.length > 0 ? foreign : (named ?? []).filter((reference) => reference.table !== table);
      return found.length > 0 ? [[name, found] as const] : [];
    }),
  );
};

const oneOf = (expressions: readonly string[]): string =>
  expressions.length === 0 ? "NULL" : `coalesce(${[...expressions, "NULL"].join(", ")})`;

/**
 * How the owner of a row of `table` is found: by its own columns, else by the rows that it refers to. Null when nothing in the
 * table says so: its rows belong to the service.
 */
export const findRowOwner = (sqlite: Sqlite, table: string, row = `"${table}"`): RowOwner | null => {
  if (table === "accounts") return { account: `${row}.id`, mode: "NULL" };
  const columns = new Set(columnsOfTable(sqlite, table).map(({ name }) => name));
  if (columns.has("account_id"))
    return { account: `${row}.account_id`, mode: columns.has("mode") ? `${row}.mode` : "NULL" };
  const parents = [...findRowReferences(sqlite, table)].flatMap(([column, references]) =>
    references.flatMap(({ table: parent, key }) => {
      const owner = findRowOwner(sqlite, parent);
      const select = (expression: string) =>
        `(SELECT ${expression} FROM "${parent}" WHERE ${key} = ${row}."${column}")`;
      return owner === null ? [] : [{ account: select(owner.account), mode: select(owner.mode) }];
    }),
  );
  if (parents.length === 0) return null;
  return { account: oneOf(parents.map(({ account }) => account)), mode: oneOf(parents.map(({ mode }) => mode)) };
};
