import { expect, test } from "bun:test";
import { isToken, newToken, testToken } from "./enrolments.ts";

test("a token is 20 lower-case letters and digits, and never the same again", () => {
  const tokens = Array.from({ length: 500 }, newToken);
  expect(tokens.filter((token) => !/^[a-z2-7]{20}$/.test(token))).toEqual([]);
  expect(new Set(tokens).size).toBe(500);
});

test("every character of a token takes all of the 32 values", () => {
  const tokens = Array.from({ length: 2_000 }, newToken);
  for (let at = 0; at < 20; at++) expect(new Set(tokens.map((token) => token[at])).size).toBe(32);
});

test("the token of a test domain depends on the account and the domain, and on nothing else", () => {
  expect(testToken("a", "merge.example")).toBe(testToken("a", "merge.example"));
  expect(testToken("a", "merge.example")).not.toBe(testToken("b", "merge.example"));
  expect(testToken("a", "merge.example")).not.toBe(testToken("a", "other.example"));
  expect(isToken(testToken("a", "merge.example"))).toBe(true);
});

test.each(["", "abc", "ABCDEFGHIJKLMNOPQRST", "abcdefghijklmnopqrs1", "abcdefghijklmnopqrstu", "revoked:abcdefghijkl"])(
  "%p is no token",
  (text) => {
    expect(isToken(text)).toBe(false);
  },
);
