import { expect, test } from "bun:test";
import { safeLine, safeText } from "./safe-text.ts";

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
