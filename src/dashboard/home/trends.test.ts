import { expect, test } from "bun:test";
import type { UsageReport } from "../../accounts/usage/account-usage.ts";
import { shareTrend, weeksOf } from "./trends.ts";

test.each([
  [
    { part: 977, whole: 1_000 },
    { part: 965, whole: 1_000 },
    { kind: "ok", text: "+1.2 since last week" },
  ],
  [
    { part: 90, whole: 100 },
    { part: 941, whole: 1_000 },
    { kind: "warn", text: "−4.1 since last week" },
  ],
  [
    { part: 1, whole: 2 },
    { part: 50_001, whole: 100_000 },
    { kind: "unknown", text: "as last week" },
  ],
  [{ part: 0, whole: 0 }, { part: 1, whole: 1 }, null],
  [{ part: 1, whole: 1 }, { part: 0, whole: 0 }, null],
  [{ part: 1, whole: 1 }, null, null],
] as const)("%p after %p is %p", (now, before, trend) => {
  expect(shareTrend(now, before)).toEqual(trend);
});

test("a week has seven days and the week before the seven before", () => {
  const figures = { risky: 0, undeliverable: 0, rateLimited: 0, credits: 0 };
  const day = (group: string, total: number, deliverable: number) => ({ group, total, deliverable, ...figures });
  const groups = [
    day("2026-01-01", 1_000, 1_000),
    day("2026-01-02", 3, 1),
    day("2026-01-08", 4, 4),
    day("2026-01-09", 20, 10),
    day("2026-01-15", 30, 15),
  ];
  const report: UsageReport = { groups, total: { total: 0, deliverable: 0, ...figures } };
  expect(weeksOf(report, { toDay: Date.parse("2026-01-15") / 86_400_000 })).toEqual({
    now: { part: 25, whole: 50 },
    before: { part: 5, whole: 7 },
  });
});
