import { describe, expect, test } from "bun:test";
import { PIECE_BYTES, TOKEN_LIMITS, createXmlParser, xmlPieces } from "./report-xml.ts";

/** What the parser tells of a document: the longest token, and whether it was read to its end. */
const longestOf = (document: string) => {
  const { parser, read } = createXmlParser();
  let longest = 0;
  const hear = (text: string): void => {
    longest = Math.max(longest, text.length);
  };
  parser.on("error", () => undefined);
  for (const event of ["text", "cdata", "comment"] as const) parser.on(event, hear);
  parser.on("processinginstruction", ({ body }) => hear(body));
  parser.on("attribute", ({ value }) => hear(value));
  const isRead = read(document, () => false);
  return { isRead, longest };
};

const MUCH = 10 * TOKEN_LIMITS.textCharactersMax;
/** What one chunk can add before the token is looked at. */
const LONGEST = TOKEN_LIMITS.textCharactersMax + 16_384;

describe("a token without end", () => {
  test.each([
    ["text", `<a>${"x".repeat(MUCH)}</a>`],
    ["text of entities", `<a>${"&lt;".repeat(MUCH)}</a>`],
    ["section", `<a><![CDATA[${"]".repeat(MUCH)}]]></a>`],
    ["comment", `<a><!--${"-x".repeat(MUCH)}--></a>`],
    ["instruction", `<a><?x ${"?".repeat(MUCH)}?></a>`],
    ["attribute", `<a b="${"x".repeat(MUCH)}"/>`],
  ])("is cut: %s", (_what, document) => {
    const { isRead, longest } = longestOf(document);
    expect(isRead).toBe(true);
    expect(longest).toBeGreaterThan(0);
    expect(longest).toBeLessThanOrEqual(LONGEST);
  });

  const name = "x".repeat(20_000);
  test.each([
    ["element", `<a><${name}/></a>`],
    ["attribute's name", `<a ${name}="">x</a>`],
    ["entity", `<a>&${name};</a>`],
    ["instruction's target", `<a><?${name}?></a>`],
  ])("ends the reading: %s", (_what, document) => {
    expect(longestOf(document.replaceAll(name, name.repeat(2))).isRead).toBe(false);
  });
});

test("a document is decoded in pieces as it is in one, wherever a character is divided", () => {
  for (const encoding of ["utf-8", "utf-16le"] as const) {
    for (let padding = 0; padding < 8; padding += 1) {
      const text = `<${"x".repeat(PIECE_BYTES / (encoding === "utf-8" ? 1 : 2) - padding)}é€😀</x>`;
      const bytes = Buffer.from(encoding === "utf-8" ? text : `\uFEFF${text}`, encoding);
      expect([...xmlPieces(bytes)].join("")).toBe(text);
    }
  }
});
