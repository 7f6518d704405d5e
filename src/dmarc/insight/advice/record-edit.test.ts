import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { parseRecord } from "../../records/record/record.ts";
import { setTag, type PolicyTag } from "./record-edit.ts";

import rows from "../../../../fixtures/dmarc/records.json" with { type: "json" };

describe("setting a tag", () => {
  test.each<[string, PolicyTag, string, string]>([
    ["v=DMARC1; p=none; rua=mailto:a@x.example", "p", "quarantine", "v=DMARC1; p=quarantine; rua=mailto:a@x.example"],
    ["v=DMARC1; p=none; rua=mailto:a@x.example", "np", "reject", "v=DMARC1; p=none; np=reject; rua=mailto:a@x.example"],
    ["v=DMARC1;p=none", "t", "y", "v=DMARC1;p=none; t=y"],
    ["v=DMARC1; p=none;", "t", "y", "v=DMARC1; p=none; t=y;"],
    ["v=DMARC1 ;  P =  None ; x=1 ;", "p", "reject", "v=DMARC1 ;  P =  reject ; x=1 ;"],
    ["v=DMARC1; p=Reject", "p", "reject", "v=DMARC1; p=Reject"],
    ["v=DMARC1; rua=mailto:a@x.example", "p", "quarantine", "v=DMARC1; p=quarantine; rua=mailto:a@x.example"],
    ["v=DMARC1; rua=mailto:a@x.example", "np", "reject", "v=DMARC1; np=reject; rua=mailto:a@x.example"],
    ["v=DMARC1; p=", "p", "none", "v=DMARC1; p=none"],
    ["v=DMARC1; p= ; t=y", "p", "none", "v=DMARC1; p=none ; t=y"],
    ["v=DMARC1; p=none; p=reject", "p", "quarantine", "v=DMARC1; p=quarantine; p=reject"],
    ["v=DMARC1", "p", "reject", "v=DMARC1; p=reject"],
    ["v=spf1 -all", "p", "reject", "v=spf1 -all"],
  ])("in %p: %s=%s", (text, name, value, expected) => {
    expect(setTag(text, name, value)).toBe(expected);
  });
});

describe("properties of every edit", () => {
  const piece = fc.constantFrom(
    ...["p=none", "sp=reject", "P = x", "p=", "p", "np = None", "t=y", "T =", "rua=mailto:a@x.example!10m , b", "x=1"],
    ...["", " ", "\t", ";", "=", "ü", "pct=50", "p=reject"],
  );
  const head = fc.constantFrom("v=DMARC1;", "V = DMARC1 ;", " v=DMARC1 ; ", "v=DMARC1");
  const generated = fc
    .tuple(head, fc.array(fc.tuple(piece, fc.constantFrom(";", "; ", " ;", "", ",")), { maxLength: 8 }))
    .map(([start, pieces]) => start + pieces.flat().join(""));
  const texts = fc.oneof(generated, fc.constantFrom(...rows.map(({ text }) => text)));
  const edits = fc.oneof(
    fc.tuple(fc.constantFrom<PolicyTag>("p", "sp", "np"), fc.constantFrom("none", "quarantine", "reject")),
    fc.tuple(fc.constant<PolicyTag>("t"), fc.constantFrom("y", "n")),
  );
  const firstOf = (text: string, name: string) => parseRecord(text).tags.find((tag) => tag.name === name);

  test("setting twice is setting once, and the tag then has the value", () => {
    fc.assert(
      fc.property(texts, edits, (text, [name, value]) => {
        const once = setTag(text, name, value);
        expect(setTag(once, name, value)).toBe(once);
        if (parseRecord(text).valid) expect(firstOf(once, name)?.value.toLowerCase()).toBe(value);
        else expect(once).toBe(text);
      }),
      { numRuns: 1000 },
    );
  });

  test("every other byte stays: undoing the change restores the text", () => {
    fc.assert(
      fc.property(texts, edits, (text, [name, value]) => {
        const edited = setTag(text, name, value);
        if (edited === text) return;
        const old = firstOf(text, name);
        const added = old === undefined ? `; ${name}=${value}` : value;
        const removed = old === undefined ? "" : old.value;
        const places = [...edited.matchAll(new RegExp(RegExp.escape(added), "g"))];
        expect(
          places.some(({ index }) => edited.slice(0, index) + removed + edited.slice(index + added.length) === text),
        ).toBe(true);
        const others = (record: string) =>
          parseRecord(record)
            .tags.filter((tag) => tag.name !== name)
            .map((tag) => [tag.name, tag.value]);
        expect(others(edited)).toEqual(others(text));
      }),
      { numRuns: 1000 },
    );
  });
});
