import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApps } from "../../testing/app.ts";
import { BULK_PATH, postList, untilJobEnded } from "../../testing/bulk-requests.ts";
import { sheetRow, workbookOf, workbookOfSheets, workbookWith, zipArchive } from "../../testing/workbook.ts";
import { isArchive, serialDate, sheetNames, writeWorkbookAsCsv } from "./workbook.ts";
import { WORKBOOK_LIMITS, type WorkbookLimits } from "./workbook-parts.ts";

const folder = mkdtempSync(join(tmpdir(), "postwarden-workbook-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const BYTES_MAX = 1024 * 1024;
let files = 0;

/** Limits of a tenth of a percent, for tests that reach them to the byte. */
const LIMITS: WorkbookLimits = { rows: 1_000, textBytes: 64 * 1024, texts: 3_000 };

/** The CSV of a workbook, without its byte order mark, or why there is none. */
const csvOf = async (
  bytes: Uint8Array,
  bytesMax = BYTES_MAX,
  limits = WORKBOOK_LIMITS,
  sheet?: string,
): Promise<string> => {
  const path = join(folder, `${files++}.xlsx`);
  writeFileSync(path, bytes);
  try {
    await writeWorkbookAsCsv(path, `${path}.csv`, { bytesMax, limits, sheet });
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

  test("has shared texts without the white space between their tags", async () => {
    const strings = "<si>\n  <t>a</t>\n</si><si>\n  <r>\n <t>b </t>\n </r>\n <r><t>c</t>\n </r>\n</si>";
    const rows = '<row><c t="s"><v>0</v></c><c t="s"><v>1</v></c></row>';
    expect(await csvOf(workbookWith({ strings, rows }))).toBe("a,b c\r\n");
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

  test("has the built-in formats of dates and times as dates, and no others", async () => {
    const formats = Array.from({ length: 60 }, (_, id) => id);
    const styles = `<cellXfs>${formats.map((id) => `<xf numFmtId="${id}"/>`).join("")}</cellXfs>`;
    const rows = `<row>${formats.map((id) => `<c s="${id}"><v>45000</v></c>`).join("")}</row>`;
    const cells = (await csvOf(workbookWith({ styles, rows }))).trim().split(",");
    const range = (from: number, to: number) => formats.slice(from, to + 1);
    expect(formats.filter((id) => cells[id] === "2023-03-15")).toEqual([
      ...[...range(14, 22), ...range(27, 36), ...range(45, 47), ...range(50, 58)],
    ]);
  });

  test("takes a format of more than 255 characters for no date, and leaves out what is longer than any attribute", async () => {
    const formatted = (code: string) =>
      workbookWith({
        styles: `<numFmts><numFmt numFmtId="164" formatCode="${code}"/></numFmts><cellXfs><xf numFmtId="164"/></cellXfs>`,
        rows: '<row><c s="0"><v>45000</v></c></row>',
      });
    expect(await csvOf(formatted(`yyyy${"[".repeat(251)}`))).toBe("2023-03-15\r\n");
    expect(await csvOf(formatted(`yyyy${"[".repeat(252)}`))).toBe("45000\r\n");
    expect(await csvOf(formatted("[".repeat(1_000_000)))).toBe("45000\r\n");
    const target = (characters: number) =>
      workbookWith({ rows: `<row><c r="C1${" ".repeat(characters - 2)}"><v>1</v></c></row>` });
    expect(await csvOf(target(2_048))).toBe(",,1\r\n");
    expect(await csvOf(target(2_049))).toBe("1\r\n");
  });

  test("has false booleans and empty cells", async () => {
    const styles = '<cellXfs><xf numFmtId="14"/></cellXfs>';
    const rows = '<row><c t="b"><v>0</v></c><c s="0"><v></v></c><c t="str"><v>x</v></c></row>';
    expect(await csvOf(workbookWith({ styles, rows }))).toBe("FALSE,,x\r\n");
  });

  test("has many shared texts, in any order", async () => {
    const texts = Array.from({ length: 5_000 }, (_, n) => `${"ü".repeat(n % 100)}${n}`);
    const strings = texts.map((text) => `<si><t>${text}</t></si>`).join("");
    const rows = texts.map((_, n) => `<row><c t="s"><v>${texts.length - 1 - n}</v></c></row>`).join("");
    expect(await csvOf(workbookWith({ strings, rows }))).toBe(`${texts.toReversed().join("\r\n")}\r\n`);
    expect(await csvOf(workbookWith({ strings, rows: '<row><c><v>1</v></c><c t="s"><v>5000</v></c></row>' }))).toBe(
      "1\r\n",
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

describe("a workbook of several sheets", () => {
  const readMe = sheetRow("How to use this file", "write to help@shop.example");
  const SHEETS = { "Read me": readMe, Kunden: sheetRow("a@kunden.example"), Jahr: sheetRow("b@year.example") };
  const read = (sheets: Readonly<Record<string, string>>, sheet?: string) =>
    csvOf(workbookOfSheets(sheets), BYTES_MAX, WORKBOOK_LIMITS, sheet);

  test("is read at the first sheet with an address, or at the one that is named", async () => {
    expect(await read(SHEETS)).toBe("a@kunden.example\r\n");
    expect(await read(SHEETS, "Jahr")).toBe("b@year.example\r\n");
    expect(await read(SHEETS, "kunden")).toBe("a@kunden.example\r\n");
    expect(await read(SHEETS, "Read me")).toContain("How to use");
    expect(await read({ A: sheetRow("x"), B: sheetRow("y") })).toBe("x\r\n");
    expect(await read({ A: "", a: sheetRow("y") }, "a")).toBe("y\r\n");
  });

  test("has no other sheets than the visible ones", async () => {
    expect(await read(SHEETS, "Kunde")).toBe(
      '(The workbook has no visible sheet "Kunde". It has "Read me", "Kunden", "Jahr".)',
    );
    const many = Object.fromEntries(Array.from({ length: 11 }, (_, at) => [`S${at}`, ""]));
    expect(await read(many, "x")).toContain('"S9", ….');
    const hidden = workbookWith({ rows: sheetRow("a@b.example") });
    expect(await csvOf(hidden, BYTES_MAX, WORKBOOK_LIMITS, "hidden")).toContain("no visible sheet");
  });

  test("is tried in the first 200 rows of the first twenty sheets", async () => {
    const filler = sheetRow("x");
    const late = (rows: number) => ({ A: filler.repeat(rows) + sheetRow("a@a.example"), B: sheetRow("b@b.example") });
    expect(await read(late(199))).toContain("a@a.example");
    // The rows after the 200th are read as far as the piece of the file reaches that holds it.
    expect(await read(late(20_000))).toBe("b@b.example\r\n");
    const behind = (empty: number) => ({
      ...Object.fromEntries(Array.from({ length: empty }, (_, at) => [`S${at}`, filler])),
      Last: sheetRow("z@z.example"),
    });
    expect(await read(behind(19))).toBe("z@z.example\r\n");
    expect(await read(behind(20))).toBe("x\r\n");
  });

  test("does not fail because of a sheet that is not chosen", async () => {
    const huge = `<row><c t="str"><v>${"y".repeat(70_000)}</v></c></row>`;
    expect(
      await read({ Broken: "<row><c>", Huge: huge, Wide: `<cols>${"<col/>".repeat(200_000)}</cols>`, ...SHEETS }),
    ).toBe("a@kunden.example\r\n");
    expect(await read({ Broken: "<row><c>", ...SHEETS }, "Broken")).toContain("damaged");
  });

  test("with sheets of long names and in large numbers names only some of them", async () => {
    const path = join(folder, "many.xlsx");
    const sheets = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`S${at}`, ""]));
    writeFileSync(path, workbookOfSheets({ ["l".repeat(201)]: "", ...sheets }));
    const names = await sheetNames(path);
    expect([names.length, names[0], names.at(-1)]).toEqual([100, "S0", "S99"]);
  });
});

describe("what is refused", () => {
  const long = "x".repeat(2 * 1024 * 1024);
  test.each([
    [
      "no workbook",
      zipArchive({ "word/document.xml": "<x/>" }),
      "This is a ZIP archive, not an Excel workbook (.xlsx). Save the list as CSV (UTF-8).",
    ],
    [
      "an OpenDocument spreadsheet",
      zipArchive({ mimetype: "application/vnd.oasis.opendocument.spreadsheet", "content.xml": "<x/>" }),
      "This is an OpenDocument file (such as .ods), not an Excel workbook (.xlsx). Save the list as CSV (UTF-8).",
    ],
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

  test("more than a million rows, 64 MiB of shared texts or three million of them", () => {
    expect(WORKBOOK_LIMITS).toEqual({ rows: 1_000_000, textBytes: 64 * 1024 * 1024, texts: 3_000_000 });
  });

  test("more rows than the most and twenty for titles and header", async () => {
    const rows = (count: number) => workbookWith({ rows: "<row><c><v>1</v></c></row>".repeat(count) });
    expect(await csvOf(rows(1_020), BYTES_MAX, LIMITS)).toBe("1\r\n".repeat(1_020));
    expect(await csvOf(rows(1_021), BYTES_MAX, LIMITS)).toContain("more than 1,000 rows");
  });

  test("a CSV that exceeds its limit by one byte", async () => {
    const workbook = workbookWith({ rows: "<row><c><v>7</v></c></row>" });
    expect(await csvOf(workbook, Buffer.byteLength("\ufeff7\r\n"))).toBe("7\r\n");
    expect(await csvOf(workbook, Buffer.byteLength("\ufeff7\r"))).toContain("exceeds 5 bytes as CSV");
  });

  test("shared texts that exceed their limit by one byte", async () => {
    const strings = `<si><t>${"s".repeat(512)}</t></si>`.repeat(128);
    const rows = "<row><c><v>7</v></c></row>";
    expect(await csvOf(workbookWith({ strings, rows }), BYTES_MAX, LIMITS)).toBe("7\r\n");
    const more = workbookWith({ strings: `${strings}<si><t>s</t></si>`, rows });
    expect(await csvOf(more, BYTES_MAX, LIMITS)).toContain("too much text");
  });

  test("one shared text more than the most", async () => {
    const texts = (count: number) => workbookWith({ strings: "<si/>".repeat(count) });
    expect(await csvOf(texts(3_000), BYTES_MAX, LIMITS)).toBe("");
    expect(await csvOf(texts(3_001), BYTES_MAX, LIMITS)).toContain("too much text");
  });

  test("a row that is longer by one byte or one cell, named by its place", async () => {
    const empty = "<row/><row/>";
    const rowOf = (bytes: number) => `${empty}<row><c t="str"><v>${"y".repeat(bytes)}</v></c></row>`;
    expect(await csvOf(workbookWith({ rows: rowOf(65_536) }))).toHaveLength(65_538);
    expect(await csvOf(workbookWith({ rows: rowOf(65_537) }))).toContain("Row 3 of the sheet");
    const two = `<row><c t="str"><v>${"y".repeat(65_535)}</v></c><c t="str"><v>yy</v></c></row>`;
    expect(await csvOf(workbookWith({ rows: two }))).toContain("longer than 64 KiB");
    const at = (reference: string) => workbookWith({ rows: `<row><c r="${reference}1"><v>1</v></c></row>` });
    expect(await csvOf(at("ALL"))).toBe(`${",".repeat(999)}1\r\n`);
    expect(await csvOf(at("ALM"))).toContain("more than 1000 cells");
  });

  test("an archive with too many entries, an encrypted one and a description that is too large", async () => {
    const entries = (count: number) => zipArchive(Object.fromEntries(Array.from({ length: count }, (_, n) => [n, ""])));
    expect(await csvOf(entries(2_000))).toContain("not an Excel workbook");
    expect(await csvOf(entries(2_001))).toContain("damaged");
    const encrypted = workbookOf([["a@b.example"]]);
    const header = Buffer.from("PK\u0001\u0002");
    for (let at = encrypted.indexOf(header); at >= 0; at = encrypted.indexOf(header, at + 1)) encrypted[at + 8] = 1;
    expect(await csvOf(encrypted)).toContain("encrypted");
    const workbook = `<workbook>${"<x/>".repeat(1024 * 1024)}</workbook>`;
    expect(await csvOf(workbookWith({ workbook }))).toContain("too large");
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
  expect(await (await app.handle(target)).text()).toContain('"Bob; Ltd",catch_all@b.example,');
  const refused = await postList(app, { key, body: zipArchive({ x: "y" }), headers: { "content-type": "text/csv" } });
  expect({ status: refused.status, error: refused.body.error }).toEqual({ status: 400, error: "Invalid request body" });
});

test("the sheet of a workbook is a parameter of its upload, and in the preview and the job", async () => {
  const app = start();
  const key = app.newKey();
  const body = workbookOfSheets({
    "Read me": sheetRow("Hello"),
    Kunden: sheetRow("a@b.example"),
    Alt: sheetRow("c@d.example"),
  });
  const headers = { "content-type": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" };
  const post = (query: string, file: Uint8Array | string = body) => postList(app, { key, body: file, headers }, query);
  expect((await post("?dry_run=true")).body).toMatchObject({
    ...{ sheets: ["Read me", "Kunden", "Alt"], format: { sheet: "Kunden" } },
    first_rows: [{ normalized_email: "a@b.example" }],
  });
  expect((await post("?sheet=alt")).body).toMatchObject({ format: { type: "xlsx", sheet: "Alt" }, rows: { total: 1 } });
  expect((await post("?sheet=Neu")).body).toMatchObject({
    ...{ error: "Invalid request body" },
    message: 'The workbook has no visible sheet "Neu". It has "Read me", "Kunden", "Alt".',
  });
  expect((await post("?sheet=")).status).toBe(400);
  const csv = await postList(app, { key, body: "a@b.example\n", headers: { "content-type": "text/csv" } }, "?sheet=A");
  expect([csv.status, csv.body.message]).toEqual([400, "Only an Excel workbook has sheets. Leave out the sheet."]);
});

test("an archive is detected by its first bytes", async () => {
  const path = join(folder, "x");
  writeFileSync(path, workbookOf([]));
  expect(await isArchive(path)).toBe(true);
  writeFileSync(path, "PK,email");
  expect(await isArchive(path)).toBe(false);
});

test.each([
  [0, false, "00:00:00"],
  [0.5, false, "12:00:00"],
  [1, false, "1899-12-31"],
  [45000.5, false, "2023-03-15 12:00:00"],
  [2_958_465, false, "9999-12-31"],
  [2_958_465.999_999, false, null],
  [2_958_466, false, null],
  [2_957_003, true, "9999-12-31"],
  [2_957_004, true, null],
  [-1, false, null],
  [Number.NaN, false, null],
  [1e300, false, null],
])("the serial number %p, counted from 1904: %p, is %p", (serial, isFrom1904, text) => {
  expect(serialDate(serial, isFrom1904)).toBe(text);
});
