/**
 * Characters that control a terminal or are invisible: C0 and C1 controls, DEL, direction marks, zero-width characters,
 * line and paragraph separators, lone surrogates. Line feeds are kept.
 */
const UNSAFE = /(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

const escaped = (character: string): string =>
  Array.from(
    { length: character.length },
    (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`,
  ).join("");

/** A text that is safe to print on a terminal: unsafe characters become `\uXXXX`, which JSON reads as the same. */
export const safeText = (text: string): string => text.replace(UNSAFE, escaped);

/** The same for a text that must stay on one line. */
export const safeLine = (text: string): string => safeText(text).replaceAll("\n", "\\u000a");

const GAP = "  ";
/** The narrowest width of a column. */
const COLUMN_MIN = 8;

/** A cell in lines of at most `width` characters, broken at spaces where there are any. */
export const wrapText = (cell: string, width: number): string[] => {
  const lines: string[] = [];
  let line = "";
  for (const word of cell.split(" ")) {
    const joined = line === "" ? word : `${line} ${word}`;
    if (joined.length <= width) {
      line = joined;
      continue;
    }
    if (line !== "") lines.push(line);
    line = word;
    while (line.length > width) {
      lines.push(line.slice(0, width));
      line = line.slice(width);
    }
  }
  return [...lines, line];
};

/** Narrows the widest column until all fit. */
const fitWidths = (natural: readonly number[], width: number): number[] => {
  const widths = [...natural];
  const room = width - GAP.length * (widths.length - 1);
  for (let over = widths.reduce((sum, each) => sum + each, 0) - room; over > 0; over -= 1) {
    const widest = Math.max(...widths);
    if (widest <= COLUMN_MIN) break;
    const at = widths.indexOf(widest);
    widths[at] = widest - 1;
  }
  return widths;
};

/**
 * Rows under their headings, in columns as wide as they need. In a table of at most `width` characters, a cell that is
 * too long for its column continues on the next line; nothing is cut.
 */
export const table = (
  headings: readonly string[],
  given: ReadonlyArray<readonly string[]>,
  width = Number.POSITIVE_INFINITY,
): string => {
  const rows = given.map((row) => row.map(safeLine));
  const natural = headings.map((heading, at) => Math.max(heading.length, ...rows.map((row) => row[at]?.length ?? 0)));
  const widths = fitWidths(natural, width);
  const linesOf = (cells: readonly string[]): string[] => {
    const columns = widths.map((columnWidth, at) => wrapText(cells[at] ?? "", columnWidth));
    const height = Math.max(...columns.map((lines) => lines.length));
    return Array.from({ length: height }, (_, line) =>
      columns
        .map((lines, at) => (lines[line] ?? "").padEnd(widths[at] ?? 0))
        .join(GAP)
        .trimEnd(),
    );
  };
  return [headings, ...rows].flatMap(linesOf).join("\n");
};
