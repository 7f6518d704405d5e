import { type Result, err, ok } from "../base/errors.ts";

export const HEADER_CHOICES = ["auto", "true", "false"] as const;
export type HeaderChoice = (typeof HEADER_CHOICES)[number];

/** What the customer said about the list. `column` is a header name (in any case) or a zero-based index. */
export interface ColumnWish {
  readonly column?: string | undefined;
  readonly header: HeaderChoice;
}

/** Where the addresses stand. `header` is the first record when that names the columns, else null. */
export interface AddressColumn {
  readonly header: readonly string[] | null;
  readonly column: number;
}

/** Columns are told apart by their contents first; a column nearly as full as the fullest wins by its name. */
const NEARLY_AS_FULL = 0.9;
const COLUMNS_SHOWN = 20;
const NAME_CHARACTERS_SHOWN = 40;
const CELL_CHARACTERS_MAX = 320;

const MAIL_NAME =
  /e-?mail|\bmails?\b|courriel|correo|adresse?|address|indirizzo|posta|adres|почт|адрес|邮箱|電子郵件|メール|이메일/i;
const SURELY_MAIL_NAME = /^\W*(?:e[-_ ]?mails?|courriels?|correo)(?![a-z])/i;

/** A first look, not a verdict: something@something without white space or the characters that separate cells. */
export const looksLikeAddress = (cell: string): boolean => {
  const text = cell.trim();
  return text.length <= CELL_CHARACTERS_MAX && /^[^\s@<>,;|]+@[^\s@<>,;|]+$/.test(text);
};

/** In how many of the records the column holds what looks like an address, for every column up to the widest record. */
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
 * Finds the column of addresses and whether the first record is a header, from the first records of a list.
 *
 * Without a wish the column with most addresses is taken; among columns nearly as full the first that is named like
 * addresses, else the fullest, else the first. A column named "email" is taken even when nothing in it is an address.
 * The error is a sentence that says what was seen.
 */
export const findAddressColumn = (
  records: ReadonlyArray<readonly string[]>,
  wish: ColumnWish,
): Result<AddressColumn, string> => {
  const first = records[0] ?? [];
  const names = wish.header === "false" ? [] : first.map((name) => name.trim());
  if (wish.column !== undefined) return findWished(records, wish.column, wish.header);
  const below = records.length > 1 && wish.header !== "false" ? records.slice(1) : records;
  const column = fullestColumn(countAddresses(below), names) ?? names.findIndex((name) => SURELY_MAIL_NAME.test(name));
  const bracketed = records.some((record) => record.some((cell) => /<[^\s@<>]+@[^\s@<>]+>/.test(cell)));
  if (column < 0 || (bracketed && !below.some((record) => looksLikeAddress(record[column] ?? "")))) {
    return err(nothingFound(records, names, bracketed));
  }
  return ok({ header: headerOf(records, column, wish.header), column });
};

const findWished = (
  records: ReadonlyArray<readonly string[]>,
  wished: string,
  header: HeaderChoice,
): Result<AddressColumn, string> => {
  const first = records[0] ?? [];
  const name = wished.trim().toLowerCase();
  const named = header === "false" ? -1 : first.findIndex((cell) => cell.trim().toLowerCase() === name);
  if (named >= 0 && name !== "") return ok({ header: first, column: named });
  const width = Math.max(...records.map((record) => record.length));
  const index = /^\d{1,4}$/.test(name) ? Number(name) : -1;
  if (index >= 0 && index < width) return ok({ header: headerOf(records, index, header), column: index });
  return err(
    `There is no column ${JSON.stringify(shorten(wished))}. Choose one of these by name or by its number from 0: ${list(first)}.`,
  );
};

const fullestColumn = (counts: readonly number[], names: readonly string[]): number | null => {
  const most = Math.max(0, ...counts);
  if (most === 0) return null;
  const rivals = counts.flatMap((count, column) => (count >= most * NEARLY_AS_FULL ? [column] : []));
  return rivals.find((column) => MAIL_NAME.test(names[column] ?? "")) ?? counts.indexOf(most);
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

const nothingFound = (
  records: ReadonlyArray<readonly string[]>,
  names: readonly string[],
  bracketed: boolean,
): string => {
  const hint = bracketed
    ? ' Cells such as "Name <name@example.com>" are no addresses: only the address belongs in the cell.'
    : "";
  const seen = names.length > 0 ? names : (records[0] ?? []);
  return `No column of addresses was found in the first ${records.length === 1 ? "row" : `${records.length} rows`}.${hint} Choose one by name or by its number from 0: ${list(seen)}.`;
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
