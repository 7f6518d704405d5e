import type { Database as Sqlite } from "bun:sqlite";
import { isoTime } from "../../foundation/base/clock.ts";
import { isoDay } from "../../foundation/base/days.ts";
import type { Db } from "../../foundation/db/open.ts";
import { evidenceJson } from "../../verify/store.ts";
import { findRowOwner } from "./row-owners.ts";

type StoredValue = string | number | Uint8Array | null;

/** A table, and how the account of a row is found. */
export interface StoredTable {
  readonly name: string;
  readonly columns: readonly string[];
  /** Identifies a row: `rowid`, or the columns of the primary key. */
  readonly key: readonly string[];
  /** An SQL expression over a row; null for tables that belong to no account. */
  readonly owner: string | null;
}

export interface StoredRow {
  readonly key: readonly StoredValue[];
  readonly values: Readonly<Record<string, StoredValue>>;
}

/** Rows of one table. */
export interface RowsOfTable {
  readonly table: StoredTable;
  readonly rows: readonly StoredRow[];
}

const ROWS_AT_ONCE = 200;
/** Has rows of up to 25 MiB. */
const MAILS = "dmarc_raw";
/** Has parts of rows: to a person they are one. */
const MAIL_CHUNKS = "dmarc_raw_chunks";

/** Reads whole rows of any table, in short reads without a transaction. */
export class StoredRows {
  readonly #sqlite: Sqlite;

  constructor({ sqlite }: Pick<Db, "sqlite">) {
    this.#sqlite = sqlite;
  }

  tables(): StoredTable[] {
    const tables = this.#sqlite.query<{ name: string; type: string; wr: 0 | 1 }, []>("PRAGMA main.table_list").all();
    return tables
      .filter(({ name, type }) => type === "table" && !name.startsWith("sqlite"))
      .map(({ name, wr }) => this.#table(name, wr === 1))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** The rows of an account, page after page. */
  *ofAccount(accountId: string): Generator<RowsOfTable, void> {
    for (const table of this.tables()) {
      if (table.owner === null || table.name === MAIL_CHUNKS) continue;
      for (let after: readonly StoredValue[] = []; ;) {
        const rows = this.#page(table, accountId, after);
        const last = rows.at(-1);
        if (last === undefined) break;
        yield { table, rows };
        after = last.key;
      }
    }
  }

  /** The row with a key; undefined where it is gone, or is not of the account. Null: of any or no account. */
  find(
    { name, columns, owner }: StoredTable,
    key: Readonly<Record<string, StoredValue>>,
    accountId: string | null,
  ): StoredRow | undefined {
    if (accountId !== null && owner === null) return undefined;
    const conditions = [
      ...Object.keys(key).map((column) => `${column} = ?`),
      ...(accountId === null ? [] : [`${owner} = ?`]),
    ];
    const values = this.#sqlite
      .query<Record<string, StoredValue>, StoredValue[]>(
        `SELECT ${quoted(columns)} FROM "${name}" WHERE ${conditions.join(" AND ")} LIMIT 1`,
      )
      .get(...Object.values(key), ...(accountId === null ? [] : [accountId]));
    return values === null ? undefined : { key: Object.values(key), values };
  }

  #page({ name, columns, key, owner }: StoredTable, accountId: string, after: readonly StoredValue[]): StoredRow[] {
    const keys = key.map((column) => (column === "rowid" ? column : `"${column}"`)).join(", ");
    const isAfter = after.length === 0 ? "" : `(${keys}) > (${after.map(() => "?").join(", ")}) AND`;
    const selected = key.map((column, at) => `${column === "rowid" ? column : `"${column}"`} AS stored_key_${at}`);
    const limit = name === MAILS ? 1 : ROWS_AT_ONCE;
    const rows = this.#sqlite
      .query<Record<string, StoredValue>, StoredValue[]>(
        `SELECT ${selected.join(", ")}, ${quoted(columns)} FROM "${name}"
          WHERE ${isAfter} ${owner} = ? ORDER BY ${keys} LIMIT ${limit}`,
      )
      .all(...after, accountId);
    return rows.map((row) => ({
      key: key.map((_, at) => row[`stored_key_${at}`] ?? null),
      values: Object.fromEntries(columns.map((column) => [column, row[column] ?? null])),
    }));
  }

  #table(name: string, isWithoutRowid: boolean): StoredTable {
    const columns = this.#sqlite.query<{ name: string; pk: number }, []>(`PRAGMA table_info("${name}")`).all();
    const primary = columns.filter(({ pk }) => pk > 0).toSorted((a, b) => a.pk - b.pk);
    return {
      name,
      columns: columns.map((column) => column.name),
      key: isWithoutRowid ? primary.map((column) => column.name) : ["rowid"],
      owner: findRowOwner(this.#sqlite, name)?.account ?? null,
    };
  }
}

const quoted = (columns: readonly string[]): string => columns.map((column) => `"${column}"`).join(", ");

/** Columns with a secret, or what proves one. */
const SECRET = /(?:^|_)(?:hash|token|secret|password|codes|counter)$/;
/** The token of a reporting address is in the DNS. */
const PUBLIC: ReadonlySet<string> = new Set(["dmarc_domains.token"]);

export const isSecretColumn = (table: string, column: string): boolean =>
  SECRET.test(column) && !PUBLIC.has(`${table}.${column}`);

/** A row for a person: without secrets, with times in ISO 8601, days as dates, JSON as values, and other bytes as base64. */
export const exportView = (table: string, { values }: StoredRow): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(values)
      .filter(([column]) => !isSecretColumn(table, column))
      .map(([column, value]) => viewOfValue(table, column, value)),
  );

const viewOfValue = (table: string, column: string, value: StoredValue): readonly [name: string, value: unknown] => {
  if (table.endsWith("_evidence") && column === "body") return [column, evidenceOf(value)];
  if (value instanceof Uint8Array) return [column, Buffer.from(value).toString("base64")];
  if (column.endsWith("_ms") && (value === null || typeof value === "number"))
    return [column.slice(0, -"_ms".length), value === null ? null : isoTime(value)];
  if (typeof value === "number" && /(?:^|_)day$/.test(column)) return [column, isoDay(value)];
  return [column, typeof value === "string" && /^[[{]/.test(value) ? parsedOr(value) : value];
};

const evidenceOf = (body: StoredValue): unknown => {
  if (typeof body === "string") return parsedOr(body);
  try {
    return body instanceof Uint8Array ? JSON.parse(evidenceJson(body)) : null;
  } catch {
    // Evidence that cannot be read any more, which no page can show either.
    return null;
  }
};

const parsedOr = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};
