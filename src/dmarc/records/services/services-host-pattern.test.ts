import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { matchesHostPattern, matchesWildcard } from "./services.ts";

test.each([
  ["abc", "abc", true],
  ["abc", "abcd", false],
  ["*", "", true],
  ["*", "anything", true],
  ["a*c", "ac", true],
  ["a*c", "abbc", true],
  ["a*c", "a", false],
  ["a*a", "a", false],
  ["*b*", "abc", true],
  ["*b*", "ac", false],
  ["ip-*-*-*", "ip-1-2-3", true],
  ["ip-*-*-*", "ip-1-2", false],
  ["*ab*ab*", "ab", false],
  ["*ab*ab", "abab", true],
])("%s and %s: %p", (pattern, text, matches) => {
  expect(matchesWildcard(pattern, text)).toBe(matches);
});

test("a wildcard pattern says the same as the regular expression", () => {
  const letters = fc.string({ unit: fc.constantFrom("a", "b", "*"), maxLength: 8 });
  const text = fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 10 });
  fc.assert(
    fc.property(letters, text, (pattern, subject) => {
      const expected = new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(subject);
      expect(matchesWildcard(pattern, subject)).toBe(expected);
    }),
  );
});

describe("host patterns", () => {
  test.each([
    ["*smtp*.prod.*.example.com", "p3plsmtpa06-01.prod.phx3.example.com", true],
    ["*smtp*.prod.*.example.com", "shr.prod.phx3.example.com", false],
    ["*smtp*.prod.*.example.com", "a.smtp1.prod.phx3.example.com", false],
    ["*smtp*.prod.*.example.com", "smtp1.prod.example.com", false],
    ["*smtp*.prod.*.example.com", "smtp1.prod.a.b.example.com", false],
    ["*.ip-*-*-*.eu", "ns1.ip-1-2-3.eu", true],
    ["*.ip-*-*-*.eu", "a.b.ip-1-2-3.eu", true],
    ["*.ip-*-*-*.eu", "ip-1-2-3.eu", false],
    ["*.ip-*-*-*.eu", ".ip-1-2-3.eu", false],
    ["*.ip-*-*-*.eu", "a..ip-1-2-3.eu", false],
    ["*.ip-*-*-*.eu", "a.ip-1-2-3.eu.example", false],
    ["*.ip-*-*-*.eu", "", false],
  ])("%s and %s: %p", (pattern, name, matches) => {
    expect(matchesHostPattern(pattern, name)).toBe(matches);
  });
});
