import { expect, test } from "bun:test";
import { DELIVERY_ATTEMPTS_MAX, retryAfterMs, waitAfter } from "./send.ts";

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

const NOW_MS = Date.UTC(2026, 0, 1, 12, 0, 0);
const DAY_MS = 24 * 60 * 60 * 1000;

test.each<[string | null, number | null]>([
  ["120", 120_000],
  [" 0 ", 0],
  ["99999999999999999999999", DAY_MS],
  ["Thu, 01 Jan 2026 12:01:00 GMT", 60_000],
  ["Thu, 01 Jan 2026 11:00:00 GMT", 0],
  ["Fri, 01 Jan 2027 12:00:00 GMT", DAY_MS],
  ["Thu, 99 Xxx 2026 12:01:00 GMT", null],
  ["2026-01-01T12:01:00Z", null],
  ["-5", null],
  ["1.5", null],
  ["soon", null],
  ["", null],
  [null, null],
])("Retry-After: %s is %p ms", (header, waitMs) => {
  expect(retryAfterMs(header, NOW_MS)).toBe(waitMs);
});
