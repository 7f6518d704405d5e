import { describe, expect, test } from "bun:test";
import { silenceMs } from "./reports-stopped.ts";

const HOUR_MS = 60 * 60_000;
const every = (step: number, days = 60): number[] =>
  Array.from({ length: Math.floor(days / step) }, (_, n) => n * step);
const hours = (days: readonly number[]): number | null => {
  const ms = silenceMs(days);
  return ms === null ? null : ms / HOUR_MS;
};

describe("reports have stopped after", () => {
  test.each<[string, readonly number[], number | null]>([
    ["72 hours, where they come daily", every(1), 72],
    ["72 hours also after one long gap", every(1).filter((day) => day < 20 || day > 40), 72],
    ["six days, where they come every second day", every(2), 6 * 24],
    ["twelve days, where they come every fourth day", every(4), 12 * 24],
    ["three months, where they come monthly", [0, 30, 60], 90 * 24],
    ["a weekend and two days, where weekends have no mail", every(1).filter((day) => day % 7 < 5), 5 * 24],
    ["longer than the time between two letters of five days", every(1).filter((day) => day % 30 < 5), 28 * 24],
    ["five days, before a whole week is known", [0, 1, 2], 5 * 24],
    ["no time at all, before three days are known", [0, 1], null],
    ["no time at all, before there are any", [], null],
  ])("%s", (_, days, expected) => {
    expect(hours(days)).toBe(expected);
  });
});
