/** A cell of a row; null is written as an empty cell. Only strings can be formulas. */
export type Cell = string | number | boolean | null;

/** The delimiters that a written file can have. */
type WrittenDelimiter = "," | ";" | "\t" | "|";

/**
 * A cell that a spreadsheet would run as a formula, made text by a leading apostrophe (OWASP, "CSV Injection").
 *
 * Prefixed is every cell whose first character, white space and invisible characters aside, is one of = + - @ or their
 * full-width forms, or that starts with a tab, a line end or a NUL. Numbers and telephone numbers are spared: of digits,
 * blanks and `+-()./,` alone no spreadsheet makes more than a number.
 */
export const defused = (cell: string): string =>
  STARTS_FORMULA.test(cell) && !IS_NUMBER.test(cell) ? `'${cell}` : cell;

/** A cell as RFC 4180 writes it: in quotes where it holds a quote, a line end or any of the usual delimiters. */
export const written = (cell: string): string => (NEEDS_QUOTES.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);

interface WrittenAs {
  readonly delimiter?: WrittenDelimiter;
  /** False writes the cells as they are, for programs. */
  readonly defuse?: boolean;
}

/** One line of a CSV file, its cells defused and quoted, with the CRLF that ends it (RFC 4180 §2). */
export const csvLine = (cells: readonly Cell[], { delimiter = ",", defuse = true }: WrittenAs = {}): string => {
  let line = "";
  for (let at = 0; at < cells.length; at += 1) {
    if (at > 0) line += delimiter;
    const cell = cells[at] ?? "";
    line += typeof cell === "string" ? written(defuse ? defused(cell) : cell) : String(cell);
  }
  // A lone empty cell would be an empty line, which readers take for no row at all.
  return line === "" ? '""\r\n' : `${line}\r\n`;
};

const STARTS_FORMULA = /^(?:[\t\r\n\0]|[\s\0-\x20\u00ad\u200b-\u200f\u2060\ufeff]*[=+\-@＝＋－＠])/;
const IS_NUMBER = /^[+-][\d \u00a0+\-()./,]*$/;
/** White space at the edges is quoted, too: some readers trim what is not. */
const NEEDS_QUOTES = /[",;\t|\r\n]|^\s|\s$/;
