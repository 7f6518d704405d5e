import { expect, test } from "bun:test";
import { localMidnight } from "./pages.tsx";

test.each([
  ["2026-01-15", 0, "UTC", "2026-01-15T00:00:00.000Z"],
  ["2026-01-15", 1, "UTC", "2026-01-16T00:00:00.000Z"],
  ["2026-01-15", 0, "Europe/Berlin", "2026-01-14T23:00:00.000Z"],
  ["2026-07-15", 0, "Europe/Berlin", "2026-07-14T22:00:00.000Z"],
  ["2026-03-29", 0, "Europe/Berlin", "2026-03-28T23:00:00.000Z"],
  ["2026-03-29", 1, "Europe/Berlin", "2026-03-29T22:00:00.000Z"],
  ["2026-01-15", 0, "America/Los_Angeles", "2026-01-15T08:00:00.000Z"],
  ["2026-01-15", 0, "Asia/Kathmandu", "2026-01-14T18:15:00.000Z"],
])("%s and %i days begin in %s at %s", (day, days, zone, time) => {
  expect(new Date(localMidnight(day, days, zone)).toISOString()).toBe(time);
});
