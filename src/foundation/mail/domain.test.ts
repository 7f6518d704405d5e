import { expect, test } from "bun:test";
import fc from "fast-check";
import { parseDomain } from "./domain.ts";

const anyDomain = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 20 }),
  fc
    .array(
      fc.constantFrom("a", "1", "-", "--", ".", "xn--", "ü", "ß", "א", "ς", "例", "。", "😀", "\u0301", "_", "A"),
      { maxLength: 10 },
    )
    .map((pieces) => pieces.join("")),
);

test("what is accepted is LDH labels within the limits of DNS", () => {
  fc.assert(
    fc.property(anyDomain, (text) => {
      const name = parseDomain(text);
      if (!name.ok) return;
      for (const label of name.value.ascii.split(".")) expect(label).toMatch(/^(?!-)[a-z\d-]{1,63}(?<!-)$/);
      expect(name.value.ascii.length).toBeLessThanOrEqual(253);
    }),
    { numRuns: 1000 },
  );
});

test("both spellings of a name are read as that name", () => {
  fc.assert(
    fc.property(anyDomain, (text) => {
      const name = parseDomain(text);
      if (!name.ok) return;
      expect(parseDomain(name.value.ascii)).toEqual(name);
      expect(parseDomain(name.value.unicode)).toEqual(name);
    }),
    { numRuns: 1000 },
  );
});

test("the four deviations of UTS 46 keep their meaning (non-transitional)", () => {
  expect(parseDomain("faß.de")).toEqual({ ok: true, value: { ascii: "xn--fa-hia.de", unicode: "faß.de" } });
  expect(parseDomain("βόλος.com")).toEqual({ ok: true, value: { ascii: "xn--nxasmm1c.com", unicode: "βόλος.com" } });
});
