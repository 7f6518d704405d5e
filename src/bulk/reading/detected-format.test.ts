import { expect, test } from "bun:test";
import { type DetectedFormat, describeFormat, shownName } from "./csv.ts";

const FORMAT: DetectedFormat = {
  ...{
    type: "csv",
    sheet: null,
    encoding: "utf-8",
    encoding_assumed: false,
    delimiter: ";",
    header: true,
    title_rows: 0,
  },
  column: { index: 1, name: "E-Mail", reason: "only_addresses", message: "It is." },
};

test.each<[Partial<DetectedFormat>, string]>([
  [{}, 'CSV (utf-8, semicolon), with a header.\nAddresses: column 1 "E-Mail". It is.'],
  [{ type: "xlsx" }, 'Excel workbook, with a header.\nAddresses: column 1 "E-Mail". It is.'],
  [
    { type: "xlsx", sheet: "Kunden" },
    'Excel workbook, sheet "Kunden", with a header.\nAddresses: column 1 "E-Mail". It is.',
  ],
  [{ delimiter: null, header: false }, 'CSV (utf-8), without a header.\nAddresses: column 1 "E-Mail". It is.'],
  [
    { title_rows: 1 },
    'CSV (utf-8, semicolon), with a header, below a title row.\nAddresses: column 1 "E-Mail". It is.',
  ],
  [
    { title_rows: 2 },
    'CSV (utf-8, semicolon), with a header, below 2 title rows.\nAddresses: column 1 "E-Mail". It is.',
  ],
  [
    { encoding: "windows-1252", encoding_assumed: true },
    'CSV (windows-1252, semicolon), with a header.\nAddresses: column 1 "E-Mail". It is.\nThe encoding is assumed: the list is not valid Unicode. If letters look wrong, name the encoding with --encoding.',
  ],
  [{ column: { ...FORMAT.column, name: null } }, "CSV (utf-8, semicolon), with a header.\nAddresses: column 1. It is."],
])("a format with %j is described", (differences, text) => {
  expect(describeFormat({ ...FORMAT, ...differences })).toBe(text);
});

test("a column name is cut after 200 characters", () => {
  expect(shownName(null)).toBeNull();
  expect(shownName("x".repeat(200))).toBe("x".repeat(200));
  expect(shownName("x".repeat(201))).toBe(`${"x".repeat(200)}…`);
});
