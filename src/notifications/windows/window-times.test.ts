import { describe, expect, test } from "bun:test";
import { clockTime, minuteOfDay, msOfLocalTime, type Weekday, weeklyEndMs } from "./window-times.ts";

const at = (text: string) => Date.parse(text);
const weekly = (days: readonly Weekday[], from: string, to: string, timeZone: string) => ({
  ...{ days, timeZone },
  fromMinute: minuteOfDay(from) ?? -1,
  toMinute: minuteOfDay(to) ?? -1,
});
const NIGHT = weekly(["mon", "fri"], "22:00", "06:00", "Europe/Berlin");
const DAY = weekly(["sun"], "01:00", "05:00", "Europe/Berlin");

describe("a weekly window", () => {
  // 2026-01-05 is a Monday; Berlin is one hour ahead of UTC in winter.
  test.each([
    [NIGHT, "2026-01-05T20:59:59Z", null],
    [NIGHT, "2026-01-05T21:00:00Z", "2026-01-06T05:00:00.000Z"],
    [NIGHT, "2026-01-06T04:59:59Z", "2026-01-06T05:00:00.000Z"],
    [NIGHT, "2026-01-06T05:00:00Z", null],
    [NIGHT, "2026-01-06T21:00:00Z", null],
    [NIGHT, "2026-01-09T23:30:00Z", "2026-01-10T05:00:00.000Z"],
    // The clock is set forward at 01:00 UTC on 2026-03-29, and back on 2026-10-25.
    [DAY, "2026-03-29T00:30:00Z", "2026-03-29T03:00:00.000Z"],
    [DAY, "2026-03-29T03:00:00Z", null],
    [DAY, "2026-10-25T00:30:00Z", "2026-10-25T04:00:00.000Z"],
    // 02:30 is skipped.
    [weekly(["sun"], "01:00", "02:30", "Europe/Berlin"), "2026-03-29T00:15:00Z", "2026-03-29T01:30:00.000Z"],
    [weekly(["sun"], "01:00", "02:30", "Europe/Berlin"), "2026-03-29T01:00:00Z", null],
    [weekly(["sun"], "23:00", "01:00", "UTC"), "2026-01-12T00:30:00Z", "2026-01-12T01:00:00.000Z"],
    [weekly(["mon"], "00:00", "23:59", "Asia/Kolkata"), "2026-01-04T18:30:00Z", "2026-01-05T18:29:00.000Z"],
  ])("%j at %s ends at %s", (times, now, end) => {
    expect(weeklyEndMs(times, at(now))).toBe(end === null ? null : at(end));
  });

  test("is on until its end, minute by minute, for a year", () => {
    for (const times of [NIGHT, DAY])
      for (let ms = at("2026-01-01T00:00:00Z"); ms < at("2027-01-01T00:00:00Z"); ms += 37 * 60_000) {
        const end = weeklyEndMs(times, ms);
        if (end === null) continue;
        expect(end).toBeGreaterThan(ms);
        expect(end - ms).toBeLessThanOrEqual(25 * 60 * 60_000);
        expect(weeklyEndMs(times, end)).toBeNull();
        expect(weeklyEndMs(times, end - 60_000)).toBe(end);
      }
  });
});

test.each([
  ["2026-01-05T06:00", "Europe/Berlin", "2026-01-05T05:00:00.000Z"],
  ["2026-07-05T06:00", "Europe/Berlin", "2026-07-05T04:00:00.000Z"],
  ["2026-01-05T06:00", "UTC", "2026-01-05T06:00:00.000Z"],
  ["2026-01-05T06:00", "America/New_York", "2026-01-05T11:00:00.000Z"],
])("%s in %s is %s", (text, zone, time) => expect(msOfLocalTime(text, zone)).toBe(at(time)));

test.each(["", "T", "2026-01-05T", "2026-01-05 06:00", "2026-13-05T06:00", "2026-01-05T6:00"])(
  "%p is no time",
  (text) => expect(msOfLocalTime(text, "UTC")).toBeNull(),
);

test("a time of day is read and written", () => {
  for (let minute = 0; minute < 24 * 60; minute++) expect(minuteOfDay(clockTime(minute))).toBe(minute);
  for (const text of ["24:00", "6:00", "06:60", "", "06:00:00"]) expect(minuteOfDay(text)).toBeNull();
});
