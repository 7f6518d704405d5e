import type { Asked, Judged } from "./run.ts";

const said = ({ verdict, subStatus, problem }: Asked): string =>
  problem === undefined ? `${verdict}/${subStatus}` : "no answer";

const padded = (cells: readonly string[], widths: readonly number[]): string =>
  cells
    .map((cell, column) => cell + " ".repeat(Math.max(0, (widths[column] ?? 0) - Bun.stringWidth(cell))))
    .join("  ")
    .trimEnd();

const HEADINGS = ["address", "true state", "expected", "got", "by HTTP", "quality", "confidence", "ms", ""];

/** The table of a run as text, and below it what was said instead of an answer, one problem a line. */
export const reportText = (judged: readonly Judged[]): string => {
  const lines = judged.map(({ row, cli, http, right }) => [
    row.address.length > 40 ? `${row.address.slice(0, 18)}…${row.address.slice(-20)}` : row.address,
    row.truth,
    `${row.verdict}/${row.subStatus}`,
    said(cli),
    said(http) === said(cli) ? "same" : said(http),
    String(cli.quality),
    String(cli.confidence),
    String(cli.elapsedMs),
    right ? "right" : "WRONG",
  ]);
  const widths = HEADINGS.map((heading, column) =>
    Math.max(heading.length, ...lines.map((cells) => Bun.stringWidth(cells[column] ?? ""))),
  );
  const problems = judged.flatMap(({ row, cli, http }) => [
    ...(cli.problem === undefined ? [] : [`${row.address} by command line: ${cli.problem}`]),
    ...(http.problem === undefined ? [] : [`${row.address} by HTTP: ${http.problem}`]),
  ]);
  const passed = judged.filter(({ right }) => right).length;
  return [
    padded(HEADINGS, widths),
    ...lines.map((cells) => padded(cells, widths)),
    ...problems,
    `${passed} passed, ${judged.length - passed} failed`,
  ].join("\n");
};
