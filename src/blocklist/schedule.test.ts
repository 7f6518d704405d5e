import { expect, test } from "bun:test";
import { newId } from "../base/secrets.ts";
import { nextCheckMs, nextPassMs, placeOf, spreadMs } from "./schedule.ts";

const HOUR_MS = 3_600_000;
const ids = Array.from({ length: 500 }, newId);

test.each([
  ["listed", 1],
  ["clean", 6],
  ["unknown", 6],
  ["pending", 6],
] as const)(
  "a target that is %s is checked after %d h, up to 5 %% earlier or later, always at the same place",
  (status, hours) => {
    const shares = ids.map((id) => nextCheckMs(id, status, 0) / (hours * HOUR_MS));
    expect(Math.min(...shares)).toBeGreaterThanOrEqual(0.95);
    expect(Math.max(...shares)).toBeLessThanOrEqual(1.05);
    expect(Math.max(...shares) - Math.min(...shares)).toBeGreaterThan(0.08);
    expect(ids.map((id) => nextCheckMs(id, status, 0) / (hours * HOUR_MS))).toEqual(shares);
  },
);

test("a pass is every full minute", () => {
  expect(nextPassMs(0)).toBe(60_000);
  expect(nextPassMs(59_999)).toBe(60_000);
  expect(nextPassMs(60_000)).toBe(120_000);
});

test("a backlog is spread over an hour, listed targets over the first quarter of it", () => {
  for (const id of ids) {
    expect(placeOf(id)).toBeGreaterThanOrEqual(0);
    expect(placeOf(id)).toBeLessThanOrEqual(1);
    expect(spreadMs(id, "clean", 0)).toBeLessThanOrEqual(HOUR_MS);
    expect(spreadMs(id, "listed", 0)).toBeLessThanOrEqual(HOUR_MS / 4);
  }
  expect(Math.max(...ids.map((id) => spreadMs(id, "clean", 0)))).toBeGreaterThan(0.9 * HOUR_MS);
});
