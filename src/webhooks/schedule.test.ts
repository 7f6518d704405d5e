import { expect, test } from "bun:test";
import { DELIVERY_ATTEMPTS_MAX, waitAfter } from "./schedule.ts";

const SECOND_MS = 1_000;
const HOUR_MS = 3_600 * SECOND_MS;
const WAITS_MS = [5 * SECOND_MS, 300 * SECOND_MS, 1_800 * SECOND_MS, ...[2, 5, 10, 14, 20, 24].map((h) => h * HOUR_MS)];
const least = { integer: () => 0 };
const most = { integer: (below: number) => below - 1 };

test("the waits are those of the contract, and at most a tenth longer", () => {
  for (const [at, waitMs] of WAITS_MS.entries()) {
    expect(waitAfter(at + 1, least)).toBe(waitMs);
    expect(waitAfter(at + 1, most)).toBe(Math.round(waitMs * 1.1));
  }
});

test("after the tenth attempt there is none", () => {
  expect(DELIVERY_ATTEMPTS_MAX).toBe(10);
  expect(waitAfter(DELIVERY_ATTEMPTS_MAX, least)).toBeNull();
});
