import { describe, expect, test } from "bun:test";
import { besideEachOther } from "../../scripts/bench/compare.ts";
import { type Mark, failedGroup, marksText } from "../../scripts/bench/marks.ts";
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
    "| plan | pipes \\| and lines | 7 ms | | ≤ 5 ms | MISSED | | 2026-11-27 | 2 cores |",
    "| dns | pipes \\| and lines | 4 ms | | ≤ 5 ms | met | | 2026-11-27 | 2 cores |",
  ]);
  expect(report(first, [mark("plan", 7), mark("dns", 4)])).toBe(first);
  const second = report(first, [mark("start", 1), mark("plan", 3)], "2026-12-01");
  expect(rowsOf(second)).toEqual([
    "| start | pipes \\| and lines | 1 ms | | ≤ 5 ms | met | | 2026-12-01 | 2 cores |",
    "| plan | pipes \\| and lines | 3 ms | | ≤ 5 ms | met | | 2026-12-01 | 2 cores |",
    "| dns | pipes \\| and lines | 4 ms | | ≤ 5 ms | met | | 2026-11-27 | 2 cores |",
  ]);
});

test("everything outside the marked part stays, and a page without it is an error", () => {
  const [before] = PAGE.split("<!--");
  expect(report(EMPTY, [mark("plan", 1)])).toStartWith(before ?? "");
  expect(() => report("# Measurements\n", [])).toThrow("must have one line");
});

describe("two versions", () => {
  const run = (...values: readonly number[]): Mark[] =>
    values.map((value) => ({ ...mark("plan", value), what: "same" }));

  test("are medians of their runs beside each other, where the same words may stand twice", () => {
    const [first, second] = besideEachOther([run(1, 10), run(3, 20)], [run(5, 50), run(5, 70), run(8, 90)]);
    expect(first).toMatchObject({ value: 2, before: 5, limit: { most: 5 } });
    expect(second).toMatchObject({ value: 15, before: 70 });
    expect(
      rowsOf(
        report(
          EMPTY,
          [first, second].filter((one) => one !== undefined),
        ),
      ),
    ).toEqual([
      "| plan | same | 2 ms | 5 ms | ≤ 5 ms | met | | 2026-11-27 | 2 cores |",
      "| plan | same | 15 ms | 70 ms | ≤ 5 ms | MISSED | | 2026-11-27 | 2 cores |",
    ]);
  });

  test("of which one cannot be measured say why", () => {
    const failed = [failedGroup("plan", new Error("no such file"))];
    const marks = besideEachOther([run(1)], [failed]);
    expect(marks.map(({ what, value, before }) => [what, value, before ?? null])).toEqual([
      ["same", 1, null],
      ["the whole group, before", null, null],
    ]);
    expect(marksText(marks)).toContain("no such file");
    expect(besideEachOther([failed], [run(1)])).toMatchObject([{ value: null, before: null, note: "no such file" }]);
    expect(besideEachOther([failed, run(4)], [run(1)])).toMatchObject([{ what: "same", value: 4, before: 1 }]);
  });
});
