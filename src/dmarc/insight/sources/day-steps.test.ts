import { describe, expect, test } from "bun:test";
import type { DayRange } from "../../../foundation/base/days.ts";
import { readDays } from "./day-steps.ts";

/** The lengths of the steps in which some days are read, and what was read. */
const readIn = (range: DayRange, msPerDay: number) => {
  let nowMs = 0;
  const lengths: number[] = [];
  const read = ({ fromDay, toDay }: DayRange) => {
    const days = Array.from({ length: toDay - fromDay + 1 }, (_, n) => fromDay + n);
    lengths.push(days.length);
    nowMs += msPerDay * days.length;
    return days;
  };
  const steps = readDays(range, read, { monotonicMs: () => nowMs });
  for (;;) {
    const step = steps.next();
    if (step.done === true) return { lengths, days: step.value };
  }
};

describe("days that are read in steps", () => {
  test.each([
    ["more in each step while that takes no time", 0, 100, [4, 8, 16, 32, 40]],
    ["fewer when a step takes long", 5, 10, [4, 2, 2, 2]],
    ["two at least", 50, 7, [4, 2, 1]],
    ["as many when the time is right", 2, 13, [4, 4, 4, 1]],
    ["none of an empty range", 0, 0, []],
  ])("%s", (_, msPerDay, count, expected) => {
    const { lengths, days } = readIn({ fromDay: 7, toDay: 6 + count }, msPerDay);
    expect(lengths).toEqual(expected);
    expect(days).toEqual(Array.from({ length: count }, (_one, n) => 7 + n));
  });
});
