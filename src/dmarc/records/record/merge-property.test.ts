import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import rows from "../../../../fixtures/dmarc/records.json" with { type: "json" };
import { mergeRua, type RuaMerge } from "./merge.ts";
import { parseRecord } from "./record.ts";

const OURS = "k3y7@reports.example.net";
const URI = `mailto:${OURS}`;

const mergeTexts = (...texts: readonly string[]): RuaMerge => {
  const published = { kind: "texts", texts } as const;
  const merged = mergeRua({ domain: "example.com", published, ours: OURS, inherited: null });
  if (!merged.ok) throw new Error(merged.error.outcome);
  return merged.value;
};

describe("properties of every merge", () => {
  const piece = fc.constantFrom(
    ...[
      "p=none",
      "sp=reject",
      "P = x",
      "rua=",
      "rua",
      "RUA = mailto:a@x.example!10m , b",
      "x=1",
      "ruf=mailto:a@x.example",
      "",
    ],
    ...[
      "mailto:a@x.example",
      ",",
      " ",
      "\t",
      ";",
      "=",
      "!",
      "%",
      "ü",
      "rua=,",
      `rua=mailto:${OURS.toUpperCase()}!1k`,
      "rua=%",
    ],
  );
  const head = fc.constantFrom("v=DMARC1;", "V = DMARC1 ;", " v=DMARC1 ; ", "v=DMARC1");
  const generated = fc
    .tuple(head, fc.array(fc.tuple(piece, fc.constantFrom(";", "; ", " ;", "", ",")), { maxLength: 8 }))
    .map(([start, pieces]) => start + pieces.flat().join(""));
  const written = fc.constantFrom(...rows.map(({ text }) => text));

  const countOurs = (text: string): number =>
    parseRecord(text).values?.rua.filter(({ address }) => address === OURS).length ?? 0;
  const othersOf = (text: string): string[][] =>
    parseRecord(text)
      .tags.filter(({ name }) => name !== "rua")
      .map(({ name, value }) => [name, value]);
  const urisOf = (text: string): string[] =>
    (parseRecord(text).values?.rua ?? []).map((uri) => uri.text).filter((uri) => uri !== "" && uri !== URI);

  test("what was merged is merged: the second time there is nothing to do", () => {
    fc.assert(
      fc.property(fc.oneof(generated, written), (text) => {
        const first = mergeTexts(text);
        if (first.action === "conflict") return;
        expect(mergeTexts(first.value)).toMatchObject({ action: "none", value: first.value });
      }),
      { numRuns: 1000 },
    );
  });

  test("our address is there, and once unless it was there more often before", () => {
    fc.assert(
      fc.property(fc.oneof(generated, written), (text) => {
        const merged = mergeTexts(text);
        if (merged.action === "conflict") return;
        expect(countOurs(merged.value)).toBe(Math.max(1, countOurs(text)));
      }),
      { numRuns: 1000 },
    );
  });

  test("an update only adds: the old text is what remains when the addition is taken out, a cut end aside", () => {
    fc.assert(
      fc.property(fc.oneof(generated, written), (text) => {
        const merged = mergeTexts(text);
        if (merged.action !== "update") return;
        const additions = [`,${URI}`, URI, `; rua=${URI}`];
        const isOnlyAdded = additions.some((added) =>
          [...merged.value.matchAll(new RegExp(RegExp.escape(added), "g"))].some(({ index }) => {
            const rest = merged.value.slice(0, index) + merged.value.slice(index + added.length);
            return (
              rest === text ||
              (added.startsWith(";") && index === rest.length && rest === text.replace(/[; \t\r\n]+$/, ""))
            );
          }),
        );
        expect(isOnlyAdded).toBe(true);
        expect(othersOf(merged.value)).toEqual(othersOf(text));
        expect(urisOf(merged.value)).toEqual(urisOf(text));
      }),
      { numRuns: 1000 },
    );
  });

  test("every record of fixtures/dmarc is updated, left alone or refused; every other text makes way for a new one", () => {
    for (const { text, valid } of rows) {
      expect(mergeTexts(text).action === "create").toBe(!valid);
    }
  });
});
