import { expect, test } from "bun:test";
import fc from "fast-check";
import { safeLine, safeText } from "../foundation/base/visible-text.ts";
import { table } from "./terminal-text.ts";

test("a table that fits is as wide as it needs", () => {
  expect(table(["A", "B"], [["x", "yy"]], 80)).toBe("A  B\nx  yy");
});

test("what is too long goes on in the next line, at spaces where there are any", () => {
  expect(table(["TARGET", "WHAT"], [["198.51.100.7", "reported as a source of spam"]], 28)).toBe(
    ["TARGET        WHAT", "198.51.100.7  reported as a", "              source of spam"].join("\n"),
  );
});

test("a word is not broken: rows that do not fit become blocks", () => {
  const rows = [
    ["01a2044d-171b-7490-9e4c-0ee9286cd3d1", "first key of the shop"],
    ["01a2044d-171b-7490-9e4c-0ee9286cd3d2", "second"],
  ];
  expect(table(["ID", "NAME"], rows, 40)).toBe(
    [
      "ID    01a2044d-171b-7490-9e4c-0ee9286cd3d1".slice(0, 40),
      "      d1",
      "NAME  first key of the shop",
      "",
      "ID    01a2044d-171b-7490-9e4c-0ee9286cd3".padEnd(40),
      "      d2",
      "NAME  second",
    ].join("\n"),
  );
  expect(table(["ID", "NAME"], rows, 46)).toBe(
    [
      "ID                                    NAME",
      "01a2044d-171b-7490-9e4c-0ee9286cd3d1  first",
      "                                      key of",
      "                                      the shop",
      "01a2044d-171b-7490-9e4c-0ee9286cd3d2  second",
    ].join("\n"),
  );
});

test("nothing is cut, and no line is wider than asked", () => {
  const cell = fc.stringMatching(/^[a-z0-9.]{0,40}( [a-z]{1,20}){0,4}$/);
  fc.assert(
    fc.property(
      fc.array(fc.tuple(cell, cell, cell), { minLength: 1, maxLength: 5 }),
      fc.integer({ min: 40, max: 120 }),
      (rows, width) => {
        const text = table(["ONE", "TWO", "THREE"], rows, width);
        for (const line of text.split("\n")) expect(line.length).toBeLessThanOrEqual(width);
        const letters = (parts: readonly string[]) => [...parts.join("").replace(/\s/g, "")].toSorted().join("");
        const headings = Array.from({ length: text.split("THREE").length - 1 }, () => "ONETWOTHREE");
        expect(letters([text])).toBe(letters([...headings, ...rows.flat()]));
      },
    ),
  );
});

test.each([
  ["\u001b[2J", "\\u001b[2J"],
  ["a\rb", "a\\u000db"],
  ["\u0007\u007f", "\\u0007\\u007f"],
  ["\u0085\u009b31m", "\\u0085\\u009b31m"],
  ["\u202eevil\u2066\u2069\u200f", "\\u202eevil\\u2066\\u2069\\u200f"],
  ["a\u200b\u2060\ufeff\u00adb", "a\\u200b\\u2060\\ufeff\\u00adb"],
  ["\u2028\u2029", "\\u2028\\u2029"],
  ["\u{e0041}", "\\udb40\\udc41"],
  ["\ud800", "\\ud800"],
  ["Jürgen 😀 名前 \u00a0", "Jürgen 😀 名前 \u00a0"],
])("%j is printed as %s", (text, printed) => {
  expect(safeText(text)).toBe(printed);
});

test("line feeds stay, but not in a text of one line", () => {
  expect(safeText("a\nb")).toBe("a\nb");
  expect(safeLine("a\nb")).toBe("a\\u000ab");
});

test("JSON stays the same JSON", () => {
  const data = { text: "\u009b\u202e\u0000\u{e0041}\ud800 \\u0041" };
  const printed = safeText(JSON.stringify(data));
  expect(JSON.parse(printed)).toEqual(data);
  expect(printed).not.toMatch(/[\u0080-\u009f\u202e]/);
});
