import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { mailtoUri, parseReportUris, reportAddress } from "./record-tags.ts";

describe("a list of destinations", () => {
  test("of white space has none, of commas only empty ones", () => {
    expect(parseReportUris("")).toEqual([]);
    expect(parseReportUris(" \t")).toEqual([]);
    expect(parseReportUris(" , ").map(({ problem }) => problem)).toEqual(["uri_empty", "uri_empty"]);
  });

  test("says where each ends in the value", () => {
    const value = "  mailto:a@example.com ,\tmailto:b@example.com!10m , ,x";
    const ends = parseReportUris(value).map(({ text, end }) => value.slice(end - text.length, end));
    expect(ends).toEqual(["mailto:a@example.com", "mailto:b@example.com!10m", "", "x"]);
  });

  test.each([
    ["mailto:a@example.com!10m", "!10m"],
    ["mailto:a@example.com!10", "!10"],
    ["mailto:a@example.com!1T", "!1T"],
    ["mailto:a@example.com", null],
    ["a@example.com!5k", "!5k"],
  ])("of %s the size limit is %p", (text, sizeSuffix) => {
    expect(parseReportUris(text)).toMatchObject([{ text, sizeSuffix }]);
  });
});

describe("an address as a URI", () => {
  test.each([
    ["dmarc@example.com", "mailto:dmarc@example.com"],
    ["a+b@example.com", "mailto:a+b@example.com"],
    ["a!b@example.com", "mailto:a%21b@example.com"],
    ["100%@example.com", "mailto:100%25@example.com"],
    ['"a,b;c"@example.com', "mailto:%22a%2Cb%3Bc%22@example.com"],
    ["ü@example.com", "mailto:%C3%BC@example.com"],
  ])("%s is written %s", (address, uri) => {
    expect(mailtoUri(address)).toBe(uri);
    expect(parseReportUris(uri)).toMatchObject([{ address: reportAddress(address), problem: null }]);
  });

  test("whatever its local part, it is one printable URI that neither ends its tag nor its place in the list", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (local) => {
        expect(mailtoUri(`${local}@example.com`)).toMatch(/^mailto:[\x21-\x2b\x2d-\x3a\x3c-\x7e]*@example\.com$/);
        expect(mailtoUri(local)).not.toContain("!");
      }),
    );
  });
});

test.each([
  ["A@Example.COM", "a@example.com"],
  ["a@bücher.example", "a@xn--bcher-kva.example"],
  ["nothing", null],
  ["", null],
])("%s compares as %p", (address, normal) => {
  expect(reportAddress(address)).toBe(normal);
});
