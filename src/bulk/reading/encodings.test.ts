import { describe, expect, test } from "bun:test";
import { createApps, type TestApp } from "../../testing/app.ts";
import { BULK_PATH, postList, untilJobEnded } from "../../testing/bulk-requests.ts";
import { workbookOf } from "../../testing/workbook.ts";
import { ENCODINGS, type EncodingName } from "./csv-records.ts";
import { RESULT_COLUMNS } from "../results/results-csv.ts";

const start = createApps();

const letters = new Map<EncodingName, ReadonlyMap<string, readonly number[]>>();
/** The letters of an encoding of one or two bytes a letter, with their bytes. */
const bytesOf = (encoding: EncodingName): ReadonlyMap<string, readonly number[]> => {
  const known = letters.get(encoding) ?? findBytes(encoding);
  letters.set(encoding, known);
  return known;
};

const findBytes = (encoding: EncodingName): ReadonlyMap<string, readonly number[]> => {
  const decode = (...bytes: number[]) => new TextDecoder(encoding).decode(Uint8Array.from(bytes));
  const all = Array.from({ length: 0x100 }, (_, byte) => byte);
  const found = new Map<string, readonly number[]>();
  const note = (...bytes: number[]): void => {
    const letter = decode(...bytes);
    if ([...letter].length === 1 && letter !== "\ufffd" && !found.has(letter)) found.set(letter, bytes);
  };
  for (const byte of all) note(byte);
  for (const lead of all.slice(0x81)) for (const trail of all.slice(0x40)) note(lead, trail);
  return found;
};

/** A text in an encoding. */
const encoded = (text: string, encoding: EncodingName): Buffer<ArrayBuffer> => {
  const letters = bytesOf(encoding);
  return Buffer.from(
    [...text].flatMap((letter) => {
      const bytes = letters.get(letter);
      if (bytes === undefined) throw new Error(`${encoding} has no ${letter}`);
      return [...bytes];
    }),
  );
};

const HEADER = ["name", "email", "note"];
const SAMPLES = {
  "windows-1250": ["Łukasz Żółć", "Příliš žluťoučký kůň", "Gyűrű", "„Dvořák“"],
  "windows-1252": ["Jörg Müßig", "Zoë", "Œuvre 5 €", "“Ada”"],
  macintosh: ["Jörg Müßig", "Zoë", "Œuvre ≠ Ω", "“Ada”"],
  // Trailing bytes of 表, 能 and ソ are those of the characters \\, \\ and | in ASCII.
  shift_jis: ["日本太郎", "表示能力", "ソ十ポー", "ｱｲｳ"],
  gb18030: ["中文名字", "镕芳", "侊倈", "龙"],
} as const;

const rowsOf = (letters: readonly string[]): string[][] =>
  letters.map((text, at) => [text, `mailbox_exists+${at}@a.example`, at % 2 === 0 ? `${text}, ${text}` : text]);

const lineOf = (cells: readonly string[]): string =>
  `${cells.map((cell) => (cell.includes(",") ? `"${cell}"` : cell)).join(",")}\r\n`;

/** The same in an encoding. A trailing byte may look like a delimiter: such a cell is quoted, as results.csv does. */
const encodedListOf = (letters: readonly string[], encoding: EncodingName): Buffer<ArrayBuffer> => {
  const line = (cells: readonly string[]) =>
    `${cells
      .map((cell) => encoded(cell, encoding).toString("latin1"))
      .map((bytes) => (/[,|]/.test(bytes) ? `"${bytes}"` : bytes))
      .join(",")}\r\n`;
  return Buffer.from([HEADER, ...rowsOf(letters)].map(line).join(""), "latin1");
};

const listOf = (letters: readonly string[]): string => [HEADER, ...rowsOf(letters)].map(lineOf).join("");

/** The results of a list with their first columns, as bytes in Latin-1. */
const resultsOf = async (app: TestApp, body: Uint8Array<ArrayBuffer>, query = "", exportQuery = "") => {
  const key = app.newKey();
  const { status, id, body: job } = await postList(app, { key, body, headers: { "content-type": "text/csv" } }, query);
  expect(status).toBe(202);
  await untilJobEnded(app, key, id);
  const target = `http://localhost${BULK_PATH}/${id}/results.csv${exportQuery}`;
  const response = await app.handle(new Request(target, { headers: { authorization: `Bearer ${key.key}` } }));
  const bytes = new Uint8Array(await response.arrayBuffer());
  return { job, bytes, type: response.headers.get("content-type") };
};

/** The lines of results without what follows the columns of the list. */
const columnsOf = (text: string): string =>
  text
    .split("\r\n")
    .map((line, at) => {
      const added =
        at === 0 ? line.indexOf(`,${RESULT_COLUMNS[0]}`) : line.search(/,mailbox_exists\+\d@a\.example,deliverable,/);
      return added < 0 ? line : line.slice(0, added);
    })
    .join("\r\n");

describe.each(Object.entries(SAMPLES) as Array<[EncodingName, readonly string[]]>)(
  "a list in %s",
  (encoding, letters) => {
    const list = listOf(letters);

    test("is returned byte for byte when nobody names the encoding", async () => {
      const bytes = encodedListOf(letters, encoding);
      const { job, bytes: results, type } = await resultsOf(start(), bytes);
      expect(job).toMatchObject({ format: { encoding: "windows-1252", encoding_assumed: true, column: { index: 1 } } });
      expect(columnsOf(Buffer.from(results).toString("latin1"))).toBe(bytes.toString("latin1"));
      expect(type).toBe("text/csv");
    });

    test("is returned in UTF-8 when the encoding is named", async () => {
      const { job, bytes, type } = await resultsOf(start(), encodedListOf(letters, encoding), `?encoding=${encoding}`);
      expect(job).toMatchObject({ format: { encoding, encoding_assumed: false, column: { index: 1 } } });
      const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
      expect(columnsOf(text)).toBe(`\ufeff${list}`);
      expect(type).toBe("text/csv; charset=utf-8");
    });
  },
);

describe("a list in Unicode", () => {
  const list = listOf(["Łukasz", "日本", "Zoë 🎉", "Ω"]);
  const swapped = (text: string) => Buffer.from(text, "utf16le").swap16();

  test.each<[string, string, Uint8Array<ArrayBuffer>]>([
    ["UTF-8", "utf-8", Buffer.from(list)],
    ["UTF-8 with a byte order mark", "utf-8", Buffer.from(`\ufeff${list}`)],
    ["UTF-16, little endian", "utf-16le", Buffer.from(`\ufeff${list}`, "utf16le")],
    ["UTF-16, big endian", "utf-16be", swapped(`\ufeff${list}`)],
    ["UTF-16 without a byte order mark", "utf-16le", Buffer.from(list, "utf16le")],
  ])("as %s is returned in UTF-8, also when the encoding is named", async (_, encoding, bytes) => {
    for (const query of ["", `?encoding=${encoding}`]) {
      const { job, bytes: results } = await resultsOf(start(), bytes, query, "?bom=false");
      expect(job).toMatchObject({ format: { encoding, encoding_assumed: false } });
      expect(columnsOf(new TextDecoder("utf-8", { fatal: true }).decode(results))).toBe(list);
    }
  });

  test("that is padded with NULs is read without them", async () => {
    const { job, bytes } = await resultsOf(start(), Buffer.concat([Buffer.from(list), Buffer.alloc(5_000)]));
    expect(job).toMatchObject({ rows: { total: 4 }, format: { encoding: "utf-8", encoding_assumed: false } });
    expect(columnsOf(Buffer.from(bytes).toString())).toBe(list);
    const cells = Buffer.from("email,name\nmailbox_exists@a.example\0\0\0,Ada\0\0\n");
    expect((await resultsOf(start(), cells)).job).toMatchObject({ rows: { total: 1, empty: 0 } });
    expect(Buffer.from((await resultsOf(start(), cells)).bytes).toString()).toContain(
      "Ada\0\0,mailbox_exists@a.example,",
    );
    const wide = Buffer.concat([Buffer.from(`\ufeff${list}`, "utf16le"), Buffer.alloc(5_000)]);
    expect((await resultsOf(start(), wide)).job).toMatchObject({
      rows: { total: 4 },
      format: { encoding: "utf-16le" },
    });
  });
});

describe("an assumed encoding", () => {
  test("is named by a dry run, with the letters as they are read", async () => {
    const app = start();
    const request = { key: app.newKey(), headers: { "content-type": "text/csv" } };
    const body = encodedListOf(SAMPLES["windows-1250"], "windows-1250");
    const assumed = await postList(app, { ...request, body }, "?dry_run=true");
    expect(assumed.body).toMatchObject({
      format: { encoding: "windows-1252", encoding_assumed: true },
      first_rows: expect.arrayContaining([expect.objectContaining({ cells: expect.arrayContaining(["£ukasz ¯ó³æ"]) })]),
    });
    const named = await postList(app, { ...request, body }, "?dry_run=true&encoding=windows-1250");
    expect(named.body).toMatchObject({
      format: { encoding: "windows-1250", encoding_assumed: false },
      first_rows: expect.arrayContaining([expect.objectContaining({ cells: expect.arrayContaining(["Łukasz Żółć"]) })]),
    });
  });

  test("is that of UTF-8 with a few broken letters", async () => {
    const app = start();
    const body = Buffer.concat([
      Buffer.from("email,name\njörg@example.org,Jörg\nada@a.example,Zo"),
      Buffer.from([0xeb]),
    ]);
    const request = { key: app.newKey(), body, headers: { "content-type": "text/csv" } };
    const { status, body: preview } = await postList(app, request, "?dry_run=true");
    expect({ status, preview }).toMatchObject({
      status: 200,
      preview: { format: { encoding: "utf-8", encoding_assumed: true } },
    });
  });

  test("is not enough for an address with letters outside ASCII", async () => {
    const app = start();
    const body = encoded("email;name\nada@a.example;Zoë\ninfo@bücher.example;Jörg\n", "macintosh");
    const request = { key: app.newKey(), body, headers: { "content-type": "text/csv" } };
    expect((await postList(app, request)).body).toMatchObject({
      error: "Invalid request body",
      message:
        'The encoding of this list is not known, and row 3 has an address with letters outside ASCII: "info@bŸcher.example". Name the encoding, for example windows-1252.',
    });
    const named = await postList(app, request, "?dry_run=true&encoding=macintosh");
    expect(named.body).toMatchObject({ first_rows: [{}, { normalized_email: "info@xn--bcher-kva.example" }] });
    const beside = encoded("email;name\nada@a.example;Zoë\nan address: é@;Jörg\n", "macintosh");
    expect((await postList(app, { ...request, body: beside })).status).toBe(202);
  });

  test("is converted when a byte order mark is wanted", async () => {
    const list = listOf(SAMPLES["windows-1252"]);
    const { bytes, type } = await resultsOf(
      start(),
      encodedListOf(SAMPLES["windows-1252"], "windows-1252"),
      "",
      "?bom=true",
    );
    expect(columnsOf(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes))).toBe(`\ufeff${list}`);
    expect(type).toBe("text/csv; charset=utf-8");
  });
});

describe("a named encoding", () => {
  test("is refused where the bytes contradict it, and for a workbook", async () => {
    const app = start();
    const refusal = async (body: Uint8Array<ArrayBuffer>, encoding: string) =>
      (
        await postList(
          app,
          { key: app.newKey(), body, headers: { "content-type": "text/csv" } },
          `?encoding=${encoding}`,
        )
      ).body.message;
    const marked = Buffer.from("\ufeffemail\nada@a.example\n");
    expect(await refusal(marked, "shift_jis")).toBe(
      "The list begins with the byte order mark of utf-8, so it is not shift_jis.",
    );
    expect(await refusal(new Uint8Array(workbookOf([["email"], ["ada@a.example"]])), "utf-8")).toBe(
      "An Excel workbook is always UTF-8. Leave out the encoding.",
    );
    expect(await refusal(marked, "latin9")).toStartWith("encoding: Must be one of: utf-8, ");
    const polish = encodedListOf(SAMPLES["windows-1250"], "windows-1250");
    expect(await refusal(polish, "utf-8")).toBe(
      "The list is not valid utf-8. Name another encoding, or none to have it detected.",
    );
  });

  test("is one of those that the platform decodes", () => {
    for (const name of ENCODINGS) expect(new TextDecoder(name).encoding as string).toBe(name);
  });
});
