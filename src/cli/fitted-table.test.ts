import { expect, test } from "bun:test";
import fc from "fast-check";
import { fittedTable } from "./fitted-table.ts";

test("a table that fits is as wide as it needs", () => {
  expect(fittedTable(["A", "B"], [["x", "yy"]], 80)).toBe("A  B\nx  yy");
});

test("what is too long goes on in the next line, at spaces where there are any", () => {
  expect(fittedTable(["TARGET", "WHAT"], [["198.51.100.7", "reported as a source of spam"]], 28)).toBe(
    ["TARGET        WHAT", "198.51.100.7  reported as a", "              source of spam"].join("\n"),
  );
});

test("nothing is cut, and no line is wider than asked", () => {
  const cell = fc.stringMatching(/^[a-z0-9.]{0,40}( [a-z]{1,20}){0,4}$/);
  fc.assert(
    fc.property(
      fc.array(fc.tuple(cell, cell, cell), { minLength: 1, maxLength: 5 }),
      fc.integer({ min: 40, max: 120 }),
      (rows, width) => {
        const text = fittedTable(["ONE", "TWO", "THREE"], rows, width);
        for (const line of text.split("\n")) expect(line.length).toBeLessThanOrEqual(width);
        const letters = (parts: readonly string[]) => [...parts.join("").replace(/\s/g, "")].toSorted().join("");
        expect(letters([text])).toBe(letters(["ONETWOTHREE", ...rows.flat()]));
      },
    ),
  );
});
