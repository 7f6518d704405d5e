import { isoDay, digestRange, latestDueMs, nextDigestMs, rangeBefore, isTimeZone } from "./days.ts";
import { describe, expect, test } from "bun:test";

const at = (text: string) => Date.parse(text);
const days = ({ fromDay, toDay }: { fromDay: number; toDay: number }) => [isoDay(fromDay), isoDay(toDay)];

describe("the next digest", () => {
  // 2026-11-19 is a Thursday.
  test.each([
    ["daily", "2026-11-19T05:59:59.999Z", "2026-11-19T06:00:00.000Z"],
    ["daily", "2026-11-19T06:00:00.000Z", "2026-11-20T06:00:00.000Z"],
    ["weekly", "2026-11-19T12:00:00.000Z", "2026-11-23T06:00:00.000Z"],
    ["weekly", "2026-11-23T05:00:00.000Z", "2026-11-23T06:00:00.000Z"],
    ["weekly", "2026-11-23T06:00:00.000Z", "2026-11-30T06:00:00.000Z"],
    ["weekly", "2026-11-22T23:00:00.000Z", "2026-11-23T06:00:00.000Z"],
    ["monthly", "2026-11-19T12:00:00.000Z", "2026-12-01T06:00:00.000Z"],
    ["monthly", "2026-12-01T06:00:00.000Z", "2027-01-01T06:00:00.000Z"],
    ["monthly", "2027-01-31T06:00:00.000Z", "2027-02-01T06:00:00.000Z"],
  ] as const)("%s after %s is at %s", (digest, now, next) => {
    expect(nextDigestMs(digest, at(now))).toBe(at(next));
  });

  test("is none where none is wanted", () => {
    expect(nextDigestMs("off", 0)).toBeNull();
  });
});

describe("a digest", () => {
  test.each([
    ["daily", "2026-11-19T06:00:00Z", ["2026-11-18", "2026-11-18"], ["2026-11-17", "2026-11-17"]],
    ["weekly", "2026-11-23T06:00:00Z", ["2026-11-16", "2026-11-22"], ["2026-11-09", "2026-11-15"]],
    ["monthly", "2026-12-01T06:00:00Z", ["2026-11-01", "2026-11-30"], ["2026-10-01", "2026-10-31"]],
    ["monthly", "2027-01-01T06:00:00Z", ["2026-12-01", "2026-12-31"], ["2026-11-01", "2026-11-30"]],
  ] as const)("%s at %s is about %p, against %p", (digest, due, range, before) => {
    const about = digestRange(digest, at(due));
    expect(days(about)).toEqual([...range]);
    expect(days(rangeBefore(digest, about))).toEqual([...before]);
  });

  test("that is late is about the last period, once", () => {
    const [due, now] = [at("2026-11-10T06:00:00Z"), at("2026-11-19T05:00:00Z")];
    expect(latestDueMs("daily", due, now)).toBe(at("2026-11-18T06:00:00Z"));
    expect(latestDueMs("daily", due, due)).toBe(due);
    expect(latestDueMs("monthly", due, now)).toBe(due);
  });
});

test.each(["Europe/Berlin", "UTC", "America/Argentina/Ushuaia", "Etc/GMT+5", "asia/kolkata"])(
  "%p is a zone",
  (name) => {
    expect(isTimeZone(name)).toBe(true);
  },
);

test.each(["", "+01:00", "-0530", "Berlin", "Europe/Berlin ", "Mars/Olympus", "x".repeat(10_000)])(
  "%p is none",
  (name) => {
    expect(isTimeZone(name)).toBe(false);
  },
);
