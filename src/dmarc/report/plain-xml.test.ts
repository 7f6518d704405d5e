import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import expected from "../../../fixtures/dmarc/reports/expected.json" with { type: "json" };
import { NOT_PLAIN, walkPlainReport } from "./plain-xml.ts";
import { readReport } from "./read-report.ts";
import { ReportDraft } from "./report-draft.ts";
import type { ReportSink } from "./report-sink.ts";
import { xmlPieces } from "./xml-text.ts";

const FIXTURES = new URL("../../../fixtures/dmarc/reports/", import.meta.url).pathname;
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

/** What a sink gets, in order. */
const createRecorder = () => {
  const events: string[] = [];
  const sink: ReportSink = {
    open: (path) => {
      events.push(`<${path.join("/")}`);
      return null;
    },
    close: (path, text) => void events.push(`>${path.join("/")}=${text}`),
  };
  return { events, sink };
};

const walk = async (pieces: Iterable<string>) => {
  const { events, sink } = createRecorder();
  const walked = await walkPlainReport(pieces, sink);
  return walked.ok ? events : walked.error;
};

const PLAIN = `<?xml version="1.0" encoding="UTF-8" ?>\r
<ns:Feedback xmlns:ns="urn:x" id='1'>
  <version> 1.0\t</version><sp/><a b="c" />
  <record><row><Source_IP>192.0.2.1</Source_IP><comment>a &lt;b&gt; &amp;amp; \u00e9\u2028</comment></row>\r
  </record>
</ns:Feedback>
`;

test("a plain document is passed on with local names, entities expanded, texts trimmed", async () => {
  expect(await walk([PLAIN])).toEqual([
    "<version",
    ">version=1.0",
    "<sp",
    ">sp=",
    "<a",
    ">a=",
    "<record",
    "<record/row",
    "<record/row/source_ip",
    ">record/row/source_ip=192.0.2.1",
    "<record/row/comment",
    ">record/row/comment=a <b> &amp; \u00e9",
    ">record/row=",
    ">record=",
  ]);
});

test("it may be split anywhere behind its declaration", async () => {
  const whole = await walk([PLAIN]);
  for (let at = PLAIN.indexOf("\r"); at < PLAIN.length; at += 1) {
    expect(await walk([PLAIN.slice(0, at), PLAIN.slice(at)])).toEqual(whole);
  }
});

test.each([
  ["another root", "<a><b/></a>"],
  ["a root around it", "<a><feedback></feedback></a>"],
  ["an empty root", "<feedback/>"],
  ["a comment", "<feedback><!-- --></feedback>"],
  ["a section", "<feedback><a><![CDATA[b]]></a></feedback>"],
  ["an instruction", "<feedback><?a?></feedback>"],
  ["a document type", "<!DOCTYPE a><feedback></feedback>"],
  ["a declaration of XML 1.1", '<?xml version="1.1"?><feedback></feedback>'],
  ["a numeric entity", "<feedback><a>&#65;</a></feedback>"],
  ["an unknown entity", "<feedback><a>&b;</a></feedback>"],
  ["a bare ampersand", "<feedback><a>b & c &amp; d</a></feedback>"],
  ["a bare bracket", "<feedback><a>b > c</a></feedback>"],
  ["an end tag of another element", "<feedback><a></b></feedback>"],
  ["an end tag in another case", "<feedback><a></A></feedback>"],
  ["an end tag too many", "<feedback></feedback></a>"],
  ["no end", "<feedback><a></a>"],
  ["text behind the end", "<feedback></feedback>a"],
  ["an element behind the end", "<feedback></feedback><a></a>"],
  ["text before an element", "<feedback>b<a></a></feedback>"],
  ["text behind an element", "<feedback><a></a>b</feedback>"],
  ["text behind an empty element", "<feedback><c><a/>b</c></feedback>"],
  ["an attribute without quotes", "<feedback><a b=c></a></feedback>"],
  ["an attribute twice", '<feedback><a b="c" b="d"></a></feedback>'],
  ["an attribute with an entity", '<feedback><a b="&lt;"></a></feedback>'],
  ["a name that is none", "<feedback><1></1></feedback>"],
  ["a character that XML forbids", "<feedback><a>\u0001</a></feedback>"],
  ["a character in two halves", "<feedback><a>\u{1f600}</a></feedback>"],
  ["a line end within a text", "<feedback><a>b\r\nc</a></feedback>"],
  ["a long text", `<feedback><a>${"b".repeat(1025)}</a></feedback>`],
  ["a long tag", `<feedback><a b="${"c".repeat(1025)}"></a></feedback>`],
  ["33 levels", `<feedback>${"<a>".repeat(33)}${"</a>".repeat(33)}</feedback>`],
  ["nothing", ""],
])("%s is not plain", async (_, text) => {
  expect(await walk([text])).toBe(NOT_PLAIN);
});

test("white space behind the end is read once, however much there is", async () => {
  const pieces = Array.from({ length: 2_000 }, () => " ".repeat(64 * 1024));
  expect(await walk(["<feedback></feedback>", ...pieces])).toEqual([]);
});

test("a problem that the sink finds is passed on", async () => {
  const records = "<record></record>".repeat(3);
  const walked = await walkPlainReport([`<feedback>${records}</feedback>`], new ReportDraft(2));
  expect(walked).toEqual({ ok: false, error: "too_many_records" });
});

const seeds = (
  await Promise.all(Object.keys(expected).map(async (path) => Buffer.from(await Bun.file(FIXTURES + path).bytes())))
).filter((seed) => seed.includes("<feedback"));

const isPlain = async (bytes: Uint8Array): Promise<boolean> => typeof (await walk(xmlPieces(bytes))) !== "string";

/** The same document with a comment behind its end, so that the complete parser reads it. */
const forParser = (bytes: Uint8Array): Uint8Array => Buffer.concat([bytes, bytesOf("<!-- -->")]);

describe("a plain document is read as the complete parser reads it", () => {
  test("in every fixture", async () => {
    const plain = await Promise.all(seeds.map(isPlain));
    expect(plain.filter(Boolean).length).toBeGreaterThan(seeds.length / 3);
    for (const [at, seed] of seeds.entries()) {
      if (plain[at] === true) expect(await readReport(seed)).toEqual(await readReport(forParser(seed)));
    }
  });

  test("after any small change of a fixture", async () => {
    const change = fc.tuple(
      fc.constantFrom(...seeds),
      fc.nat(),
      fc.nat({ max: 30 }),
      fc.constantFrom(
        "",
        " ",
        "<a/>",
        "<sp></sp>",
        "&lt;",
        "&",
        "]]>",
        "<",
        ">",
        "\r\n",
        "x",
        '<a b="c">',
        "</a>",
        "\ufffe",
      ),
    );
    let read = 0;
    const property = fc.asyncProperty(change, async ([seed, at, length, text]) => {
      const from = at % (seed.byteLength + 1);
      const bytes = Buffer.concat([seed.subarray(0, from), bytesOf(text), seed.subarray(from + length)]);
      if (!(await isPlain(bytes))) return;
      read += 1;
      expect(await readReport(bytes)).toEqual(await readReport(forParser(bytes)));
    });
    await fc.assert(property, { numRuns: 3_000 });
    expect(read).toBeGreaterThan(100);
  });
});
