import { describe, expect, test } from "bun:test";
import { Glob } from "bun";
import fc from "fast-check";
import { type InspectOptions, type ListShape, inspectList, listRefused, readRows } from "./csv.ts";
import { CSV_ROW_BYTES_MAX, CSV_ROW_CELLS_MAX, CHUNK_BYTES, type ByteSource, fileSource } from "./csv-records.ts";

const LISTS = new URL("../../../fixtures/lists/", import.meta.url).pathname;
const AUTO = { header: "auto" } as const;

const sourceOf = (...chunks: Uint8Array[]): ByteSource =>
  async function* () {
    yield* chunks;
  };

const textSource = (text: string): ByteSource => sourceOf(Buffer.from(text));

const inspected = async (source: ByteSource, options: InspectOptions = AUTO): Promise<ListShape> => {
  const read = await inspectList(source, options);
  if (!read.ok) throw new Error(read.error.reason);
  return read.value.shape;
};

const rowsOf = async (source: ByteSource, shape: ListShape) => {
  const rows = [];
  for await (const batch of readRows(source, shape)) rows.push(...batch);
  return rows;
};

const refusalOf = async (source: ByteSource, options: InspectOptions = AUTO) => {
  const read = await inspectList(source, options);
  return read.ok ? null : read.error;
};

interface Expected {
  readonly delimiter: string | null;
  readonly header: string | null;
  readonly column: number;
  readonly emails: readonly string[];
  readonly encoding?: string;
}

const ADA_BOB = ["ada@example.org", "bob@example.org"];
const UTF16 = { delimiter: "\t", header: "email/name", column: 0, emails: ["ada@example.org", "жук@example.org"] };

const TAKEN: Readonly<Record<string, Expected>> = {
  "plain.txt": {
    delimiter: null,
    header: null,
    column: 0,
    emails: [
      "ada@example.com",
      "bob@example.org",
      "no-at-sign.example.com",
      "a,b@example.com",
      "x@example.net",
      "y@example.net",
      "z@example.net",
      '"john doe"@example.com',
      "q@example.net",
      "r@example.net",
      "s@example.net",
    ],
  },
  "comma.csv": {
    delimiter: ",",
    header: "Name/E-Mail/Ort",
    column: 1,
    emails: ["joerg@example.com", "ada@example.org"],
  },
  "semicolon.csv": {
    delimiter: ";",
    header: "Vorname/Notiz/E-Mail-Adresse",
    column: 2,
    emails: ["joerg@example.com", "ada@example.org"],
  },
  "tab.tsv": { delimiter: "\t", header: "id/mail", column: 1, emails: ADA_BOB },
  "pipe.csv": { delimiter: "|", header: null, column: 0, emails: ADA_BOB },
  "no-header.csv": { delimiter: ",", header: null, column: 1, emails: ADA_BOB },
  "bom.csv": { delimiter: ",", header: "email/name", column: 0, emails: ["ada@example.org"] },
  "utf-16le-bom.csv": { ...UTF16, encoding: "utf-16le" },
  "utf-16be-bom.csv": { ...UTF16, encoding: "utf-16be" },
  "utf-16le.csv": { ...UTF16, encoding: "utf-16le" },
  "utf-16be.csv": { ...UTF16, encoding: "utf-16be" },
  "windows-1252.csv": {
    delimiter: ";",
    header: "email/ville",
    column: 0,
    emails: ["ada@example.org"],
    encoding: "windows-1252",
  },
  "broken-utf-8.csv": {
    delimiter: ",",
    header: "email/name",
    column: 0,
    emails: ["jörg@example.org", "ada@example.org", "mueller@example.org"],
  },
  "mixed-line-ends.csv": {
    delimiter: ",",
    header: "email/name",
    column: 0,
    emails: ["a@example.org", "b@example.org", "c@example.org", "d@example.org"],
  },
  "short-and-long-rows.csv": {
    delimiter: ",",
    header: "name/email/note",
    column: 1,
    emails: ["", "bob@example.org", "eve@example.org", "dan@example.org"],
  },
  "blank-rows.csv": { delimiter: ",", header: "email/name", column: 0, emails: ADA_BOB },
  "stray-quotes.csv": {
    delimiter: ",",
    header: "name/email",
    column: 1,
    emails: ["ada@example.org", "bob@example.org", "neil@example.org"],
  },
  "two-address-columns.csv": {
    delimiter: ",",
    header: "backup/contact email/login",
    column: 1,
    emails: ["ada@example.org", "bob@example.org", "eve@example.org"],
  },
  "equal-columns.csv": { delimiter: ",", header: "from/to", column: 0, emails: ["a@example.org", "c@example.org"] },
  "display-names.csv": {
    delimiter: null,
    header: "contact",
    column: 0,
    emails: ["Ada <ada@example.org>", "Bob <bob@example.org>"],
  },
  "excel-titles.csv": {
    delimiter: ";",
    header: "Name/Kontakt/Ort",
    column: 1,
    emails: ["anna@example.org", "<bob@example.org>", ""],
  },
  "nothing-valid.csv": { delimiter: null, header: "email", column: 0, emails: ["foo", "bar"] },
  "nul.csv": { delimiter: ",", header: "email/name", column: 0, emails: ["ada@example.org", "bob\0@example.org"] },
  "header-only-ragged.csv": {
    delimiter: ",",
    header: "email/name",
    column: 0,
    emails: ["a@example.org", "b@example.org", "c@example.org", "d@example.org"],
  },
};

const REFUSED: Readonly<Record<string, { readonly reason: RegExp; readonly row?: number }>> = {
  "refused-unclosed-quote.csv": { reason: /^Row 3 .* never closed/, row: 3 },
  "refused-swallowed-rows.csv": { reason: /^Row 3 .* not closed properly/, row: 3 },
  "refused-no-addresses.csv": { reason: /No column with addresses.*0 "name", 1 "city"/ },
  "refused-header-only.csv": { reason: /a header but no rows/ },
  "refused-empty.csv": { reason: /no rows/ },
  "refused-workbook.csv": { reason: /a ZIP archive/ },
};

describe("accepted lists", () => {
  test.each(Object.entries(TAKEN))("%s", async (name, expected) => {
    const source = fileSource(LISTS + name);
    const shape = await inspected(source);
    const rows = await rowsOf(source, shape);
    const seen: Expected = {
      delimiter: shape.delimiter,
      header: shape.header?.join("/") ?? null,
      column: shape.column,
      emails: rows.map(({ email }) => email),
      encoding: shape.encoding.name,
    };
    expect(seen).toEqual({ encoding: "utf-8", ...expected });
    expect(rows.map(({ rowIndex }) => rowIndex)).toEqual(expected.emails.map((_, index) => index));
    expect(shape.rows).toBe(rows.length);
    expect(shape.width).toBe(Math.max(shape.header?.length ?? 0, ...rows.map(({ cells }) => cells.length)));
  });

  test("keep the other cells unchanged, including quoted line ends and delimiters", async () => {
    const source = fileSource(`${LISTS}comma.csv`);
    const rows = await rowsOf(source, await inspected(source));
    expect(rows.map(({ cells }) => cells)).toEqual([
      ["Müller, Jörg", "joerg@example.com", "Köln"],
      ["Ada", "ada@example.org", "London\r\nUK"],
    ]);
  });

  test("in Windows-1252 are decoded correctly, and one invalid byte does not corrupt a UTF-8 list", async () => {
    const lastCells = async (name: string) => {
      const source = fileSource(LISTS + name);
      return (await rowsOf(source, await inspected(source))).map(({ cells }) => cells[1]);
    };
    expect(await lastCells("windows-1252.csv")).toEqual(["Orléans – “ici”"]);
    expect(await lastCells("broken-utf-8.csv")).toEqual(["Jörg", "Ad\ufffdle", "Müller"]);
  });

  test("in UTF-16 that end inside a character show that in the last cell", async () => {
    const bytes = await Bun.file(`${LISTS}utf-16le.csv`).bytes();
    const source = sourceOf(bytes.subarray(0, bytes.length - 5));
    const rows = await rowsOf(source, await inspected(source));
    expect(rows.at(-1)?.cells).toEqual(["жук@example.org", "Жу\ufffd"]);
  });
});

test("a line sep= names the delimiter, and is counted in the row numbers of errors", async () => {
  const shape = await inspected(textSource("sep=|\na|b,c@d.example\n1|e@f.example\n"));
  expect(shape).toMatchObject({ delimiter: "|", separatorLineBytes: 6, column: 1, rows: 2 });
  const other = await inspected(textSource('"sep=:"\r\nemail,name\r\na@b.example,x\r\n'));
  expect(other).toMatchObject({ delimiter: ",", separatorLineBytes: 9, rows: 1, columnName: "email" });
  const refusal = await refusalOf(textSource('sep=,\nemail\n"a@b.example\n'));
  expect(refusal?.rows).toMatchObject([{ row: 3 }]);
});

test("the candidate columns are counted", async () => {
  const read = await inspectList(textSource("from,to,x\na@b.example,c@d.example,1\n,c@d.example,2\n"), AUTO);
  expect(read).toMatchObject({
    ok: true,
    value: {
      candidates: [
        { column: 0, name: "from", addresses: 1 },
        { column: 1, name: "to", addresses: 2 },
      ],
      sampleRows: 2,
      shape: { column: 1, reason: "most_addresses" },
    },
  });
});

describe("lists that are refused", () => {
  test.each(Object.entries(REFUSED))("%s", async (name, { reason, row }) => {
    const refusal = await refusalOf(fileSource(LISTS + name));
    expect(refusal?.reason).toMatch(reason);
    expect(refusal?.rows.map((problem) => problem.row)).toEqual(row === undefined ? [] : [row]);
  });

  test("have an error body with the rows", () => {
    const refusal = { reason: "Row 3 of the list cannot be read: x.", rows: [{ row: 3, reason: "x" }] };
    expect(listRefused(refusal)).toMatchObject({
      code: "Invalid request body",
      details: { message: refusal.reason, issues: [{ path: "row 3", message: "x" }] },
    });
  });

  test("a row beyond the size limit, in one cell, in many, or after an open quote", async () => {
    const long = "x".repeat(CSV_ROW_BYTES_MAX + 10);
    const many = ",".repeat(CSV_ROW_BYTES_MAX * 3);
    for (const text of [`${long},y\n`, many, `"${"x,y\n".repeat(CSV_ROW_BYTES_MAX / 2)}`]) {
      const refusal = await refusalOf(textSource(`email,name\na@example.org,A\n${text}`));
      expect(refusal?.rows).toMatchObject([{ row: 3, reason: expect.stringContaining("longer than 64 KiB") }]);
    }
  });

  test("not for blank lines, however many", async () => {
    const blank = "\n".repeat(CSV_ROW_BYTES_MAX * 2);
    const shape = await inspected(textSource(`email\n${blank}a@example.org\n${blank}`));
    expect(shape).toMatchObject({ rows: 1, header: ["email"] });
  });

  test("too many blank rows of delimiters", async () => {
    const list = textSource(`email\na@example.org\n${",\n".repeat(100)}`);
    expect(await refusalOf(list, { ...AUTO, rowsMax: 100 })).toBeNull();
    expect((await refusalOf(list, { ...AUTO, rowsMax: 20 }))?.reason).toMatch(/too many blank rows/);
  });

  test("an endless first row", async () => {
    const chunk = Buffer.alloc(CHUNK_BYTES, "x");
    const refusal = await refusalOf(sourceOf(...Array.from({ length: 20 }, () => chunk)));
    expect(refusal?.rows).toMatchObject([{ row: 1 }]);
  });

  test("a row with too many cells", async () => {
    const row = `a@example.org${",".repeat(CSV_ROW_CELLS_MAX)}\n`;
    expect((await refusalOf(textSource(`email\n${row}`)))?.rows).toMatchObject([
      { row: 2, reason: `more than ${CSV_ROW_CELLS_MAX} cells` },
    ]);
    expect(await refusalOf(textSource(row.replace(",", "")))).toBeNull();
  });

  test("too many rows, header and blank rows not counted", async () => {
    const withHeader = textSource("email\na@example.org\n\nb@example.org\n");
    const without = textSource("a@example.org\nb@example.org\n");
    for (const source of [withHeader, without]) {
      expect(await refusalOf(source, { ...AUTO, rowsMax: 2 })).toBeNull();
      expect((await refusalOf(source, { ...AUTO, rowsMax: 1 }))?.reason).toMatch(/more than 1 rows/);
    }
  });
});

const splitSources = (bytes: Uint8Array): ByteSource[] =>
  Array.from({ length: bytes.length - 1 }, (_, at) => sourceOf(bytes.subarray(0, at + 1), bytes.subarray(at + 1)));

describe("for any bytes", () => {
  test("every fixture has an expectation", () => {
    const names = [...new Glob("*").scanSync(LISTS)].toSorted();
    expect(names).toEqual([...Object.keys(TAKEN), ...Object.keys(REFUSED)].toSorted());
  });

  test.each([...Object.keys(TAKEN), ...Object.keys(REFUSED)])(
    "%s gives the same rows when cut at any byte",
    async (name) => {
      const bytes = await Bun.file(LISTS + name).bytes();
      const read = async (source: ByteSource) => {
        const result = await inspectList(source, AUTO);
        return result.ok ? { shape: result.value, rows: await rowsOf(source, result.value.shape) } : result.error;
      };
      const whole = await read(sourceOf(bytes));
      const byteByByte = sourceOf(...Array.from(bytes, (byte) => Uint8Array.of(byte)));
      for (const source of [byteByByte, ...splitSources(bytes).filter((_, at) => at % 3 === 0 || at < 12)]) {
        expect(await read(source)).toEqual(whole);
      }
    },
  );

  test("the result is rows or a reason", async () => {
    const pieces = fc.constantFrom('"', ",", ";", "\n", "\r\n", "\t", "a@b.example", "x", "email", "\0", "é", " ");
    const text = fc.array(pieces, { maxLength: 60 }).map((parts) => Buffer.from(parts.join("")));
    const bytes = fc.uint8Array({ maxLength: 200 });
    await fc.assert(
      fc.asyncProperty(fc.oneof(text, bytes), async (input) => {
        const source = sourceOf(input);
        const read = await inspectList(source, AUTO);
        if (!read.ok) expect(read.error.reason).not.toBe("");
        else expect((await rowsOf(source, read.value.shape)).length).toBe(read.value.shape.rows);
      }),
      { numRuns: 300 },
    );
  });

  test("a list that changed after its inspection is an error", async () => {
    const shape = await inspected(textSource("email\na@example.org\n"));
    await expect(rowsOf(textSource('email\n"a@example.org\n'), shape)).rejects.toThrow("changed");
  });
});
