import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { diffRecords, differentTags } from "./record-tags.ts";

const marked = (before: string, after: string): string =>
  diffRecords(before, after)
    .map(({ kind, text }) => ({ same: text, removed: `[-${text}]`, added: `[+${text}]` })[kind])
    .join("");

describe("the difference of two records", () => {
  test.each([
    ["v=DMARC1; p=none", "v=DMARC1; p=none", "v=DMARC1; p=none"],
    [
      "v=DMARC1; p=reject; rua=mailto:a@x.example",
      "v=DMARC1; p=reject; rua=mailto:a@x.example,mailto:b@y.example",
      "v=DMARC1; p=reject; rua=mailto:a@x.example[+,mailto:b@y.example]",
    ],
    [
      "v=DMARC1; p=none; sp=reject",
      "v=DMARC1; p=quarantine; sp=reject",
      "v=DMARC1; [-p=none][+p=quarantine]; sp=reject",
    ],
    ["v=DMARC1; p=none; pct=50", "v=DMARC1; p=none", "v=DMARC1; p=none[-; pct=50]"],
    ["", "v=DMARC1", "[+v=DMARC1]"],
    ["v=DMARC1", "", "[-v=DMARC1]"],
    ["", "", ""],
  ])("from %j to %j", (before, after, expected) => {
    expect(marked(before, after)).toBe(expected);
  });

  test("contains both texts whole, whatever they are", () => {
    const text = fc.oneof(
      fc.string({ unit: "grapheme" }),
      fc
        .array(fc.constantFrom("v=DMARC1", "; ", ";", ",", "p=none", "rua=mailto:a@x.example", " ", "\n"))
        .map((all) => all.join("")),
    );
    fc.assert(
      fc.property(text, text, (before, after) => {
        const parts = diffRecords(before, after);
        const only = (...kinds: readonly string[]) =>
          parts.flatMap((part) => (kinds.includes(part.kind) ? [part.text] : [])).join("");
        expect(only("same", "removed")).toBe(before);
        expect(only("same", "added")).toBe(after);
      }),
    );
  });

  test("of two long and different texts is one replacement, not the square of their length", () => {
    const long = (name: string) => Array.from({ length: 5_000 }, (_, n) => `${name}${n}=1`).join(";");
    expect(diffRecords(long("a"), long("b")).length).toBe(2);
  });
});

test("tags that differ are named with both values", () => {
  expect(
    differentTags("v=DMARC1; p=none; pct=50; p=reject", "v=DMARC1; rua=mailto:a@x.example; P=quarantine; t=y"),
  ).toEqual([
    { tag: "rua", before: null, after: "mailto:a@x.example" },
    { tag: "p", before: "none", after: "quarantine" },
    { tag: "t", before: null, after: "y" },
    { tag: "pct", before: "50", after: null },
  ]);
  expect(differentTags("v=DMARC1; p=none", "v=DMARC1;p = none;")).toEqual([]);
});
