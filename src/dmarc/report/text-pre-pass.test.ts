import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { SaxesParser } from "saxes";
import { REPAIR_LIMITS, repairText } from "./text-pre-pass.ts";

describe("a text that is nearly XML", () => {
  test.each([
    ["<a>R & D</a>", "<a>R &amp; D</a>"],
    ["<a>&lt;&amp;&#38;&#x26;</a>", "<a>&lt;&amp;&#38;&#x26;</a>"],
    ["<a>&nbsp;&foo</a>", "<a>&amp;nbsp;&amp;foo</a>"],
    ["<a>1 < 2</a>", "<a>1 &lt; 2</a>"],
    ["<email>Jo <jo@x.example></email>", "<email>Jo &lt;jo@x.example></email>"],
    ["<email>Jo <Jo Smith></email>", "<email>Jo &lt;Jo Smith></email>"],
    ["<report_id><abc.1></report_id>", "<report_id>&lt;abc.1></report_id>"],
    ["<xs:schema a='1'><feedback></feedback>", "&lt;xs:schema a='1'><feedback></feedback>"],
    ["<feedback></x></feedback>", "<feedback>&lt;/x></feedback>"],
    ["<feedback><x>1</x><y/></feedback>", "<feedback><x>1</x><y/></feedback>"],
    ["<feedback></feedback> & more", "<feedback></feedback>"],
    ["<a:feedback></a:feedback> & more", "<a:feedback></a:feedback>"],
    ["<a><!-- & < --><![CDATA[ & < ]]><?pi & ?></a>", "<a><!-- & < --><![CDATA[ & < ]]><?pi & ?></a>"],
    ["<a><!-- & </a>", "<a>&lt;!-- &amp; </a>"],
    ['<a b="R & D">x</a>', '<a b="R &amp; D">x</a>'],
    ["<record><row>", "<record><row>"],
    ["<record><ro", "<record>&lt;ro"],
    ["a\u0000\u000bb", "a\ufffd\ufffdb"],
  ])("%j becomes %j", async (text, repaired) => {
    expect(await repairText(text)).toBe(repaired);
  });

  test("is left alone when it is XML", async () => {
    const xml = '<?xml version="1.0"?>\n<feedback a="1"><x y=\'2\'>a &amp; b</x><z/></feedback>';
    expect(await repairText(xml)).toBe(xml);
  });
});

describe("a text that is far from XML", () => {
  test.each(["<", "&", "</x>", "<!--", "<x ", "<x@y>", "<x>"])("of many %j is given up", async (piece) => {
    expect(await repairText(`<feedback>${piece.repeat(REPAIR_LIMITS.changesMax)}`)).not.toBeNull();
    expect(await repairText(`<feedback>${piece.repeat(REPAIR_LIMITS.changesMax + 1)}`)).toBeNull();
  });

  test("is given up when more names are closed than any report has", async () => {
    const closed = (names: number) => Array.from({ length: names }, (_, index) => `<a${index}></a${index}>`).join("");
    expect(await repairText(closed(REPAIR_LIMITS.namesMax))).not.toBeNull();
    expect(await repairText(closed(REPAIR_LIMITS.namesMax + 1))).toBeNull();
  });

  test("is given up when it is too long", async () => {
    expect(await repairText(" ".repeat(REPAIR_LIMITS.charactersMax))).not.toBeNull();
    expect(await repairText(" ".repeat(REPAIR_LIMITS.charactersMax + 1))).toBeNull();
  });
});

test("what is repaired once needs no second repair, and has no bare ampersand left for the parser", async () => {
  const piece = fc.constantFrom(
    "<",
    ">",
    "&",
    "&amp;",
    "</",
    "/>",
    "a",
    "row",
    " ",
    "=",
    '"',
    "x@y",
    "<row>",
    "</row>",
    "<b>",
  );
  const property = fc.asyncProperty(fc.array(piece, { maxLength: 40 }), async (pieces) => {
    const once = await repairText(`<feedback>${pieces.join("")}</feedback>`);
    expect(await repairText(once ?? "")).toBe(once);
    const faults: string[] = [];
    const parser = new SaxesParser({ xmlns: false });
    parser.on("error", ({ message }) => faults.push(message));
    parser.write(once ?? "").close();
    expect(faults.filter((fault) => /entity/.test(fault))).toEqual([]);
  });
  await fc.assert(property, { numRuns: 1000 });
});
