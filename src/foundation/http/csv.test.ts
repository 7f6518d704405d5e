import { expect, test } from "bun:test";
import { type Cell, csvLine } from "./csv.ts";

test.each<[readonly Cell[], string]>([
  [["a", "b"], "a,b"],
  [["a,b", "c;d", "e\tf", "g|h"], '"a,b","c;d","e\tf","g|h"'],
  [['say "hi"', "two\r\nlines"], '"say ""hi""","two\r\nlines"'],
  [[" a", "b "], '" a","b "'],
  [[1, true, null, ""], "1,true,,"],
  [[""], '""'],
  [["=1+1", "@cmd", "\tx", "+1 (555) 1234", "-x"], "'=1+1,'@cmd,\"'\tx\",+1 (555) 1234,'-x"],
])("the cells %j are the line %j", (cells, line) => {
  expect(csvLine(cells)).toBe(`${line}\r\n`);
});

test("a line for programs keeps its cells, with the delimiter of choice", () => {
  expect(csvLine(["=1+1", "b"], { delimiter: ";", defuse: false })).toBe("=1+1;b\r\n");
});
