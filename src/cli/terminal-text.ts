import { safeLine } from "../foundation/base/visible-text.ts";

const GAP = "  ";
/** The narrowest width of a value. */
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

/** Longer words (URLs, notes) may be broken. */
const WORD_KEPT_MAX = 60;

/** The width below which a column would break a word. */
const leastWidth = (cells: readonly string[]): number =>
  Math.min(WORD_KEPT_MAX, Math.max(...cells.flatMap((cell) => cell.split(" ").map((word) => word.length))));

/** Narrows the widest columns until all fit, and none below its least width; null when they cannot. */
const fitWidths = (columns: ReadonlyArray<readonly string[]>, width: number): number[] | null => {
  const widths = columns.map((cells) => Math.max(...cells.map((cell) => cell.length)));
  const least = columns.map(leastWidth);
  const room = width - GAP.length * (widths.length - 1);
  for (let over = widths.reduce((sum, each) => sum + each, 0) - room; over > 0; over -= 1) {
    const widest = widths.reduce(
      (best, each, at) => (each > (least[at] ?? 0) && each > (widths[best] ?? 0) ? at : best),
      widths.findIndex((each, at) => each > (least[at] ?? 0)),
    );
    if (widest < 0) return null;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
};

/** Each row as a block of lines `HEADING  value`, with an empty line between blocks. */
const blocks = (headings: readonly string[], rows: ReadonlyArray<readonly string[]>, width: number): string => {
  const labelWidth = Math.max(...headings.map((heading) => heading.length)) + GAP.length;
  const valueWidth = Math.max(COLUMN_MIN, width - labelWidth);
  const linesOf = (row: readonly string[]): string[] =>
    headings.flatMap((heading, at) =>
      wrapText(row[at] ?? "", valueWidth).map((line, number) =>
        ((number === 0 ? heading : "").padEnd(labelWidth) + line).trimEnd(),
      ),
    );
  return rows.map((row) => linesOf(row).join("\n")).join("\n\n");
};

/**
 * Rows under their headings, in columns as wide as they need. In a table of at most `width` characters, a cell that is
 * too long for its column continues on the next line, so that no word is broken and nothing is cut. Where that is
 * impossible, each row becomes a block of lines.
 */
export const table = (
  headings: readonly string[],
  given: ReadonlyArray<readonly string[]>,
  width = Number.POSITIVE_INFINITY,
): string => {
  const rows = given.map((row) => row.map(safeLine));
  const columns = headings.map((heading, at) => [heading, ...rows.map((row) => row[at] ?? "")]);
  const widths = fitWidths(columns, width);
  if (widths === null) return blocks(headings, rows, width);
  const linesOf = (cells: readonly string[]): string[] => {
    const parts = widths.map((columnWidth, at) => wrapText(cells[at] ?? "", columnWidth));
    const height = Math.max(...parts.map((lines) => lines.length));
    return Array.from({ length: height }, (_, line) =>
      parts
        .map((lines, at) => (lines[line] ?? "").padEnd(widths[at] ?? 0))
        .join(GAP)
        .trimEnd(),
    );
  };
  return [headings, ...rows].flatMap(linesOf).join("\n");
};

/** A time of the API as tables show it: to the second, in UTC. */
export const tableTime = (time: string | null, otherwise = ""): string =>
  time === null ? otherwise : time.slice(0, 19).replace("T", " ");

/** A size of a file or disk, such as `351 kB`. */
export const sizeText = (bytes: number): string => {
  if (bytes >= 1e9) return `${(bytes / 1e9).toFixed(1)} GB`;
  return bytes >= 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${Math.ceil(bytes / 1e3)} kB`;
};
