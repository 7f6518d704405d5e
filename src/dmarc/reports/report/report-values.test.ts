import { describe, expect, test } from "bun:test";
import {
  COUNT_MAX,
  readAlignedResult,
  readAlignment,
  readAuthResult,
  readCount,
  readDomain,
  readSourceIp,
  readTimeMs,
} from "./report-values.ts";

const DAY = 1_763_510_400_000;

describe("times", () => {
  test.each([
    ["1763510400", DAY],
    ["+1763510400", DAY],
    ["1763510400.0", DAY],
    ["1763510400.9999", DAY + 999],
    ["1763510400,5", DAY + 500],
    ["1763510400000", DAY],
    ["2025-11-19", DAY],
    ["2025-11-19T00:00:00Z", DAY],
    ["2025-11-19 00:00:00", DAY],
    ["2025-11-19T01:00:00+01:00", DAY],
    ["", null],
    ["0", null],
    ["-1763510400", null],
    ["302832000", 302_832_000_000],
    ["4102444800", null],
    ["99999999999999999999", null],
    ["Infinity", null],
    ["0x1", null],
    ["19.11.2025", null],
    ["2025-13-45", null],
  ])("%j", (text, ms) => {
    expect(readTimeMs(text)).toBe(ms);
  });
});

describe("counts", () => {
  test.each([
    ["1", 1],
    ["007", 7],
    ["+3", 3],
    ["12.0", 12],
    [String(COUNT_MAX), COUNT_MAX],
    [String(COUNT_MAX + 1), "count_too_large"],
    ["9".repeat(400), "count_too_large"],
    ["", "count_missing"],
    ["0", "count_zero"],
    ["-0", "count_zero"],
    ["-5", "count_negative"],
    ["1.5", "count_invalid"],
    ["1e3", "count_invalid"],
    ["NaN", "count_invalid"],
    ["1,000", "count_invalid"],
  ])("%j", (text, count) => {
    expect(readCount(text)).toBe(count as never);
  });
});

describe("source addresses", () => {
  test.each([
    ["192.0.2.1", "192.0.2.1"],
    ["2001:DB8:0:0:0:0:0:1", "2001:db8::1"],
    ["::ffff:c000:0201", "192.0.2.1"],
    ["[IPv6:2001:db8::1]", "2001:db8::1"],
    ["fe80::1%eth0", "fe80::1"],
    ["127.0.0.1", "127.0.0.1"],
  ])("%j", (text, ip) => {
    expect(readSourceIp(text)).toEqual({ ip });
  });

  test.each(["1", "0x7f.1", "192.0.2.1/32", "192.0.2.1:25", "example.com", "192.0.2.01"])("%j is none", (text) => {
    expect(readSourceIp(text)).toBe("source_ip_invalid");
  });
});

describe("domains", () => {
  test.each([
    ["Example.COM.", "example.com"],
    ["a@Example.com", "example.com"],
    ["<a@example.com>", "example.com"],
    ["bücher.example", "xn--bcher-kva.example"],
    ["_x.example", "_x.example"],
    ["<>", null],
    ["", null],
    [".", null],
    ["two words", null],
    ["a".repeat(300), null],
  ])("%j", (text, domain) => {
    expect(readDomain(text)).toBe(domain);
  });
});

test("only `pass` is a pass, whatever its case", () => {
  const results = ["pass", "PASS", "fail", "softfail", "none", "yes", ""].map(readAlignedResult);
  expect(results).toEqual(["pass", "pass", "fail", "fail", "fail", "fail", null]);
});

test("results of older drafts are read as what they meant", () => {
  const results = ["Pass", "hardfail", "error", "unknown", "policy", "", "__proto__"].map(readAuthResult);
  expect(results).toEqual(["pass", "fail", "temperror", "permerror", "policy", "unknown", "unknown"]);
});

test("an alignment is one of two, or not said", () => {
  expect(["r", "S", "relaxed", "", "x", "__proto__"].map(readAlignment)).toEqual(["r", "s", "r", null, null, null]);
});
