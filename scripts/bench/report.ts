import { cellsOf, HEADINGS, type Mark } from "./marks.ts";

const BEGIN = "<!-- `npm run bench -- --report` writes what stands between here and the end -->";
const END = "<!-- end -->";

type Row = readonly string[];

const readRow = (line: string): Row =>
  line
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim());

const cellText = (cell: string): string => cell.replaceAll("|", "\\|").replaceAll(/\s+/g, " ").trim();

/** A table whose columns are aligned, as `npm run format` has it. */
const tableText = ([head = [], ...rows]: readonly Row[]): string => {
  const all = [head, head.map(() => "---"), ...rows];
  const widths = head.map((_, at) => Math.max(...all.map((row) => Bun.stringWidth(row[at] ?? ""))));
  const line = (row: Row): string =>
    `| ${row.map((cell, at) => cell + (cell === "---" ? "-" : " ").repeat((widths[at] ?? 0) - Bun.stringWidth(cell))).join(" | ")} |`;
  return all.map(line).join("\n");
};

interface Report {
  readonly marks: readonly Mark[];
  /** The day of the measurement: `2026-11-27`. */
  readonly day: string;
  /** The machine that measured. */
  readonly machine: string;
  /** Every group, in the order of the table. */
  readonly groups: readonly string[];
}

/**
 * The text of `bench/README.md` with the marks in its table. Rows of the groups that were measured are replaced, those of other
 * groups stay. Throws where the text has no place for the table.
 */
export const withReport = (text: string, { marks, day, machine, groups }: Report): string => {
  const [before, rest = "", ...more] = text.split(`${BEGIN}\n`);
  const [old, after, ...others] = rest.split(END);
  if (before === undefined || old === undefined || after === undefined || more.length + others.length > 0)
    throw new Error(`bench/README.md must have one line "${BEGIN}" and one line "${END}" after it.`);
  const measured = new Set(marks.map(({ group }) => group));
  const kept = old
    .split("\n")
    .map(readRow)
    .filter(([group = ""]) => groups.includes(group) && !measured.has(group));
  const fresh = marks.map((mark) => [...cellsOf(mark), day, machine].map(cellText));
  const rows = groups.flatMap((wanted) => [...kept, ...fresh].filter(([group]) => group === wanted));
  const table = tableText([[...HEADINGS, "date", "machine"], ...rows]);
  return `${before}${BEGIN}\n\n${table}\n\n${END}${after}`;
};
