import { cellsOf, HEADINGS, type Mark } from "./marks.ts";

const BEGIN = "<!-- `npm run bench -- --report` writes what stands between here and the end -->";
const END = "<!-- end -->";

const rowOf = (cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll(/\s+/g, " ").trim()).join(" | ")} |`;

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
  const groupOf = (row: string): string => row.split(" | ", 1)[0]?.slice(2) ?? "";
  const kept = old.split("\n").filter((row) => groups.includes(groupOf(row)) && !measured.has(groupOf(row)));
  const fresh = marks.map((mark) => rowOf([...cellsOf(mark), day, machine]));
  const rows = groups.flatMap((group) => [...kept, ...fresh].filter((row) => groupOf(row) === group));
  const head = [...HEADINGS, "date", "machine"];
  const table = [rowOf(head), rowOf(head.map(() => "---")), ...rows].join("\n");
  return `${before}${BEGIN}\n\n${table}\n\n${END}${after}`;
};
