import { describe, expect, test } from "bun:test";
import { detectEncoding } from "./csv-records.ts";

const detected = async (...bytes: readonly number[]) => {
  const result = await detectEncoding(async function* () {
    yield Uint8Array.from(bytes);
  });
  return result.ok ? result.value.name : result.error;
};

/** Latin letters in UTF-16, `nuls` of 20 bytes. */
const halfWide = (parity: 0 | 1, nuls: number) =>
  Array.from({ length: 20 }, (_, at) => (at % 2 === parity && at < 2 * nuls ? 0 : 0x61));

describe("without a byte order mark", () => {
  test.each<[string, readonly number[], string]>([
    ["NULs in more than 30 % of the odd places", halfWide(1, 4), "utf-16le"],
    ["NULs in more than 30 % of the even places", halfWide(0, 4), "utf-16be"],
    ["NULs in 30 % of the odd places", halfWide(1, 3), "utf-8"],
    ["NULs in 30 % of the even places", halfWide(0, 3), "utf-8"],
    ["an empty list", [], "utf-8"],
  ])("%s: %j is %s", async (_, bytes, name) => {
    expect(await detected(...bytes)).toBe(name);
  });
});

/** RFC 3629 §4. Where valid letters and invalid bytes balance, it is UTF-8. */
describe("text outside ASCII", () => {
  test.each<[string, readonly number[], string]>([
    ["a letter of two bytes", [0xc2, 0xa9], "utf-8"],
    ["a letter of two bytes and an invalid byte", [0xdf, 0xbf, 0xff], "utf-8"],
    ["a letter of three bytes and an invalid byte", [0xe0, 0xa4, 0x85, 0xff], "utf-8"],
    ["a letter of four bytes and an invalid byte", [0xf0, 0x9f, 0x98, 0x80, 0xff], "utf-8"],
    ["a letter and more invalid bytes", [0xc2, 0xa9, 0xff, 0xff], "windows-1252"],
    ["an overlong form", [0xc1, 0xbf], "windows-1252"],
    ["a lead byte beyond U+10FFFF", [0xf5, 0x80, 0x80, 0x80], "windows-1252"],
    ["a lead byte at the end", [0xe9], "windows-1252"],
    ["a lead byte before ASCII", [0xe9, 0x61], "windows-1252"],
    ["a lead byte before a letter, and an invalid byte", [0xc3, 0xc3, 0xa9, 0xff], "windows-1252"],
    ["a continuation byte alone", [0x61, 0x80], "windows-1252"],
  ])("%s: %j is %s", async (_, bytes, name) => {
    expect(await detected(...bytes)).toBe(name);
  });

  test("may have as many control characters as a text has, and not more", async () => {
    const controls = (count: number, length: number) => Array.from({ length }, (_, at) => (at < count ? 0x01 : 0x61));
    expect(await detected(...controls(4, 10))).toBe("utf-8");
    expect(await detected(...controls(5, 10))).toContain("not a CSV file");
    expect(await detected(...controls(10, 200))).toBe("utf-8");
    expect(await detected(...controls(11, 200))).toContain("not a CSV file");
    expect(await detected(...Array.from({ length: 10 }, () => 0x1b))).toBe("utf-8");
  });
});
