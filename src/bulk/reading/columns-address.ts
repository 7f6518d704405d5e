import { type Result, err, ok } from "../../foundation/base/errors.ts";
import { CELL_CHARACTERS_MAX, readAddressCell } from "../../foundation/mail/address-in-cell.ts";

export const HEADER_CHOICES = ["auto", "true", "false"] as const;
export type HeaderChoice = (typeof HEADER_CHOICES)[number];

/** Options of the request. `column`: a header name (case-insensitive) or a zero-based index. */
export interface ColumnOptions {
  readonly column?: string | undefined;
  readonly header: HeaderChoice;
}

/** Why a column was chosen. The codes are part of the API. */
export const COLUMN_REASONS = [
  "requested",
  "only_addresses",
  "named_email",
  "most_addresses",
  "name_among_equals",
  "first_of_equals",
  "name_only",
] as const;
export type ColumnReason = (typeof COLUMN_REASONS)[number];

const REASON_SENTENCES: Readonly<Record<ColumnReason, string>> = {
  requested: "The request names this column.",
  only_addresses: "It is the only column with addresses.",
  named_email: "It is named for addresses and has one in at least half of the rows, although another column has more.",
  most_addresses: "It has more addresses than any other column.",
  name_among_equals:
    "Several columns have about the same number of addresses; this one has the name of an address column.",
  first_of_equals: "Several columns have about the same number of addresses; this is the first with the most.",
  name_only: "No column has addresses; this one has the name of an address column.",
};

/** What follows a reason when the user of the API has to name the column: then its columns. */
export const CHOOSE_COLUMN = " Choose one by name or zero-based index:";

/** A reason as a sentence for people. */
export const describeColumnReason = (reason: ColumnReason): string => REASON_SENTENCES[reason];

/** The column of addresses. `header`: the record that names the columns, or null. */
export interface AddressColumn {
  readonly header: readonly string[] | null;
  readonly column: number;
  readonly reason: ColumnReason;
  /** Records above the header, such as a title or export date. */
  readonly titles: ReadonlyArray<readonly string[]>;
}

/** A column with at least this share of the addresses of the fullest column can win by its name. */
const RIVAL_SHARE = 0.9;
const COLUMNS_SHOWN = 20;
const NAME_CHARACTERS_SHOWN = 40;

const MAIL_NAME =
  /e-?mail|\bmails?\b|courriel|correo|adresse?|address|indirizzo|posta|adres|почт|адрес|邮箱|電子郵件|メール|이메일/i;
const SURELY_MAIL_NAME = /^\W*(?:e[-_ ]?mails?|courriels?|correo)(?![a-z])/i;

/** A column with one of these names, as it is, wins if at least half of its rows have an address. */
const EXACT_NAMES: ReadonlySet<string> = new Set(["email", "e-mail", "mail"]);

/** Rows recognized as titles above a header, and their total length. */
const TITLES_MAX = 10;
const TITLES_CHARACTERS_MAX = 4096;

/** Whether a cell seems to contain an address. Cheap; not a verdict. */
export const looksLikeAddress = (cell: string): boolean => {
  const text = cell.trim();
  if (text.length > CELL_CHARACTERS_MAX || !text.includes("@")) return false;
  return /^[^\s@<>,;|"':]+@[^\s@<>,;|"']+$/.test(text) || readAddressCell(text).ok;
};

/** The number of records with an address in each column. */
export const countAddresses = (records: ReadonlyArray<readonly string[]>): number[] => {
  const counts: number[] = [];
  for (const record of records) {
    for (const [column, cell] of record.entries()) {
      counts[column] = (counts[column] ?? 0) + (looksLikeAddress(cell) ? 1 : 0);
    }
  }
  return Array.from(counts, (count) => count ?? 0);
};

/**
 * Finds the column of addresses, the header and the titles above it, from the first records of a list.
 *
 * By default a column that is named exactly `email`, `e-mail` or `mail` and has an address in at least half of the rows; otherwise
 * the column with the most addresses; among columns with nearly as many, the first that is named like an
 * address column, otherwise the fullest. A column named "email" is chosen even when it contains no address. The error
 * is a sentence that lists the columns.
 */
export const findAddressColumn = (
  all: ReadonlyArray<readonly string[]>,
  options: ColumnOptions,
): Result<AddressColumn, string> => {
  const titles = options.header === "auto" ? titlesOf(all) : [];
  const records = all.slice(titles.length);
  const first = records[0] ?? [];
  const names = options.header === "false" ? [] : first.map((name) => name.trim());
  if (options.column !== undefined) return findRequested(records, options.column, { header: options.header, titles });
  const below = records.length > 1 && options.header !== "false" ? records.slice(1) : records;
  const found = fullestColumn(countAddresses(below), { names, rows: below.length }) ?? namedColumn(names);
  if (found === null) return err(nothingFound(records, names));
  return ok({ ...found, header: headerOf(records, found.column, options.header), titles });
};

const findRequested = (
  records: ReadonlyArray<readonly string[]>,
  requested: string,
  { header, titles }: { header: HeaderChoice; titles: AddressColumn["titles"] },
): Result<AddressColumn, string> => {
  const first = records[0] ?? [];
  const name = requested.trim().toLowerCase();
  const named = header === "false" ? -1 : first.findIndex((cell) => cell.trim().toLowerCase() === name);
  const reason = "requested";
  if (named >= 0 && name !== "") return ok({ header: first, column: named, reason, titles });
  const width = Math.max(...records.map((record) => record.length));
  const index = /^\d{1,4}$/.test(name) ? Number(name) : -1;
  if (index >= 0 && index < width)
    return ok({ header: headerOf(records, index, header), column: index, reason, titles });
  return err(`There is no column ${JSON.stringify(shorten(requested))}.${CHOOSE_COLUMN} ${list(first)}.`);
};

interface ChosenColumn {
  readonly column: number;
  readonly reason: ColumnReason;
}

const namedColumn = (names: readonly string[]): ChosenColumn | null => {
  const column = names.findIndex((name) => SURELY_MAIL_NAME.test(name));
  return column < 0 ? null : { column, reason: "name_only" };
};

const fullestColumn = (
  counts: readonly number[],
  { names, rows }: { readonly names: readonly string[]; readonly rows: number },
): ChosenColumn | null => {
  const most = Math.max(0, ...counts);
  if (most === 0) return null;
  const isExact = (count: number, column: number) =>
    EXACT_NAMES.has((names[column] ?? "").toLowerCase()) && 2 * count >= rows;
  const exact = Math.max(0, ...counts.filter(isExact));
  const rivals = counts.flatMap((count, column) => (count >= most * RIVAL_SHARE ? [column] : []));
  const fullest = counts.indexOf(most);
  if (counts.filter((count) => count > 0).length === 1) return { column: fullest, reason: "only_addresses" };
  // Of several, the fullest; of equals, the first.
  const exactAt = counts.findIndex((count, column) => count === exact && isExact(count, column));
  if (exactAt >= 0 && !rivals.includes(exactAt)) return { column: exactAt, reason: "named_email" };
  if (exactAt >= 0 && rivals.length > 1) return { column: exactAt, reason: "name_among_equals" };
  if (rivals.length === 1) return { column: fullest, reason: "most_addresses" };
  const named = rivals.find((column) => MAIL_NAME.test(names[column] ?? ""));
  return named === undefined
    ? { column: fullest, reason: "first_of_equals" }
    : { column: named, reason: "name_among_equals" };
};

const filledIn = (record: readonly string[]): number => record.filter((cell) => cell.trim() !== "").length;

/**
 * The records above the header. The header is the last record before the first address; the records above are titles when
 * each fills one cell or at most half as many as the header or, in a list of one column, when the header is named like an address column.
 */
const titlesOf = (records: ReadonlyArray<readonly string[]>): ReadonlyArray<readonly string[]> => {
  const firstAddress = records.findIndex((record) => record.some((cell) => cell.includes("@")));
  if (firstAddress < 2 || firstAddress > TITLES_MAX + 1) return [];
  const [titles, header] = [records.slice(0, firstAddress - 1), records[firstAddress - 1] ?? []];
  if (titles.flat().join("").length > TITLES_CHARACTERS_MAX) return [];
  if (filledIn(header) === 1) return header.some((name) => SURELY_MAIL_NAME.test(name)) ? titles : [];
  const isAbove = titles.every((title) => filledIn(title) === 1 || filledIn(title) * 2 <= filledIn(header));
  // A row that names the column of addresses is the header, not a title of the row below.
  const isNamedAbove =
    titles.flat().some((cell) => MAIL_NAME.test(cell)) && !header.some((name) => MAIL_NAME.test(name));
  return isAbove && !isNamedAbove ? titles : [];
};

const headerOf = (
  records: ReadonlyArray<readonly string[]>,
  column: number,
  choice: HeaderChoice,
): readonly string[] | null => {
  const first = records[0] ?? [];
  if (choice !== "auto") return choice === "true" ? first : null;
  const name = (first[column] ?? "").trim();
  if (first.some((cell) => cell.includes("@")) || name === "") return null;
  if (MAIL_NAME.test(name)) return first;
  // A mistyped address ("jo.example.com") or a number in the first row is data, not a name.
  return first.some((cell) => /\S\.\S|^\s*[-+]?\d[\d.,:/ -]*$/.test(cell)) ? null : first;
};

const nothingFound = (records: ReadonlyArray<readonly string[]>, names: readonly string[]): string => {
  const seen = names.length > 0 ? names : (records[0] ?? []);
  return `No column with addresses was found in the first ${records.length === 1 ? "row" : `${records.length} rows`}.${CHOOSE_COLUMN} ${list(seen)}.`;
};

const shorten = (text: string): string => {
  const line = text.replace(/[\s\p{Cc}]+/gu, " ").trim();
  return line.length > NAME_CHARACTERS_SHOWN ? `${line.slice(0, NAME_CHARACTERS_SHOWN)}…` : line;
};

const list = (names: readonly string[]): string => {
  const shown = names.slice(0, COLUMNS_SHOWN).map((name, index) => `${index} ${JSON.stringify(shorten(name))}`);
  return names.length > COLUMNS_SHOWN
    ? `${shown.join(", ")} and ${names.length - COLUMNS_SHOWN} more`
    : shown.join(", ");
};
