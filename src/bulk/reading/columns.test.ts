import { describe, expect, test } from "bun:test";
import { type ColumnOptions, findAddressColumn, looksLikeAddress } from "./columns-address.ts";
import { CELL_CHARACTERS_MAX } from "../../foundation/mail/address-in-cell.ts";
import { chooseDelimiter, DELIMITERS } from "./csv-records.ts";

const AUTO: ColumnOptions = { header: "auto" };

/** Rows as a test writes them: cells separated by "|", or by what is given. */
const records = (rows: readonly string[], delimiter: string | null = "|"): string[][] =>
  rows.map((row) => (delimiter === null ? [row] : row.split(delimiter)));

const found = (rows: readonly string[], options = AUTO) => {
  const result = findAddressColumn(records(rows), options);
  return result.ok ? { column: result.value.column, header: result.value.header !== null } : result.error;
};

describe("the column of addresses", () => {
  test.each([
    ["the only one", ["name|mail", "Ada|a@b.example"], 1],
    ["the fullest", ["old|new", "a@b.example|", "|c@d.example", "|e@f.example"], 1],
    ["one nearly as full, named like addresses", ["login|e-mail", ...rowsOf(19), "x@y.example|none"], 1],
    ["not one that is named like addresses and less full", ["login|work e-mail", ...rowsOf(4), "x@y.example|"], 0],
    ["one named exactly email with half as many", ["email2|EMail ", "a@b.example|c@d.example", "e@f.example|"], 1],
    ["one named exactly e-mail", ["login|E-Mail", ...rowsOf(4), "x@y.example|"], 1],
    [
      "one named exactly mail, of several columns named so the fullest",
      ["email|b|mail", "a@b.example|c@d.example|e@f.example", "|g@h.example|i@j.example"],
      2,
    ],
    [
      "not one named exactly email that is less than half full",
      ["email2|email", "a@b.example|c@d.example", ...["e@f.example|", "g@h.example|"]],
      0,
    ],
    ["not one with a longer name", ["email2|email of a friend", "a@b.example|c@d.example", "e@f.example|"], 0],
    ["the first of equals", ["from|to", "a@b.example|c@d.example"], 0],
    ["named so in another language, of equals", ["login|correo", "a@b.example|c@d.example"], 1],
    ["named email, though nothing in it is an address", ["name|Email", "Ada|none"], 1],
  ])("is %s", (_what, rows, column) => {
    expect(found(rows)).toEqual({ column, header: true });
  });

  test("counts the first row where there is no header", () => {
    const rows = ["none|a@b.example", "c@d.example|e@f.example"];
    expect(found(rows, { header: "false" })).toEqual({ column: 1, header: false });
    expect(found(rows.toReversed(), { header: "true" })).toEqual({ column: 1, header: true });
  });

  test("may hold addresses of the maximum length", () => {
    const longest = `a@${"b".repeat(CELL_CHARACTERS_MAX - 2)}`;
    expect([looksLikeAddress(longest), looksLikeAddress(`${longest}b`)]).toEqual([true, false]);
  });

  test.each([
    [["name|city", "Ada|London"], '0 "name", 1 "city"'],
    [["name|address", "Ada|1 High Street"], "No column with addresses"],
    [["a|".repeat(30), "b"], "and 11 more"],
    [["name|city"], "in the first row. "],
    [["na\0\u0007me|city", "Ada|London"], 'in the first 2 rows. Choose one by name or zero-based index: 0 "na me"'],
  ])("is not found in %j", (rows, reason) => {
    expect(found(rows)).toContain(reason);
  });

  test("is not found without a header: the first row shows the columns", () => {
    expect(found(["Ada|London", "Bob|Paris"], { header: "false" })).toContain('0 "Ada", 1 "London"');
  });
});

test.each([
  ["requested", ["name|mail", "Ada|a@b.example"], { header: "auto", column: "mail" } as const],
  ["only_addresses", ["name|mail", "Ada|Ada <a@b.example>"], AUTO],
  ["named_email", ["email2|email", "a@b.example|c@d.example", "e@f.example|"], AUTO],
  ["most_addresses", ["old|new", "a@b.example|", "|c@d.example", "|e@f.example"], AUTO],
  ["name_among_equals", ["login|correo", "a@b.example|c@d.example"], AUTO],
  ["first_of_equals", ["from|to", "a@b.example|c@d.example"], AUTO],
  ["name_only", ["name|Email", "Ada|none"], AUTO],
])("the column is chosen for the reason %s", (reason, rows, options) => {
  const result = findAddressColumn(records(rows), options);
  expect(result).toMatchObject({ ok: true, value: { reason } });
});

describe("rows above the header", () => {
  const titled = (rows: readonly string[], options = AUTO) => {
    const result = findAddressColumn(records(rows), options);
    return result.ok ? { titles: result.value.titles.length, header: result.value.header } : result.error;
  };

  test.each([
    [["Customers 2026||", "|As of: 1 May|", "Name|Kontakt|Ort", "Ada|a@b.example|x"], 2, ["Name", "Kontakt", "Ort"]],
    [["Customers 2026", "email", "a@b.example"], 1, ["email"]],
    [["Name|Kontakt", "Ada|none", "Bob|b@b.example"], 0, ["Name", "Kontakt"]],
    [["jo.example.com", "none", "a@b.example"], 0, null],
    [["Name|Mail", "Ada|", "Bob|b@b.example"], 0, ["Name", "Mail"]],
    [["Name||Mail", "Ada|Smith|none", "Bob|Smith|b@b.example"], 0, ["Name", "", "Mail"]],
    [["|Mail", "Ada|none", "Bob|b@b.example"], 0, ["", "Mail"]],
  ])("of %j are %d", (rows, titles, header) => {
    expect(titled(rows)).toEqual({ titles, header });
  });

  test("a column is found by its name below the titles; with header=true there are no titles", () => {
    const rows = ["Customers|", "Name|Work", "Ada|a@b.example"];
    expect(titled(rows, { header: "auto", column: "work" })).toEqual({ titles: 1, header: ["Name", "Work"] });
    expect(titled(rows, { header: "true" })).toEqual({ titles: 0, header: ["Customers", ""] });
  });
});

describe("the first row", () => {
  test.each([
    [["email", "a@b.example"], true],
    [["contact", "a@b.example"], true],
    [["email"], true],
    [["contact|id", "a@b.example|7"], true],
    [["x@y.example", "a@b.example"], false],
    [["a@b.example"], false],
    [["mistyped.example.org", "a@b.example"], false],
    [["contact|17", "a@b.example|18"], false],
    [["contact|2026-01-31", "a@b.example|2026-02-01"], false],
    [["|Ada", "a@b.example|Bob"], false],
    [["contact|bob@b.example", "a@b.example|bob"], false],
  ])("of %j is a header: %p", (rows, isHeader) => {
    expect(found(rows)).toEqual({ column: 0, header: isHeader });
  });

  test("is what the request states", () => {
    expect(found(["a@b.example", "c@d.example"], { header: "true" })).toEqual({ column: 0, header: true });
    expect(found(["email", "c@d.example"], { header: "false" })).toEqual({ column: 0, header: false });
  });
});

describe("the requested column", () => {
  const rows = ["Name|Work|Home", "Ada|a@work.example|a@home.example"];

  test.each([
    ["home", 2],
    [" HOME ", 2],
    ["1", 1],
    ["0", 0],
  ])("%p is column %p: a name in any case, or an index", (column, index) => {
    expect(found(rows, { ...AUTO, column })).toEqual({ column: index, header: true });
  });

  test("is tried as a name before an index", () => {
    expect(found(["mail|0", "a@b.example|x"], { ...AUTO, column: "0" })).toEqual({ column: 1, header: true });
  });

  test.each(["mail", "3", "-1", "", "1e0", "12345"])("%p is refused with a list of the columns", (column) => {
    expect(found(rows, { ...AUTO, column })).toContain('0 "Name", 1 "Work", 2 "Home"');
  });

  test("cannot be a name when there is no header", () => {
    expect(found(rows, { column: "home", header: "false" })).toContain("There is no column");
  });
});

describe("the delimiter", () => {
  const choose = (rows: readonly string[]): string | null | undefined =>
    chooseDelimiter([...DELIMITERS, null].map((delimiter) => ({ delimiter, records: records(rows, delimiter) })))
      ?.delimiter;

  test.each([
    [["a@b.example,x", "c@d.example,y"], ","],
    [["a@b.example;1,5;x", "c@d.example;2,5;y"], ";"],
    [["a@b.example\tx, y", "c@d.example\tz, w"], "\t"],
    [["a@b.example|x", "c@d.example|y"], "|"],
    [["email", "a@b.example"], null],
    [["a@b.example", "c@d.example", "typ,o@d.example"], null],
    [["email,name", "a@b.example", "c@d.example", "e@f.example,Eve"], ","],
    [["email,name", "a@b.example", "c@d.example"], ","],
    [["name,city", "Ada,London"], ","],
    [["x"], null],
  ])("of %j is %j", (rows, delimiter) => {
    expect(choose(rows)).toBe(delimiter);
  });

  test("of nothing is none", () => {
    expect(choose([])).toBe(",");
    expect(chooseDelimiter([])).toBeUndefined();
  });
});

test.each([
  ["a@b.example", true],
  ["  Ünal@b.example ", true],
  ["a@localhost", true],
  ["", false],
  ["a", false],
  ["a@", false],
  ["a@b@c.example", false],
  ["Ada <a@b.example>", true],
  ["mailto:a@b.example?subject=x", true],
  ["a b@c.example", false],
  ["a@b.example;c@d.example", false],
  [`${"a".repeat(320)}@b.example`, false],
])("%j looks like an address: %p", (cell, is) => {
  expect(looksLikeAddress(cell)).toBe(is);
});

function rowsOf(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `u${index}@x.example|m${index}@x.example`);
}
