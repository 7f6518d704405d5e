import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../../foundation/base/days.ts";
import { dayOf, isPastRetention, periodProblemOf } from "../report/report.ts";

const NOW = Date.UTC(2026, 0, 10);
const days = (from: number, length: number) => ({
  beginMs: NOW + from * DAY_MS,
  endMs: NOW + (from + length) * DAY_MS,
});

test("a report counts for the day of the middle of its period", () => {
  expect(dayOf(days(0, 1))).toBe(NOW / DAY_MS);
  expect(dayOf(days(-1, 4))).toBe(NOW / DAY_MS + 1);
});

describe("a period", () => {
  test.each([
    ["of yesterday", days(-1, 1), null],
    ["of forty years ago", days(-14_610, 1), null],
    ["of a reporter whose clock is a day ahead", days(1, 1), null],
    ["that begins in three days", days(3, 1), "period_in_future"],
    ["of 2098", { beginMs: Date.UTC(2098, 0, 1), endMs: Date.UTC(2098, 0, 2) }, "period_in_future"],
    ["that is mostly to come, though it has begun", days(-1, 20), "period_in_future"],
    ["of 400 days", days(-400, 400), null],
    ["of 401 days", days(-401, 401), "period_too_long"],
  ] as const)("%s", (_, period, problem) => {
    expect(periodProblemOf(period, NOW)).toBe(problem);
  });
});

test("a day is past retention exactly when the next run removes it", () => {
  const today = NOW / DAY_MS;
  expect(isPastRetention(today - 30, { retentionDays: 30 }, NOW)).toBe(false);
  expect(isPastRetention(today - 31, { retentionDays: 30 }, NOW)).toBe(true);
});
