import { expect, test } from "bun:test";
import { UNKNOWN_REPORTERS_MAX, unvouchedWords } from "./reporter-store.ts";

const unknown = (count: number) =>
  Array.from({ length: count }, (_, at) => ({ voucher: at + 2, author: `r${at}.example`, isExcessive: false }));

test.each([
  [0, "is not authenticated as the reporter's"],
  [UNKNOWN_REPORTERS_MAX - 1, "is not authenticated as the reporter's"],
  [
    UNKNOWN_REPORTERS_MAX,
    "is not authenticated as the reporter's, or comes from an unknown reporter beyond the first 200",
  ],
])("with %d unknown reporters, nobody vouches for a report whose mail %s", (count, words) => {
  expect(unvouchedWords({ unknown: unknown(count) })).toBe(words);
});
