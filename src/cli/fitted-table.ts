import { safeLine } from "./safe-text.ts";

const GAP = "  ";
/** No column gets narrower than this. */
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

/** Takes from the widest column until all fit. */
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

/** Rows under their headings in at most `width` characters: what is too long for its column goes on in the next line, and nothing is cut. */
export const fittedTable = (
  headings: readonly string[],
  given: ReadonlyArray<readonly string[]>,
  width: number,
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
