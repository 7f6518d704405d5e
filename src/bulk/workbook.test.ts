import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApps } from "../testing/app.ts";
import { BULK_PATH, postList, untilJobEnded } from "../testing/bulk-requests.ts";
import { workbookOf, workbookWith, zipArchive } from "../testing/workbook.ts";
import { isArchive, writeWorkbookAsCsv } from "./workbook.ts";

const folder = mkdtempSync(join(tmpdir(), "postwarden-workbook-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const LIMITS = { bytesMax: 1024 * 1024 };
let files = 0;

/** The CSV of a workbook, without its byte order mark, or why there is none. */
const csvOf = async (bytes: Uint8Array): Promise<string> => {
  const path = join(folder, `${files++}.xlsx`);
  writeFileSync(path, bytes);
  try {
    await writeWorkbookAsCsv(path, `${path}.csv`, LIMITS);
    return (await Bun.file(`${path}.csv`).text()).replace("\ufeff", "");
  } catch (error) {
    return `(${error instanceof Error ? error.message : String(error)})`;
  }
};

const start = createApps();

describe("a sheet", () => {
  test("is converted to CSV: shared, inline and computed texts, numbers, booleans, gaps", async () => {
    const strings =
      "<si><t>E-Mail</t></si><si><r><t>An</t></r><r><t>na</t></r><rPh><t>phonetic</t></rPh></si><si><t>a &quot;b&quot;, c</t></si>";
    const rows =
      '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1" t="inlineStr"><is><t>x</t></is></c></row><row r="3"/>' +
      '<row r="4"><c r="A4" t="s"><v>1</v></c><c r="B4" t="s"><v>2</v></c><c r="C4" t="str"><f>A1&amp;B1</f><v>y</v></c></row>' +
      '<row r="5"><c><v>4.9123E+11</v></c><c t="b"><v>1</v></c><c t="e"><v>#N/A</v></c><c><v>0.5</v></c></row>';
    expect(await csvOf(workbookWith({ strings, rows }))).toBe(
      'E-Mail,,x\r\nAnna,"a ""b"", c",y\r\n491230000000,TRUE,#N/A,0.5\r\n',
    );
  });

  test("has dates as ISO 8601", async () => {
    const styles =
      '<numFmts><numFmt numFmtId="164" formatCode="dd\\.mm\\.yyyy"/><numFmt numFmtId="165" formatCode="0.0 &quot;days&quot;"/></numFmts>' +
      '<cellStyleXfs><xf numFmtId="14"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="165"/></cellXfs>';
    const rows =
      '<row><c s="0"><v>45000</v></c><c s="1"><v>45000</v></c><c s="2"><v>45000.75</v></c><c s="3"><v>2</v></c><c s="1"><v>0.25</v></c><c s="1"><v>-1</v></c></row>';
    expect(await csvOf(workbookWith({ styles, rows }))).toBe("45000,2023-03-15,2023-03-15 18:00:00,2,06:00:00,-1\r\n");
    const workbook = '<workbook><workbookPr date1904="1"/><sheets><sheet name="One" r:id="rId1"/></sheets></workbook>';
    expect(await csvOf(workbookWith({ styles, rows: '<row><c s="1"><v>1</v></c></row>', workbook }))).toBe(
      "1904-01-02\r\n",
    );
  });

  test("is the first visible one, and XML names may have a prefix", async () => {
    const workbook = '<x:workbook><x:sheets><x:sheet name="One" r:id="rId1"/></x:sheets></x:workbook>';
    expect(await csvOf(workbookWith({ workbook, rows: "<row><c><v>7</v></c></row>" }))).toBe("7\r\n");
    expect(
      await csvOf(
        workbookWith({ workbook: '<workbook><sheets><sheet state="hidden" r:id="rId1"/></sheets></workbook>' }),
      ),
    ).toContain("no visible sheet");
  });
});

describe("what is refused", () => {
  const long = "x".repeat(2 * 1024 * 1024);
  test.each([
    ["no workbook", zipArchive({ "word/document.xml": "<x/>" }), "not an Excel workbook"],
    ["half an archive", workbookOf([["a@b.example"]]).subarray(0, 300), "damaged"],
    ["XML that is none", workbookWith({ rows: "<row><c>" }), "damaged"],
    ["a document type", zipArchive({ "xl/workbook.xml": '<!DOCTYPE x [<!ENTITY a "b">]><workbook/>' }), "DOCTYPE"],
    ["an entity", workbookWith({ rows: "<row><c><v>&lol;</v></c></row>" }), "damaged"],
    ["a text without an end", workbookWith({ strings: `<si><t>${long}</t></si>` }), "damaged"],
    ["a name without an end", workbookWith({ rows: `<${long}` }), "damaged"],
    [
      "a row that is too long",
      workbookWith({ rows: `<row r="8"><c t="str"><v>${"y".repeat(70_000)}</v></c></row>` }),
      "Row 8 of the sheet",
    ],
    ["a column far away", workbookWith({ rows: '<row r="1"><c r="XFD1"><v>1</v></c></row>' }), "more than 1000 cells"],
    [
      "a CSV that is too large",
      workbookWith({ rows: `<row><c t="str"><v>${"z".repeat(1_000)}</v></c></row>`.repeat(2_000) }),
      "bytes as CSV",
    ],
    [
      "shared texts that are too many",
      workbookWith({ strings: `<si><t>${"s".repeat(700_000)}</t></si>`.repeat(100) }),
      "too much text",
    ],
  ])("%s", async (_what, bytes, reason) => {
    expect(await csvOf(bytes)).toContain(reason);
  });

  test("a million rows and some more", async () => {
    const rows = "<row><c><v>1</v></c></row>".repeat(1_000_100);
    expect(await csvOf(workbookWith({ rows }))).toMatch(/more than 1,000,000 rows|bytes as CSV/);
  });
});

test("a workbook is detected by its first bytes, read as its sheet, and its CSV is deleted afterwards", async () => {
  const app = start();
  const key = app.newKey();
  const body = workbookOf([
    ["Customers", ""],
    ["Name", "E-Mail"],
    ["Ada", "Ada <mailbox_exists@a.example>"],
    ["Bob; Ltd", "catch_all@b.example"],
  ]);
  const headers = { "content-type": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" };
  const { status, id, body: job } = await postList(app, { key, body, headers });
  expect(status).toBe(202);
  expect(job).toMatchObject({ format: { type: "xlsx", delimiter: ",", title_rows: 1, column: { index: 1 } } });
  expect(await untilJobEnded(app, key, id)).toMatchObject({ verdicts: { deliverable: 1, risky: 1 } });
  const target = new Request(`http://localhost${BULK_PATH}/${id}/results.csv`, {
    headers: { authorization: `Bearer ${key.key}` },
  });
  expect(await (await app.service.app.handle(target)).text()).toContain('"Bob; Ltd",catch_all@b.example,');
  const refused = await postList(app, { key, body: zipArchive({ x: "y" }), headers: { "content-type": "text/csv" } });
  expect({ status: refused.status, error: refused.body.error }).toEqual({ status: 400, error: "Invalid request body" });
});

test("an archive is detected by its first bytes", async () => {
  const path = join(folder, "x");
  writeFileSync(path, workbookOf([]));
  expect(await isArchive(path)).toBe(true);
  writeFileSync(path, "PK,email");
  expect(await isArchive(path)).toBe(false);
});
