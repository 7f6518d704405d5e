import { expect, test } from "bun:test";
import { newId } from "../foundation/base/secrets.ts";
import { nextTargetCheckMs, nextPassMs, jitterShareOf, spreadMs } from "./check-result.ts";

const HOUR_MS = 3_600_000;
const ids = Array.from({ length: 500 }, newId);

const MINUTES = 1 / 60;

test.each([
  ["listed", [], 0, 1],
  ["listed", ["a"], 0, 1],
  ["clean", [], 0, 6],
  ["pending", [], 0, 6],
  ["unknown", [], 1, 2 * MINUTES],
  ["unknown", [], 2, 5 * MINUTES],
  ["unknown", [], 5, 40 * MINUTES],
  ["unknown", [], 6, 1],
  ["unknown", ["a"], 100, 1],
] as const)(
  "a target that is %s with %j after %d unknown checks is checked after %d h, up to 5 %% earlier or later",
  (status, listedOn, unknownChecks, hours) => {
    const shareOf = (id: string) => nextTargetCheckMs({ id, status, listedOn, unknownChecks }, 0) / (hours * HOUR_MS);
    const shares = ids.map(shareOf);
    expect(Math.min(...shares)).toBeGreaterThanOrEqual(0.9499);
    expect(Math.max(...shares)).toBeLessThanOrEqual(1.0501);
    expect(Math.max(...shares) - Math.min(...shares)).toBeGreaterThan(0.08);
    expect(ids.map(shareOf)).toEqual(shares);
  },
);

test("a pass is every full minute", () => {
  expect(nextPassMs(0)).toBe(60_000);
  expect(nextPassMs(59_999)).toBe(60_000);
  expect(nextPassMs(60_000)).toBe(120_000);
});

test("a backlog is spread over an hour, listed targets over the first quarter of it", () => {
  for (const id of ids) {
    expect(jitterShareOf(id)).toBeGreaterThanOrEqual(0);
    expect(jitterShareOf(id)).toBeLessThanOrEqual(1);
    expect(spreadMs(id, "clean", 0)).toBeLessThanOrEqual(HOUR_MS);
    expect(spreadMs(id, "listed", 0)).toBeLessThanOrEqual(HOUR_MS / 4);
  }
  expect(Math.max(...ids.map((id) => spreadMs(id, "clean", 0)))).toBeGreaterThan(0.9 * HOUR_MS);
});
