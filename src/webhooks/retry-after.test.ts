import { expect, test } from "bun:test";
import { retryAfterMs } from "./retry-after.ts";

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
