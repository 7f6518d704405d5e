import { expect, test } from "bun:test";
import fc from "fast-check";
import { MalformedMessage, normalizeName, readName, writeName } from "./dns-name.ts";

const LONGEST = `${"a".repeat(63)}.${"b".repeat(63)}.${"c".repeat(63)}.${"d".repeat(61)}`;

test.each([
  ["Example.COM", "example.com"],
  ["example.com.", "example.com"],
  ["_dmarc.Example.com", "_dmarc.example.com"],
  ["0/25.2.0.192.in-addr.arpa", "0/25.2.0.192.in-addr.arpa"],
  ["com", "com"],
  [".", "."],
  [LONGEST, LONGEST],
  [`${LONGEST}.`, LONGEST],
  [`${"a".repeat(63)}.example`, `${"a".repeat(63)}.example`],
])("%p is asked for as %p", (name, normalized) => expect(normalizeName(name)).toBe(normalized));

test.each([
  "",
  "..",
  ".com",
  "a..b",
  "example.com..",
  "a b.com",
  "a\tb",
  "a\\.b",
  "münchen.de",
  "a\0b",
  `${"a".repeat(64)}.com`,
  `${LONGEST}d`,
])("%p cannot be asked for", (name) => expect(normalizeName(name)).toBeUndefined());

test("a written name reads back, and ends where the writing ended", () => {
  const label = fc.stringMatching(/^[a-z0-9_-]{1,63}$/);
  fc.assert(
    fc.property(fc.array(label, { maxLength: 3 }), fc.nat(20), (labels, offset) => {
      const name = labels.join(".") || ".";
      const bytes = new Uint8Array(300);
      const next = writeName(bytes, name, offset);
      expect(readName(bytes, offset)).toEqual({ name, next });
    }),
  );
});

const read = (hex: string, offset = 0) => readName(Buffer.from(hex.replaceAll(" ", ""), "hex"), offset);

test.each([
  ["the root", "00", 0, ".", 1],
  ["letters become lower case", "03 574f57 00", 0, "wow", 5],
  ["a pointer backwards", "01 61 00 01 62 c000", 3, "b.a", 7],
  ["a pointer to a pointer", "01 61 00 c000 01 62 c003", 5, "b.a", 9],
  ["a dot inside a label is no separator", "03 612e62 00", 0, "a\\.b", 5],
  ["a backslash is escaped", "01 5c 00", 0, "\\\\", 3],
  ["other bytes are written as numbers", "03 2000ff 00", 0, "\\032\\000\\255", 5],
])("reading: %s", (_, hex, offset, name, next) => expect(read(hex, offset)).toEqual({ name, next }));

test.each([
  ["nothing", "", 0],
  ["no final zero", "01 61", 0],
  ["a label past the end", "05 6161", 0],
  ["half a pointer", "c0", 0],
  ["a pointer to itself", "c000", 0],
  ["a pointer forwards", "c002 00", 0],
  ["a pointer into its own labels", "01 61 c000", 0],
  ["two pointers in a circle", "c002 c000", 2],
  ["the reserved label types", "41 61 00", 0],
  ["the other reserved label types", "81 61 00", 0],
  ["a name of 256 octets", `${`3f${"61".repeat(63)}`.repeat(4)}00`, 0],
])("refused: %s", (_, hex, offset) => expect(() => read(hex, offset)).toThrow(MalformedMessage));

test("a chain of a thousand pointers is refused", () => {
  const bytes = Buffer.alloc(2002);
  for (let at = 2; at < 2002; at += 2) bytes.writeUInt16BE(0xc000 | (at - 2), at);
  expect(() => readName(bytes, 2000)).toThrow(MalformedMessage);
  expect(readName(bytes, 200).name).toBe(".");
});
