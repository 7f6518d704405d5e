import fc from "fast-check";
import { expect, test } from "bun:test";
import { measureQuotedString, parseLocalPart } from "./address.ts";

test.each([
  ['"a"', 3],
  ['"a"b', 3],
  ['""', 2],
  ['"a\\"b"@', 6],
  ['"a', -1],
  ['"', -1],
  ['"a\\"', -1],
  ['"a\\', -1],
])("the quoted string at the start of %s ends at %d", (text, length) => {
  expect(measureQuotedString(text)).toBe(length);
});

test("the two spellings differ only in case", () => {
  expect(parseLocalPart('"Jo\\e Blow"')).toEqual({
    ok: true,
    value: { normalized: '"joe blow"', onWire: '"Joe Blow"' },
  });
});

test("a joiner that joins nothing in lower case is refused", () => {
  expect(parseLocalPart("é\u200dİ").ok).toBe(false);
  expect(parseLocalPart("é\u200dé").ok).toBe(true);
});

test("the octets are counted as written, so quotes count even where they are needless", () => {
  expect(parseLocalPart(`"${"a".repeat(62)}"`).ok).toBe(true);
  expect(parseLocalPart(`"${"a".repeat(63)}"`)).toEqual({ ok: false, error: "local_part_too_long" });
});

test("an accepted spelling never grows on the wire", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('"', "\\", "a", ".", " ", "é", "用", "@") }), (text) => {
      const part = parseLocalPart(text);
      if (part.ok) expect(Buffer.byteLength(part.value.onWire)).toBeLessThanOrEqual(Buffer.byteLength(text));
    }),
    { numRuns: 1000 },
  );
});
