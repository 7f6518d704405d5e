import { describe, expect, test } from "bun:test";
import { DAY_MS, isoDay } from "../../../foundation/base/days.ts";
import { comparedRanges, digestDays, incompleteDay } from "./digest-mail.ts";

const shown = ({ fromDay, toDay }: { fromDay: number; toDay: number }) => `${isoDay(fromDay)} ${isoDay(toDay)}`;

describe("a digest", () => {
  test.each([
    ["daily", "2026-11-20", "2026-11-18 2026-11-18", "2026-11-18 2026-11-18", "2026-11-17 2026-11-17", null],
    ["weekly", "2026-11-23", "2026-11-16 2026-11-22", "2026-11-16 2026-11-21", "2026-11-09 2026-11-14", "2026-11-22"],
    ["monthly", "2026-12-01", "2026-11-01 2026-11-30", "2026-11-01 2026-11-29", "2026-10-01 2026-10-29", "2026-11-30"],
    ["monthly", "2027-04-01", "2027-03-01 2027-03-31", "2027-03-01 2027-03-28", "2027-02-01 2027-02-28", "2027-03-31"],
    ["monthly", "2027-03-01", "2027-02-01 2027-02-28", "2027-02-01 2027-02-27", "2027-01-01 2027-01-27", "2027-02-28"],
  ] as const)("%s at %s is about %s and compares %s with %s", (period, due, about, now, before, late) => {
    const range = digestDays(period, Date.parse(`${due}T06:00:00Z`));
    const compared = comparedRanges(period, range);
    expect([shown(range), shown(compared.now), shown(compared.before)]).toEqual([about, now, before]);
    expect(incompleteDay(period, range)).toBe(late === null ? null : Date.parse(late) / DAY_MS);
  });
});
