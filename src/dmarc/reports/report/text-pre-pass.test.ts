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
    ["<org_name>x <email></org_name>", "<org_name>x &lt;email></org_name>"],
    ["<report_id><row> <b> 1</report_id>", "<report_id>&lt;row> &lt;b> 1</report_id>"],
    ["<email><row><count>5</count></row></email>", "<email><row><count>5</count></row></email>"],
    ["<xs:schema a='1'><feedback></feedback>", "&lt;xs:schema a='1'><feedback></feedback>"],
    ["<feedback></x></feedback>", "<feedback></x></feedback>"],
    ["<record><a><b@c></a></record>", "<record><a>&lt;b@c></a></record>"],
    ["<record><envelope_from><></envelope_from></record>", "<record><envelope_from>&lt;></envelope_from></record>"],
    ["<record><envelope_to><b.x></envelope_to></record>", "<record><envelope_to>&lt;b.x></envelope_to></record>"],
    ["<record><spf><domain><b.x></domain></spf></record>", "<record><spf><domain>&lt;b.x></domain></spf></record>"],
    ["<record><envelope_from><a@b</envelope_from></record>", "<record><envelope_from>&lt;a@b</envelope_from></record>"],
    ["<record><selector><none></selector></record>", "<record><selector>&lt;none></selector></record>"],
    ["<record><comment>no key <x.y></comment></record>", "<record><comment>no key &lt;x.y></comment></record>"],
    ["<record><comment>1 < 2</comment></record>", "<record><comment>1 &lt; 2</comment></record>"],
    ["<feedback><x>1</x><y/></feedback>", "<feedback><x>1</x><y/></feedback>"],
    ["<feedback></feedback> & more", "<feedback></feedback>"],
    ["<a:feedback></a:feedback> & more", "<a:feedback></a:feedback>"],
    ["<a><!-- & < --><![CDATA[ & < ]]><?pi & ?></a>", "<a><!-- & < --><![CDATA[ & < ]]><?pi & ?></a>"],
    ["<a><!-- & </a>", "<a>&lt;!-- &amp; </a>"],
    ['<a b="R & D">x</a>', '<a b="R &amp; D">x</a>'],
    ["<record><row>", "<record><row>"],
    ["a\u0000\u000bb", "a\ufffd\ufffdb"],
  ])("%j becomes %j", async (text, repaired) => {
    expect(await repairText(text)).toEqual({ text: repaired, damagedLine: null });
  });

  test("is left alone when it is XML", async () => {
    const xml = '<?xml version="1.0"?>\n<feedback a="1"><x y=\'2\'>a &amp; b</x><z/></feedback>';
    expect(await repairText(xml)).toEqual({ text: xml, damagedLine: null });
  });

  test.each([
    ["<record>\n<ro", 2],
    ["<record><row>\r\n</row>\r\n<iden\r\n<record>", 3],
    ["<record>\r<a>x<heelope_from>y</a></record>", 2],
    ["<record><count>1<5</count></record>", 1],
    ["<record><count><5></count></record>", 1],
    ["<record><selector>s1<none></selector></record>", 1],
    ["<record><selector><none></sel></record>", 1],
    ["<feedback>\n\n<rec<record>", 3],
    ["<feedback><re><record></record></feedback>", 1],
    ["<feedback><!-- x <record></record></feedback>", 1],
  ])("%j has lost a piece in line %i", async (text, damagedLine) => {
    expect(await repairText(text)).toMatchObject({ damagedLine });
  });
});

describe("a text that is far from XML", () => {
  test.each(["<", "&", "<!--", "<x ", "<x@y>", "<x>"])("of many %j is given up", async (piece) => {
    const isGivenUp = async (times: number) => (await repairText(`<email>${piece.repeat(times)}`)) === null;
    expect(await isGivenUp(REPAIR_LIMITS.changesMax)).toBe(false);
    expect(await isGivenUp(REPAIR_LIMITS.changesMax + 1)).toBe(true);
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

test("a well-formed report, with whatever texts, is the same after a repair", async () => {
  const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const written = fc.oneof(
    fc.constantFrom("<email>", "x <org_name>", "</row>", "R & D", "<a@b.example>", "<!-- x", "1 < 2", "]]>"),
    fc.string({ maxLength: 20 }).filter((text) => !/[^\t\n\r -\uD7FF]/.test(text)),
  );
  const leaf = fc
    .tuple(fc.constantFrom("org_name", "email", "report_id", "extra_contact_info", "count", "comment"), written)
    .map(([name, text]) => `<${name}>${escaped(text)}</${name}>`);
  const section = fc
    .tuple(fc.constantFrom("report_metadata", "record", "x:own", "row"), fc.array(leaf, { maxLength: 5 }))
    .map(([name, leaves]) => `<${name}>${leaves.join("\n")}</${name}>`);
  const property = fc.asyncProperty(fc.array(section, { maxLength: 6 }), async (sections) => {
    const xml = `<feedback>${sections.join("")}</feedback>`;
    expect(await repairText(xml)).toEqual({ text: xml, damagedLine: null });
  });
  await fc.assert(property, { numRuns: 500 });
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
    const once = await repairText(`<feedback><email>${pieces.join("")}</email></feedback>`);
    if (once === null || once.damagedLine !== null) return;
    expect(await repairText(once.text)).toEqual(once);
    const faults: string[] = [];
    const parser = new SaxesParser({ xmlns: false });
    parser.on("error", ({ message }) => faults.push(message));
    parser.write(once.text).close();
    expect(faults.filter((fault) => /entity/.test(fault))).toEqual([]);
  });
  await fc.assert(property, { numRuns: 1000 });
});
