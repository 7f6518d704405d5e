import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { VerificationResult } from "../../verify/result.ts";
import { inspectList, readRows } from "../reading/csv.ts";
import type { ByteSource } from "../reading/csv-records.ts";
import {
  createResultsCsv,
  isExportedByByte,
  JSON_LIST_FORMAT,
  RESULT_COLUMNS,
  type ResultRow,
  writeResults,
} from "./results-csv.ts";
import { csvLine, defused } from "../../foundation/http/csv.ts";

const RESULT: VerificationResult = {
  email: "Ada@Example.org",
  normalized_email: "ada@example.org",
  verdict: "deliverable",
  sub_status: "mailbox_exists",
  quality_score: 95,
  confidence: 98,
  signals: {
    syntax: "pass",
    domain: "pass",
    mx: "pass",
    smtp: "pass",
    catch_all: "pass",
    role_account: "warn",
    disposable: "pass",
    dnsbl: "unknown",
    toxic: "pass",
    greylisting: "skipped",
  },
  verified_at: "2026-01-01T00:00:00.000Z",
};
const RESULT_CELLS =
  "ada@example.org,deliverable,mailbox_exists,95,98,pass,pass,pass,pass,pass,warn,pass,unknown,pass,skipped,2026-01-01T00:00:00.000Z,,";
const NO_HINTS = { suggestion: null, problem: null };

const FORMAT = { ...JSON_LIST_FORMAT, header: ["Name", "E-Mail"], column: 1, width: 2, delimiter: "," } as const;

const sourceOf = (text: string): ByteSource =>
  async function* () {
    yield Buffer.from(text);
  };

const readBack = async (text: string) => {
  const source = sourceOf(text);
  const shape = await inspectList(source, { header: "true", column: "0" });
  if (!shape.ok) throw new Error(shape.error.reason);
  const rows = [];
  for await (const batch of readRows(source, shape.value.shape)) rows.push(...batch.map(({ cells }) => cells));
  return { header: shape.value.shape.header, rows };
};

describe("an export", () => {
  test("has the uploaded columns, then the result columns, with CRLF", () => {
    const writer = createResultsCsv(FORMAT);
    expect(writer.head()).toBe(`Name,E-Mail,${RESULT_COLUMNS.join(",")}\r\n`);
    expect(writer.rows([{ cells: ["Ada, Lady", "Ada@Example.org"], result: RESULT, ...NO_HINTS }])).toBe(
      `"Ada, Lady",Ada@Example.org,${RESULT_CELLS}\r\n`,
    );
  });

  test("has empty results for unfinished rows and pads short rows", () => {
    const line = createResultsCsv(FORMAT).rows([{ cells: ["Ada"], result: null, ...NO_HINTS }]);
    expect(line).toBe(`Ada,${",".repeat(RESULT_COLUMNS.length)}\r\n`);
  });

  test("names every result column and signal of the result object", () => {
    const plain = Object.keys(RESULT).filter((name) => name !== "email" && name !== "signals");
    const hints = ["did_you_mean", "reason"];
    const signals = Object.keys(RESULT.signals).map((name) => `signal_${name}`);
    expect(RESULT_COLUMNS.toSorted() as string[]).toEqual([...plain, ...signals, ...hints].toSorted());
  });

  test("gives columns without a name one: the addresses `email`, the others their number", () => {
    const head = createResultsCsv({ ...FORMAT, header: null, width: 3 }).head();
    expect(head).toStartWith("column_1,email,column_3,normalized_email");
    expect(createResultsCsv({ ...FORMAT, width: 3 }).head()).toStartWith("Name,E-Mail,column_3,normalized_email");
    expect(createResultsCsv(JSON_LIST_FORMAT).head()).toStartWith("email,normalized_email");
  });

  test("prefixes result columns that the upload has too, then numbers them", () => {
    const header = ["email", "Verdict", "postwarden_verdict", "confidence"];
    const names = createResultsCsv({ ...FORMAT, header, width: 4 })
      .head()
      .trim()
      .split(",")
      .slice(4);
    expect(names.slice(0, 5)).toEqual([
      "normalized_email",
      "postwarden_verdict_2",
      "sub_status",
      "quality_score",
      "postwarden_confidence",
    ]);
    expect(new Set(names).size).toBe(names.length);
  });

  test("keeps the delimiter, and has a byte order mark only if the upload came from a spreadsheet", () => {
    const head = (name: "utf-8" | "windows-1252" | "utf-16le", bom: boolean, isAssumed = false) =>
      createResultsCsv({ ...FORMAT, delimiter: ";", encoding: { name, bom, isAssumed } }).head();
    expect(head("utf-8", false)).toStartWith("Name;E-Mail;normalized_email;");
    expect(head("utf-8", true)).toStartWith("\ufeffName;");
    expect(head("windows-1252", false)).toStartWith("\ufeffName;");
    expect(head("windows-1252", false, true)).toStartWith("Name;");
    expect(head("utf-8", false, true)).toStartWith("Name;");
    expect(head("utf-16le", true)).toStartWith("\ufeffName;");
  });

  test("streams all batches and stops when the reader does", async () => {
    let isReturned = false;
    const batches = async function* (): AsyncGenerator<readonly ResultRow[]> {
      try {
        for (;;) yield [{ cells: ["Ada", "Ada@Example.org"], result: RESULT, ...NO_HINTS }];
      } finally {
        isReturned = true;
      }
    };
    const written = writeResults(FORMAT, batches());
    const texts = [await written.next(), await written.next(), await written.next()];
    expect(
      texts.map(
        ({ value }) =>
          Buffer.from(value ?? [])
            .toString()
            .split(",")[0],
      ),
    ).toEqual(["Name", "Ada", "Ada"]);
    await written.return();
    expect(isReturned).toBe(true);
  });

  test("without rows is its header", async () => {
    const none = async function* (): AsyncGenerator<readonly ResultRow[]> {
      yield [];
    };
    const text = (await Array.fromAsync(writeResults(FORMAT, none()))).map(String).join("");
    expect(text).toBe(createResultsCsv(FORMAT).head());
  });
});

describe("a cell that a spreadsheet would run as a formula", () => {
  test.each([
    "=1+1",
    "@SUM(A1)",
    "\t=1",
    "\rx",
    "\nx",
    "\0=1",
    "  =1+1",
    "\u00a0=1",
    "\u200b=1",
    "\ufeff=1",
    "＝1+1",
    "＋1",
    "－1",
    "＠x",
    "=cmd|' /C calc'!A0",
  ])("%j is written as text", (cell) => {
    expect(defused(cell)).toBe(`'${cell}`);
  });

  test.each(["-12,50", "+49 40 1", "-12.50", "+1 (212) 555-0100", "-", "+49/40-1", "-1\u00a0000,5"])(
    "the number %j stays as it is",
    (cell) => {
      expect(defused(cell)).toBe(cell);
    },
  );

  test.each([
    "-cmd|' /C calc'!A0",
    '+HYPERLINK("x")',
    "-1+cmd",
    "=1",
    "@1",
    "\t-1",
    "\r+1",
    "＋1",
    "－1",
    "＝1",
    "＠1",
    "+1;2",
    "-1*2",
  ])("%j is not a number", (cell) => {
    expect(defused(cell)).toBe(`'${cell}`);
  });

  test.each(["", "ada@example.org", "1", "5-6", "a=b", "'=1", "Ünal", " x", "(=1)", "§"])(
    "%j stays as it is",
    (cell) => {
      expect(defused(cell)).toBe(cell);
    },
  );

  test("is written as text in headers and in addresses, too", () => {
    const writer = createResultsCsv({ ...FORMAT, header: ["=x", "email"] });
    expect(writer.head()).toStartWith("'=x,email,");
    const result = { ...RESULT, normalized_email: "+tag@example.org" };
    expect(writer.rows([{ cells: ["-1", "+Tag@example.org"], result, ...NO_HINTS }])).toStartWith(
      "-1,'+Tag@example.org,'+tag@example.org,",
    );
  });
});

test("cells are not defused and the byte order mark is set as requested", () => {
  const row = { cells: ["=1", "a@b.example"], result: null, ...NO_HINTS };
  expect(createResultsCsv(FORMAT, { defuse: false }).rows([row])).toStartWith("=1,a@b.example,");
  expect(createResultsCsv(FORMAT, { bom: true }).head()).toStartWith("\ufeffName");
  const marked = { ...FORMAT, encoding: { name: "utf-16le", bom: true, isAssumed: false } } as const;
  expect(createResultsCsv(marked).head()).toStartWith("\ufeffName");
  expect(createResultsCsv(marked, { bom: false }).head()).toStartWith("Name");
});

test("rows above the header are kept, as wide as the others", () => {
  const head = createResultsCsv({ ...FORMAT, titles: [["Customers"], ["=x"]] }, { bom: true }).head();
  const [first, second, header] = head.split("\r\n");
  expect(first).toBe(`\ufeffCustomers,${",".repeat(RESULT_COLUMNS.length)}`);
  expect(second).toStartWith("'=x,,");
  expect(header).toStartWith("Name,E-Mail,normalized_email");
});

test("hints follow the result", () => {
  const row = { cells: ["x"], result: RESULT, suggestion: "a@gmail.com", problem: "There is no address." };
  expect(createResultsCsv(FORMAT).rows([row])).toEndWith(",a@gmail.com,There is no address.\r\n");
});

describe("quoting", () => {
  test.each([
    [["a", "b"], "a,b"],
    [["a,b", "c"], '"a,b",c'],
    [['say "x"', ""], '"say ""x""",'],
    [["a\r\nb"], '"a\r\nb"'],
    [["a;b", "c|d", "e\tf"], '"a;b","c|d","e\tf"'],
    [[" a", "b "], '" a","b "'],
    [[""], '""'],
  ])("%j is written %j", (cells, line) => {
    expect(csvLine(cells)).toBe(`${line}\r\n`);
  });

  test("any cells survive writing and reading", async () => {
    const character = fc.constantFrom(
      "a",
      "é",
      "😀",
      '"',
      ",",
      ";",
      "\t",
      "|",
      "\n",
      "\r",
      "\r\n",
      " ",
      "=",
      "\0",
      "x@y.z",
    );
    const cell = fc.oneof(
      fc.array(character, { maxLength: 8 }).map((parts) => parts.join("")),
      fc.string(),
    );
    const delimiter = fc.constantFrom(",", ";", "\t", "|");
    const rows = fc.array(fc.tuple(cell, cell), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(rows, delimiter, async (cells, written) => {
        const format = { ...FORMAT, header: ["email", "note"], delimiter: written } as const;
        const writer = createResultsCsv(format);
        const text = writer.head() + writer.rows(cells.map((row) => ({ cells: row, result: RESULT, ...NO_HINTS })));
        const back = await readBack(text);
        expect(back.header).toEqual(["email", "note", ...RESULT_COLUMNS]);
        expect(back.rows.map((row) => row.slice(0, 2))).toEqual(cells.map((row) => row.map(defused)));
      }),
      { numRuns: 300 },
    );
  });
});

describe("the columns of an export", () => {
  const list = { ...JSON_LIST_FORMAT, header: ["Vorname", "E-Mail", "Nachname", "Ort"], column: 1, width: 4 } as const;
  const row = { cells: ["Ada", "Ada L <Ada@Example.org>", "Lovelace", "London, UK"], result: RESULT, ...NO_HINTS };
  const written = (options: Parameters<typeof createResultsCsv>[1], format: typeof FORMAT | typeof list = list) => {
    const writer = createResultsCsv({ ...format, titles: [["Customers"]] }, options);
    return writer.head() + writer.rows([row]);
  };

  test("are the uploaded ones alone, with the rows above them", () => {
    expect(written({ columns: "uploaded" })).toBe(
      "Customers,,,\r\nVorname,E-Mail,Nachname,Ort\r\n" + 'Ada,Ada L <Ada@Example.org>,Lovelace,"London, UK"\r\n',
    );
  });

  test("are the addresses alone, as they are spelled in their cells", () => {
    expect(written({ columns: "address" })).toBe("E-Mail\r\nAda L <Ada@Example.org>\r\n");
    expect(written({ columns: "address", clean: true })).toBe("E-Mail\r\nAda@Example.org\r\n");
  });

  test("keep a cell without an address when addresses are clean", () => {
    const line = createResultsCsv(FORMAT, { columns: "uploaded", clean: true }).rows([
      { cells: ["Ada", "ask her <no address>"], result: null, ...NO_HINTS },
    ]);
    expect(line).toBe("Ada,ask her <no address>\r\n");
  });

  test.each([
    ["mailchimp", "Email Address,First Name,Last Name,Ort"],
    ["brevo", "EMAIL,FIRSTNAME,LASTNAME,Ort"],
    ["hubspot", "Email,First Name,Last Name,Ort"],
  ] as const)("are those that %s imports", (preset, names) => {
    const csv = written({ preset, columns: "all" });
    expect(csv).toBe(`${names}\r\nAda@Example.org,Ada,Lovelace,"London, UK"\r\n`);
  });

  test("are three for listmonk, whose attributes are JSON", async () => {
    const { header, rows } = await readBack(written({ preset: "listmonk" }));
    expect(header).toEqual(["email", "name", "attributes"]);
    expect(rows).toEqual([["Ada@Example.org", "Ada Lovelace", '{"Ort":"London, UK"}']]);
  });

  test("lose no cell when names repeat each other or those of the tool", async () => {
    const header = ["Email", "Mail", "Phone", "phone"];
    const format = { ...JSON_LIST_FORMAT, header, column: 1, width: 4 };
    const cells = ["old@example.org", "ada@example.org", "1", "2"];
    const linesOf = async (preset: "hubspot" | "listmonk") => {
      const writer = createResultsCsv(format, { preset });
      return readBack(writer.head() + writer.rows([{ cells, result: null, ...NO_HINTS }]));
    };
    expect(await linesOf("hubspot")).toEqual({
      header: ["Email", "postwarden_Email", "Phone", "postwarden_phone"],
      rows: [["ada@example.org", "old@example.org", "1", "2"]],
    });
    const { rows } = await linesOf("listmonk");
    expect(JSON.parse(rows[0]?.[1] ?? "")).toEqual({ Email: "old@example.org", Phone: "1", postwarden_phone: "2" });
  });

  test("of a tool are separated by commas, in UTF-8 without a mark, whatever the upload was", () => {
    const upload = { name: "windows-1252", bom: true, isAssumed: true } as const;
    const format = { ...list, delimiter: ";", encoding: upload } as const;
    expect(createResultsCsv(format, { preset: "brevo" }).head()).toBe("EMAIL,FIRSTNAME,LASTNAME,Ort\r\n");
    expect(createResultsCsv(format, { preset: "brevo", bom: true }).head()).toStartWith("\ufeffEMAIL");
    expect(isExportedByByte(format, { preset: "brevo" })).toBe(false);
    expect(isExportedByByte(format, {})).toBe(true);
  });
});
