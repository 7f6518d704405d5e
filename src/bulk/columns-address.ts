import { type Result, err, ok } from "../base/errors.ts";
import { CELL_CHARACTERS_MAX, readAddressCell } from "../mail/address-in-cell.ts";

export const HEADER_CHOICES = ["auto", "true", "false"] as const;
export type HeaderChoice = (typeof HEADER_CHOICES)[number];

/** What the customer said about the list. `column` is a header name (in any case) or a zero-based index. */
export interface ColumnWish {
  readonly column?: string | undefined;
  readonly header: HeaderChoice;
}

/** Why a column was taken. The codes are part of the interface. */
export const COLUMN_REASONS = [
  "requested",
  "only_addresses",
  "most_addresses",
  "name_among_equals",
  "first_of_equals",
  "name_only",
] as const;
export type ColumnReason = (typeof COLUMN_REASONS)[number];

const REASON_SENTENCES: Readonly<Record<ColumnReason, string>> = {
  requested: "The request names this column.",
  only_addresses: "It is the only column with addresses.",
  most_addresses: "It has more addresses than any other column.",
  name_among_equals: "Several columns have about as many addresses; its name is that of an address column.",
  first_of_equals: "Several columns have about as many addresses; it is the first of those with most.",
  name_only: "No column has addresses; its name is that of an address column.",
};

/** A reason as a sentence for people. */
export const describeColumnReason = (reason: ColumnReason): string => REASON_SENTENCES[reason];

/** Where the addresses stand. `header` is the record that names the columns, else null. */
export interface AddressColumn {
  readonly header: readonly string[] | null;
  readonly column: number;
  readonly reason: ColumnReason;
  /** The records above the header: a title, a date of export. They hold no addresses. */
  readonly titles: ReadonlyArray<readonly string[]>;
}

/** Columns are told apart by their contents first; a column nearly as full as the fullest wins by its name. */
const NEARLY_AS_FULL = 0.9;
const COLUMNS_SHOWN = 20;
const NAME_CHARACTERS_SHOWN = 40;

const MAIL_NAME =
  /e-?mail|\bmails?\b|courriel|correo|adresse?|address|indirizzo|posta|adres|почт|адрес|邮箱|電子郵件|メール|이메일/i;
const SURELY_MAIL_NAME = /^\W*(?:e[-_ ]?mails?|courriels?|correo)(?![a-z])/i;

/** Rows above a header that are looked for, and the text that they may have in all. */
const TITLES_MAX = 10;
const TITLES_CHARACTERS_MAX = 4096;

/** A first look, not a verdict: a cell in which an address would be read. */
export const looksLikeAddress = (cell: string): boolean => {
  const text = cell.trim();
  if (text.length > CELL_CHARACTERS_MAX || !text.includes("@")) return false;
  return /^[^\s@<>,;|"':]+@[^\s@<>,;|"']+$/.test(text) || readAddressCell(text).ok;
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
 * Finds the column of addresses, the header and the titles above it, from the first records of a list.
 *
 * Without a wish the column with most addresses is taken; among columns nearly as full the first that is named like
 * addresses, else the fullest, else the first. A column named "email" is taken even when nothing in it is an address.
 * The error is a sentence that says what was seen.
 */
export const findAddressColumn = (
  all: ReadonlyArray<readonly string[]>,
  wish: ColumnWish,
): Result<AddressColumn, string> => {
  const titles = wish.header === "auto" ? titlesOf(all) : [];
  const records = all.slice(titles.length);
  const first = records[0] ?? [];
  const names = wish.header === "false" ? [] : first.map((name) => name.trim());
  if (wish.column !== undefined) return findWished(records, wish.column, { header: wish.header, titles });
  const below = records.length > 1 && wish.header !== "false" ? records.slice(1) : records;
  const found = fullestColumn(countAddresses(below), names) ?? namedColumn(names);
  if (found === null) return err(nothingFound(records, names));
  return ok({ ...found, header: headerOf(records, found.column, wish.header), titles });
};

const findWished = (
  records: ReadonlyArray<readonly string[]>,
  wished: string,
  { header, titles }: { header: HeaderChoice; titles: AddressColumn["titles"] },
): Result<AddressColumn, string> => {
  const first = records[0] ?? [];
  const name = wished.trim().toLowerCase();
  const named = header === "false" ? -1 : first.findIndex((cell) => cell.trim().toLowerCase() === name);
  const reason = "requested";
  if (named >= 0 && name !== "") return ok({ header: first, column: named, reason, titles });
  const width = Math.max(...records.map((record) => record.length));
  const index = /^\d{1,4}$/.test(name) ? Number(name) : -1;
  if (index >= 0 && index < width)
    return ok({ header: headerOf(records, index, header), column: index, reason, titles });
  return err(
    `There is no column ${JSON.stringify(shorten(wished))}. Choose one of these by name or by its number from 0: ${list(first)}.`,
  );
};

interface ChosenColumn {
  readonly column: number;
  readonly reason: ColumnReason;
}

const namedColumn = (names: readonly string[]): ChosenColumn | null => {
  const column = names.findIndex((name) => SURELY_MAIL_NAME.test(name));
  return column < 0 ? null : { column, reason: "name_only" };
};

const fullestColumn = (counts: readonly number[], names: readonly string[]): ChosenColumn | null => {
  const most = Math.max(0, ...counts);
  if (most === 0) return null;
  const rivals = counts.flatMap((count, column) => (count >= most * NEARLY_AS_FULL ? [column] : []));
  const fullest = counts.indexOf(most);
  if (counts.filter((count) => count > 0).length === 1) return { column: fullest, reason: "only_addresses" };
  if (rivals.length === 1) return { column: fullest, reason: "most_addresses" };
  const named = rivals.find((column) => MAIL_NAME.test(names[column] ?? ""));
  return named === undefined
    ? { column: fullest, reason: "first_of_equals" }
    : { column: named, reason: "name_among_equals" };
};

const filledIn = (record: readonly string[]): number => record.filter((cell) => cell.trim() !== "").length;

/**
 * The first records that stand above a header. The header is the last of the records before the first address; what is
 * above it are titles when each fills one cell or half as many as it at most, or, in a list of one column, when it is named like addresses.
 */
const titlesOf = (records: ReadonlyArray<readonly string[]>): ReadonlyArray<readonly string[]> => {
  const firstAddress = records.findIndex((record) => record.some((cell) => cell.includes("@")));
  if (firstAddress < 2 || firstAddress > TITLES_MAX + 1) return [];
  const [titles, header] = [records.slice(0, firstAddress - 1), records[firstAddress - 1] ?? []];
  if (titles.flat().join("").length > TITLES_CHARACTERS_MAX) return [];
  if (filledIn(header) === 1) return header.some((name) => SURELY_MAIL_NAME.test(name)) ? titles : [];
  const isAbove = titles.every((title) => filledIn(title) === 1 || filledIn(title) * 2 <= filledIn(header));
  // A header that names the column of addresses alone is no title of the row below it.
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
  return `No column of addresses was found in the first ${records.length === 1 ? "row" : `${records.length} rows`}. Choose one by name or by its number from 0: ${list(seen)}.`;
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
