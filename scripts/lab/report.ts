import type { Asked } from "./ask.ts";
import type { Judged } from "./run.ts";

const said = ({ verdict, subStatus, problem }: Asked): string =>
  problem === undefined ? `${verdict}/${subStatus}` : "no answer";

const padded = (cells: readonly string[], widths: readonly number[]): string =>
  cells
    .map((cell, column) => cell + " ".repeat(Math.max(0, (widths[column] ?? 0) - Bun.stringWidth(cell))))
    .join("  ")
    .trimEnd();

const HEADINGS = ["address", "true state", "expected", "got", "by HTTP", "quality", "confidence", "ms", "HTTP ms", ""];

const verdictOn = ({ right, late }: Judged): string => {
  if (right) return "right";
  return late ? "WRONG (too late)" : "WRONG";
};

const byHttp = ({ cli, http }: Judged): string => {
  if (http === null) return "not asked";
  return said(http) === said(cli) ? "same" : said(http);
};

const cellsOf = (judged: Judged): string[] => {
  const { row, cli, http } = judged;
  return [
    row.address.length > 40 ? `${row.address.slice(0, 18)}…${row.address.slice(-20)}` : row.address,
    row.truth,
    `${row.verdict}/${row.subStatus}`,
    said(cli),
    byHttp(judged),
    String(cli.quality),
    String(cli.confidence),
    String(cli.elapsedMs),
    String(http?.elapsedMs ?? "-"),
    verdictOn(judged),
  ];
};

const problemsOf = ({ row, cli, http, late, doubts }: Judged): string[] => [
  ...(cli.problem === undefined ? [] : [`${row.address} by command line: ${cli.problem}`]),
  ...(http?.problem === undefined ? [] : [`${row.address} by HTTP: ${http.problem}`]),
  ...(late
    ? [`${row.address} took ${cli.elapsedMs} ms and by HTTP ${http?.elapsedMs ?? "-"} ms of ${row.limitS} s`]
    : []),
  ...doubts,
];

const passedOf = (judged: readonly { readonly right: boolean }[]): number => judged.filter(({ right }) => right).length;

/** The table of a run as text, theme by theme; then what went wrong otherwise, the score of each theme, and of all, `others` included. */
export const reportText = (judged: readonly Judged[], others: readonly { readonly right: boolean }[]): string => {
  const lines = judged.map((each) => ({ theme: each.row.theme, cells: cellsOf(each) }));
  const widths = HEADINGS.map((heading, column) =>
    Math.max(heading.length, ...lines.map(({ cells }) => Bun.stringWidth(cells[column] ?? ""))),
  );
  const themes = [...Map.groupBy(judged, ({ row }) => row.theme)];
  const all = [...judged, ...others];
  const passed = passedOf(all);
  return [
    padded(HEADINGS, widths),
    ...themes.flatMap(([theme]) => [
      `— ${theme}`,
      ...lines.filter((line) => line.theme === theme).map(({ cells }) => padded(cells, widths)),
    ]),
    "",
    ...judged.flatMap(problemsOf),
    ...themes.map(([theme, rows]) => `${theme}: ${passedOf(rows)}/${rows.length}`),
    `${passed} passed, ${all.length - passed} failed`,
  ].join("\n");
};
