import type { Database as Sqlite } from "bun:sqlite";
import { findRowOwner, findRowReferences } from "../erase/row-owners.ts";

/** Tables with rows of accounts that stay with their instance, and why. */
export const STAYING: Readonly<Record<string, string>> = {
  sessions: "browsers are signed in at the address of the instance",
  setup_links: "a link has the address of the instance",
  dmarc_mailbox_marks: "about messages in the mailbox of the operator",
};

/** Tables that triggers fill from others, which is then replaced by what they had. */
export const DERIVED: ReadonlySet<string> = new Set(["dmarc_weekly"]);

/** Columns with `number` + 1 of a row in `dmarc_reporters`; 0 and 1 refer to none. */
const VOUCHERS: ReadonlySet<string> = new Set(["is_trusted", "voucher"]);
const REPORTERS = "dmarc_reporters";
/** Rights over the instance do not move. */
const OPERATOR = "users.is_operator";

/** A column of whole numbers that stand for rows of `table`, which are numbered by each instance. */
interface Numbering {
  readonly table: string;
  readonly isVoucher: boolean;
}

interface MovedColumn {
  readonly name: string;
  readonly numbers: Numbering | null;
  /** An SQL expression in place of the stored value; null: as it is stored. */
  readonly fixed: string | null;
}

export interface MovedTable {
  readonly name: string;
  readonly columns: readonly MovedColumn[];
  /** An SQL expression over a row: the id of its account. */
  readonly owner: string;
  /** The column that numbers its rows; null without one. */
  readonly key: string | null;
  /** Columns by which the owners of rows of other tables are found. */
  readonly soughtBy: readonly string[];
}

/** By how much the numbers of the rows of each table grow. */
export type Shifts = ReadonlyMap<string, number>;

export const NO_SHIFTS: Shifts = new Map();

const columnsOfTable = (sqlite: Sqlite, table: string) =>
  sqlite.query<{ name: string; type: string; pk: number }, []>(`PRAGMA table_info("${table}")`).all();

const tableNames = (sqlite: Sqlite): readonly string[] =>
  sqlite
    .query<{ name: string }, []>(
      "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
    )
    .all()
    .map(({ name }) => name);

/** What is known of a table. */
interface TableFacts {
  readonly name: string;
  readonly columns: ReturnType<typeof columnsOfTable>;
  readonly references: ReturnType<typeof findRowReferences>;
}

/** The column that is the whole-number primary key of a table; null without one, or when it refers to another table. */
const keyOf = ({ columns, references }: TableFacts): string | null => {
  const [key, another] = columns.filter(({ pk }) => pk > 0);
  if (key === undefined || another !== undefined || !/int/i.test(key.type)) return null;
  return references.has(key.name) ? null : key.name;
};

/** The tables with rows of accounts, as the schema has them; that of the account itself first. */
export const movedTables = (sqlite: Sqlite): readonly MovedTable[] => {
  const facts = tableNames(sqlite).map((name) => ({
    ...{ name, columns: columnsOfTable(sqlite, name), references: findRowReferences(sqlite, name) },
  }));
  const keys = new Map(facts.map((table) => [table.name, keyOf(table)]));
  const sought = new Set(
    facts.flatMap(({ references }) => [...references.values()].flat()).map(({ table, key }) => `${table}.${key}`),
  );
  const numbersOf = ({ name: table, references }: TableFacts, column: string): Numbering | null => {
    if (keys.get(table) === column) return { table, isVoucher: false };
    if (VOUCHERS.has(column)) return { table: REPORTERS, isVoucher: true };
    const found = references.get(column)?.find((one) => keys.get(one.table) === one.key);
    return found === undefined ? null : { table: found.table, isVoucher: false };
  };
  const tables = facts.flatMap((table): MovedTable[] => {
    const { name } = table;
    const owner = name in STAYING ? null : findRowOwner(sqlite, name);
    if (owner === null) return [];
    const columns = table.columns.map((column) => ({
      name: column.name,
      numbers: numbersOf(table, column.name),
      fixed: `${name}.${column.name}` === OPERATOR ? "0" : null,
    }));
    const soughtBy = columns.map((column) => column.name).filter((column) => sought.has(`${name}.${column}`));
    return [{ name, owner: owner.account, columns, key: keys.get(name) ?? null, soughtBy }];
  });
  return tables.toSorted((a, b) => Number(b.name === "accounts") - Number(a.name === "accounts"));
};

/** The value of a column with the numbers of the other instance. */
export const shifted = ({ name, numbers, fixed }: MovedColumn, shifts: Shifts, sign: 1 | -1 = 1): string => {
  if (fixed !== null) return fixed;
  const by = sign * ((numbers === null ? undefined : shifts.get(numbers.table)) ?? 0);
  if (by === 0) return `"${name}"`;
  const sum = `"${name}" + (${by})`;
  return numbers?.isVoucher === true ? `CASE WHEN "${name}" > 1 THEN ${sum} ELSE "${name}" END` : sum;
};

/** Rows of a table, and a sum for each column: of whole numbers, and of the bytes of texts and other values. */
export interface TableSums {
  readonly table: string;
  readonly rows: number;
  readonly sums: Readonly<Record<string, number>>;
}

/** Sums of whole numbers are of their remainders, so that none overflows. */
const MODULUS = 1_000_003;

/** Which rows of a table are summed, and by which shifts their numbers are too large. */
interface SummedRows {
  readonly schema: "main" | "moved";
  /** The id of the account; null for all rows. */
  readonly account: string | null;
  readonly shifts: Shifts;
}

export const sumsOf = (sqlite: Sqlite, table: MovedTable, { schema, account, shifts }: SummedRows): TableSums => {
  const { name, columns, owner } = table;
  const values = columns.map((column, at) => `${shifted(column, shifts, -1)} AS v${at}`);
  const totals = columns.map(
    (_, at) =>
      `total(CASE typeof(v${at}) WHEN 'integer' THEN v${at} % ${MODULUS} WHEN 'null' THEN 0 ELSE length(CAST(v${at} AS BLOB)) END) AS s${at}`,
  );
  const rows = `SELECT ${values.join(", ")} FROM "${schema}"."${name}" WHERE ?1 IS NULL OR ${owner} = ?1`;
  const row = sqlite
    .query<Record<string, number>, [string | null]>(`SELECT count(*) AS n, ${totals.join(", ")} FROM (${rows})`)
    .get(account);
  const sums = Object.fromEntries(columns.map((column, at) => [column.name, row?.[`s${at}`] ?? 0]));
  return { table: name, rows: row?.n ?? 0, sums };
};

/** Where two sums of a table differ, such as `ledger.available`; null where they are the same. */
export const differenceOf = (one: TableSums, other: TableSums | undefined): string | null => {
  if (one.rows !== other?.rows) return `${one.table}: ${one.rows} rows, ${other?.rows ?? 0} on the other side`;
  const column = Object.keys(one.sums).find((name) => one.sums[name] !== other.sums[name]);
  return column === undefined ? null : `${one.table}.${column}: the sums differ`;
};
