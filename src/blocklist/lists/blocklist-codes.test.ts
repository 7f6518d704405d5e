import { describe, expect, test } from "bun:test";
import { formatCodeMatch, ipv4Number, matchesCode, codesOverlap, parseCodeMatch } from "./blocklist.ts";

const read = (text: string) => {
  const parsed = parseCodeMatch(text);
  if (!parsed.ok) throw new Error(parsed.error.problem);
  return parsed.value;
};
const number = (text: string): number => ipv4Number(text) ?? Number.NaN;

describe("a return code", () => {
  test.each(["127.0.0.2", "127.0.0.4-127.0.0.7", "bit 1", "bit 128", "127.0.0.0-127.255.255.255"])(
    "%s reads and writes the same",
    (text) => {
      expect(formatCodeMatch(read(text))).toBe(text);
    },
  );

  test.each([
    ["", "is not an address"],
    ["127.0.0", "is not an address"],
    ["127.0.0.02", "is not an address"],
    ["127.0.0.256", "is not an address"],
    ["127.0.0.2-", "is not an address"],
    ["-127.0.0.2", "is not an address"],
    ["127.0.0.2-127.0.0.3-127.0.0.4", "is not an address"],
    ["127.0.0.0/24", "is not an address"],
    ["bits 4", "is not an address"],
    ["bit 3", "not a bit"],
    ["bit 256", "not a bit"],
    ["10.0.0.2", "is outside"],
    ["127.0.0.2-128.0.0.1", "outside"],
    ["127.0.0.9-127.0.0.2", "before its start"],
  ])("%p is refused", (text, why) => {
    const parsed = parseCodeMatch(text);
    expect(parsed.ok ? "" : parsed.error.problem).toContain(why);
  });

  test.each([
    ["127.0.0.2", "127.0.0.2", true],
    ["127.0.0.2", "127.0.0.3", false],
    ["127.0.0.4-127.0.0.7", "127.0.0.4", true],
    ["127.0.0.4-127.0.0.7", "127.0.0.7", true],
    ["127.0.0.4-127.0.0.7", "127.0.0.8", false],
    ["bit 16", "127.0.0.80", true],
    ["bit 8", "127.0.0.80", false],
    ["bit 128", "127.0.0.128", true],
    ["bit 16", "127.0.1.16", false],
    ["bit 16", "127.0.0.255", true],
    ["bit 1", "127.0.0.1", true],
    ["bit 1", "127.0.1.1", false],
  ])("%s describes %s: %p", (match, address, expected) => {
    expect(matchesCode(read(match), number(address))).toBe(expected);
  });

  test.each([
    ["127.0.0.2", "127.0.0.2", true],
    ["127.0.0.2", "127.0.0.1-127.0.0.9", true],
    ["127.0.0.2", "127.0.0.3", false],
    ["bit 1", "bit 2", false],
    ["bit 2", "bit 2", true],
    ["bit 2", "127.0.0.16", true],
    ["127.255.255.255", "bit 1", false],
    ["127.0.0.255-127.0.1.9", "bit 1", true],
    ["127.0.1.0-127.0.1.9", "bit 1", false],
    ["127.0.0.0-127.0.0.1", "bit 1", true],
    ["127.0.0.0", "bit 1", false],
  ])("%s and %s overlap: %p", (a, b, expected) => {
    expect(codesOverlap(read(a), read(b))).toBe(expected);
    expect(codesOverlap(read(b), read(a))).toBe(expected);
  });
});
