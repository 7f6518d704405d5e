import { describe, expect, test } from "bun:test";
import { CELL_CHARACTERS_MAX, keptCell, normalizeCell, readAddressCell } from "./address-in-cell.ts";

const textOf = (cell: string): string => {
  const read = readAddressCell(cell);
  return read.ok ? read.value.text : `(${read.error})`;
};

describe("the address of a cell", () => {
  const same = "anna@good.example";
  for (const cell of [
    "anna@good.example",
    "  anna@good.example\u00a0",
    "Anna Meier <anna@good.example>",
    '"Meier, Anna" <anna@good.example>',
    "anna@good.example <anna@good.example>",
    "<anna@good.example>",
    "mailto:anna@good.example",
    "MAILTO:anna@good.example?subject=Hello%20there",
    "mailto:anna%40good.example",
    "Anna <mailto:anna@good.example>;",
    '"anna@good.example"',
    "'anna@good.example',",
    "“anna@good.example”",
    "anna@good.example;",
    ",anna@good.example,",
    "\u200banna@\u200bgood.example",
    "\ufeffanna@good.example",
    "\u202aanna@good.example\u202c",
  ])
    test(JSON.stringify(cell), () => expect(textOf(cell)).toBe(same));

  test("what is an address already is not touched", () => {
    expect(textOf('"a;b"@good.example')).toBe('"a;b"@good.example');
    expect(textOf("'anna@good.example")).toBe("'anna@good.example");
    expect(textOf("a%40b@good.example")).toBe("a%40b@good.example");
  });

  test("two addresses are none, and the reason says so", () => {
    expect(textOf("anna@good.example, ben@good.example")).toBe("(several_addresses)");
    expect(textOf("anna@good.example;ben@good.example")).toBe("(several_addresses)");
    expect(textOf("ben@good.example <anna@good.example>")).toBe("(several_addresses)");
    expect(textOf("mailto:anna@good.example,ben@good.example")).toBe("(several_addresses)");
  });

  test("a cell without an address is empty, one with another text is not", () => {
    for (const cell of ["", "  ", "\u200b", "<>", '""', ";", "mailto:"]) expect(textOf(cell)).toBe("(empty)");
    expect(textOf("n/a")).toBe("(no_at_sign)");
    expect(textOf("Anna <anna@>")).toBe("(domain_empty)");
  });

  test("a cell that is too long is no address, whatever it holds", () => {
    const long = `${"x".repeat(CELL_CHARACTERS_MAX)} <anna@good.example>`;
    expect(textOf(long)).toBe("(address_too_long)");
    expect(keptCell(long)).toBe(`${"x".repeat(CELL_CHARACTERS_MAX)}…`);
    expect(textOf(keptCell(long))).toBe("(address_too_long)");
    expect([...keptCell("😀".repeat(400))].length).toBe(CELL_CHARACTERS_MAX + 1);
    expect(keptCell("😀".repeat(CELL_CHARACTERS_MAX))).toBe("😀".repeat(CELL_CHARACTERS_MAX));
  });
});

test("cells are told apart by the address that is read", () => {
  expect(normalizeCell("Anna <Anna@Good.example>")).toBe("anna@good.example");
  expect(normalizeCell("<>")).toBe("");
  expect(normalizeCell("No Address")).toBe("no address");
  expect(normalizeCell("y".repeat(9_000))).toBe(normalizeCell("y".repeat(8_000)));
});

test("hostile text takes no time", () => {
  for (const cell of ["<".repeat(320), "mailto:".repeat(45), '"'.repeat(320), "a@".repeat(160), "a@b.".repeat(80)])
    expect(readAddressCell(cell).ok).toBe(false);
});
