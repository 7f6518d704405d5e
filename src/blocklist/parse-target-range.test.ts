import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { addressesOf, isRangeForm, parseRange, RANGE_ADDRESSES_MAX, rangeText } from "./parse-target.ts";

describe("a range", () => {
  test.each([
    ["198.51.100.0/24", "198.51.100.0/24", 256],
    ["198.51.100.0 - 198.51.100.255", "198.51.100.0/24", 256],
    ["198.51.100.1-198.51.100.9", "198.51.100.1-198.51.100.9", 9],
    ["8.8.8.8/32", "8.8.8.8/32", 1],
    ["10.0.0.0/22", "10.0.0.0/22", 1024],
    ["255.255.255.254-255.255.255.255", "255.255.255.254/31", 2],
  ])("%s is %s with %d addresses", (text, value, size) => {
    const range = parseRange(text);
    if (!range.ok) throw new Error(range.error);
    expect(rangeText(range.value)).toBe(value);
    expect(addressesOf(range.value)).toHaveLength(size);
  });

  test.each([
    ["198.51.100.7/24", "198.51.100.0/24"],
    ["8.0.0.0/21", "1,024"],
    ["8.0.0.0/0", "1,024"],
    ["8.0.0.0/33", "prefix"],
    ["8.8.8.9-8.8.8.8", "first"],
    ["8.8.8.0-8.8.12.0", "1,024"],
    ["8.8.8.256/32", "Not a range"],
    ["8.8.8.1-8.8.8", "Not a range"],
    ["8.8.8.01/32", "Not a range"],
  ])("%s is refused", (text, why) => {
    const range = parseRange(text);
    expect(range.ok ? "" : range.error).toContain(why);
  });

  test("written in its one form is the same range, and has every address between its ends once, in order", () => {
    const ranges = fc
      .tuple(
        fc.integer({ min: 0, max: 2 ** 32 - RANGE_ADDRESSES_MAX }),
        fc.integer({ min: 1, max: RANGE_ADDRESSES_MAX }),
      )
      .map(([first, size]) => ({ first, last: first + size - 1 }));
    fc.assert(
      fc.property(ranges, (range) => {
        const text = rangeText(range);
        expect(isRangeForm(text)).toBe(true);
        expect(parseRange(text)).toEqual({ ok: true, value: range });
        const addresses = addressesOf(range);
        const numbers = addresses.map((address) =>
          address.split(".").reduce((sum, octet) => sum * 256 + Number(octet), 0),
        );
        expect(numbers).toEqual(Array.from({ length: range.last - range.first + 1 }, (_, at) => range.first + at));
      }),
      { numRuns: 100 },
    );
  });
});
