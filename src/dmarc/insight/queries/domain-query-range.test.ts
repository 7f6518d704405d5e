import { isoDay } from "../../../foundation/base/days.ts";
import { describe, expect, test } from "bun:test";
import { AppError } from "../../../foundation/base/errors.ts";
import { parseDay } from "../../../foundation/http/day-range.ts";
import { RANGE_DAYS_MAX, rangeOf } from "./domain-query.ts";

const DAY = Date.UTC(2026, 0, 1) / 86_400_000;

describe("a day", () => {
  test.each([
    ["2026-01-01", DAY],
    ["2026-01-01T00:00:00Z", DAY],
    ["2026-01-01T23:59:59.999Z", DAY],
    ["2026-01-01t10:00z", DAY],
    ["2026-01-01T00:30:00+01:00", DAY - 1],
    ["2025-12-31T23:30:00-01:00", DAY],
    ["1970-01-01", 0],
    ["2024-02-29", Date.UTC(2024, 1, 29) / 86_400_000],
  ])("%s is day %d", (text, day) => {
    expect(parseDay(text)).toBe(day);
  });

  test.each([
    "",
    "today",
    "2026-1-1",
    "2026-02-30",
    "2025-02-29",
    "2026-13-01",
    "2026-01-01T10:00",
    "01.01.2026",
    "20454",
    "2026-01-01T25:00Z",
    " 2026-01-01",
  ])("%p is none", (text) => {
    expect(parseDay(text)).toBeNull();
  });

  test("is written as it was read", () => {
    expect(isoDay(DAY)).toBe("2026-01-01");
  });
});

describe("a range", () => {
  const nowMs = Date.UTC(2026, 0, 1, 23, 59);
  test("is the last 30 days unless told, today among them", () => {
    expect(rangeOf({}, nowMs)).toEqual({ fromDay: DAY - 29, toDay: DAY });
    expect(rangeOf({ to: 100 }, nowMs)).toEqual({ fromDay: 71, toDay: 100 });
    expect(rangeOf({ from: DAY - 2 }, nowMs)).toEqual({ fromDay: DAY - 2, toDay: DAY });
    expect(rangeOf({ from: 5, to: 5 }, nowMs)).toEqual({ fromDay: 5, toDay: 5 });
    expect(rangeOf({ from: 1, to: RANGE_DAYS_MAX }, nowMs)).toEqual({ fromDay: 1, toDay: RANGE_DAYS_MAX });
  });

  test.each([[{ from: 6, to: 5 }], [{ from: DAY + 1 }], [{ from: 0, to: RANGE_DAYS_MAX }]])(
    "is refused: %p",
    (asked) => {
      expect(() => rangeOf(asked, nowMs)).toThrow(AppError);
    },
  );
});
