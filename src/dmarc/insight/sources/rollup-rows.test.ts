import { expect, test } from "bun:test";
import { percentOf } from "./rollup-rows.ts";

test.each([
  [0, 0, null],
  [1, 3, 33.3],
  [2, 3, 66.7],
  [3, 3, 100],
  [0, 3, 0],
  [99_999, 100_000, 99.9],
  [1, 100_000, 0.1],
])("%d of %d is %p percent", (part, whole, percent) => {
  expect(percentOf(part, whole)).toBe(percent);
});
