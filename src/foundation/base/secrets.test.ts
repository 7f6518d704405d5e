import { describe, expect, test } from "bun:test";
import { equalInConstantTime, isId, newApiKey, newId, readApiKey, shuffled } from "./secrets.ts";

describe("API keys", () => {
  test("carry their mode, 43 characters of secret and 6 of checksum", () => {
    expect(newApiKey("live")).toMatch(/^pw_live_[0-9A-Za-z]{49}$/);
    expect(readApiKey(newApiKey("live"))).toEqual({ mode: "live" });
    expect(readApiKey(newApiKey("test"))).toEqual({ mode: "test" });
  });

  test("are read as they were written once and for all", () => {
    const made = [
      "JuQZMY1loOrYMVXY35JEPCqJ9iImmoMODP8Gl2AXaYt27JUzW",
      "1D3samDEsxumb0AcznyBaitKwLLAt4lhuk0NoGecTTi0rTzSD",
    ];
    expect(readApiKey(`pw_test_${made[0]}`)).toEqual({ mode: "test" });
    expect(readApiKey(`pw_live_${made[1]}`)).toEqual({ mode: "live" });
    expect(readApiKey(`pw_test_${made[1]}`)).toBeNull();
  });

  test("are never the same twice", () => {
    const keys = new Set(Array.from({ length: 200 }, () => newApiKey("test")));
    expect(keys.size).toBe(200);
  });

  test("one wrong character is seen without a database", () => {
    const key = newApiKey("live");
    for (let at = "pw_live_".length; at < key.length; at++) {
      const other = key[at] === "a" ? "b" : "a";
      expect(readApiKey(key.slice(0, at) + other + key.slice(at + 1))).toBeNull();
    }
  });

  test.each([
    "",
    "pw_live_",
    "Bearer x",
    `pw_prod_${"a".repeat(49)}`,
    `${newApiKey("live")} `,
    `x${newApiKey("live")}`,
  ])("%p is not a key", (text) => {
    expect(readApiKey(text)).toBeNull();
  });
});

describe("ids", () => {
  test("are UUIDv7 and sort by the time they were made", () => {
    const ids = Array.from({ length: 100 }, newId);
    expect(ids.every(isId)).toBe(true);
    expect([...ids].sort()).toEqual(ids);
  });

  test.each(["", "1", "01890a5d-ac96-4b2e-8c3a-000000000000", newId().toUpperCase(), `${newId()}x`])(
    "%p has not the form of an id",
    (text) => {
      expect(isId(text)).toBe(false);
    },
  );
});

test("comparison tells equal from different, whatever the lengths", () => {
  expect(equalInConstantTime("abc", "abc")).toBe(true);
  expect(equalInConstantTime("abc", "abd")).toBe(false);
  expect(equalInConstantTime("abc", "abcd")).toBe(false);
});

test("a shuffle keeps every item and follows its randomness", () => {
  expect(shuffled([1, 2, 3, 4], { integer: () => 0 })).toEqual([1, 2, 3, 4]);
  expect(shuffled([1, 2, 3, 4], { integer: (below) => below - 1 })).toEqual([4, 3, 2, 1]);
});
