import { expect, test } from "bun:test";
import type { Mark } from "../../scripts/bench/marks.ts";
import { withReport } from "../../scripts/bench/report.ts";

const PAGE = await Bun.file(new URL("../../scripts/bench/README.md", import.meta.url).pathname).text();
const EMPTY = PAGE.replaceAll(/^\| (plan|start|dns) +\|.*\n/gm, "");
const GROUPS = ["start", "plan", "dns"];
const mark = (group: string, value: number): Mark => ({
  group,
  what: "pipes | and\nlines",
  value,
  unit: "ms",
  limit: { most: 5 },
});
const report = (text: string, marks: readonly Mark[], day = "2026-11-27") =>
  withReport(text, { marks, day, machine: "2 cores", groups: GROUPS });
const rowsOf = (text: string) =>
  text
    .split("\n")
    .filter((line) => /^\| (plan|start|dns) +\|/.test(line))
    .map((line) => line.replaceAll(/ +/g, " "));

test("a report replaces the rows of its groups, keeps the others in their order, and is the same the second time", () => {
  const first = report(EMPTY, [mark("plan", 7), mark("dns", 4)]);
  expect(rowsOf(first)).toEqual([
    "| plan | pipes \\| and lines | 7 ms | ≤ 5 ms | MISSED | | 2026-11-27 | 2 cores |",
    "| dns | pipes \\| and lines | 4 ms | ≤ 5 ms | met | | 2026-11-27 | 2 cores |",
  ]);
  expect(report(first, [mark("plan", 7), mark("dns", 4)])).toBe(first);
  const second = report(first, [mark("start", 1), mark("plan", 3)], "2026-12-01");
  expect(rowsOf(second)).toEqual([
    "| start | pipes \\| and lines | 1 ms | ≤ 5 ms | met | | 2026-12-01 | 2 cores |",
    "| plan | pipes \\| and lines | 3 ms | ≤ 5 ms | met | | 2026-12-01 | 2 cores |",
    "| dns | pipes \\| and lines | 4 ms | ≤ 5 ms | met | | 2026-11-27 | 2 cores |",
  ]);
});

test("everything outside the marked part stays, and a page without it is an error", () => {
  const [before] = PAGE.split("<!--");
  expect(report(EMPTY, [mark("plan", 1)])).toStartWith(before ?? "");
  expect(() => report("# Measurements\n", [])).toThrow("must have one line");
});
