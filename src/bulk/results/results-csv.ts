import { type VerificationResult, signalsSchema } from "../../verify/result.ts";
import { z } from "zod";
import { bytesAsRead, ENCODINGS, isReadByByte, DELIMITERS } from "../reading/csv-records.ts";
import { csvLine } from "../../foundation/http/csv.ts";
import { readAddressCell } from "../../foundation/mail/address-in-cell.ts";

/** A row of the export. `result`: null until the row is finished. */
export interface ResultRow {
  readonly cells: readonly string[];
  readonly result: VerificationResult | null;
  /** The address that was probably meant, and why the cell does not hold an address; null otherwise. */
  readonly suggestion: string | null;
  readonly problem: string | null;
}

/** The part of the shape of a list that its export needs, stored with the job. `JSON_LIST_FORMAT` for a JSON list. */
export const resultsFormatSchema = z.object({
  header: z.array(z.string()).readonly().nullable(),
  column: z.number(),
  width: z.number(),
  delimiter: z.enum(DELIMITERS).nullable(),
  encoding: z.object({ name: z.enum(ENCODINGS), bom: z.boolean(), isAssumed: z.boolean().default(false) }),
  /** The rows above the header. */
  titles: z.array(z.array(z.string()).readonly()).readonly().default([]),
});
export type ResultsFormat = z.output<typeof resultsFormatSchema>;

/** Tools that send newsletters, whose imports recognize columns by their names. */
export const PRESETS = ["mailchimp", "brevo", "hubspot", "listmonk"] as const;

/** `all`: the uploaded columns, then the results; `uploaded`: without the results; `address`: the address alone. */
export const EXPORT_COLUMNS = ["all", "uploaded", "address"] as const;

export interface ExportOptions {
  /** Default `all`. */
  readonly columns?: (typeof EXPORT_COLUMNS)[number] | undefined;
  /** Whether an address stands without the name, `mailto:` or quotes of its cell. Default false. */
  readonly clean?: boolean | undefined;
  /** The columns that a tool imports, in place of `columns`; addresses are clean. */
  readonly preset?: (typeof PRESETS)[number] | undefined;
  /** Whether the file starts with a byte order mark; undefined: if the upload had one or was in another known encoding than UTF-8. */
  readonly bom?: boolean | undefined;
  /** Whether formulas are defused. */
  readonly defuse?: boolean | undefined;
}

export const JSON_LIST_FORMAT: ResultsFormat = {
  header: ["email"],
  column: 0,
  width: 1,
  delimiter: null,
  encoding: { name: "utf-8", bom: false, isAssumed: false },
  titles: [],
};

const SIGNAL_NAMES = signalsSchema.keyof().options;

/** The result columns, which follow the uploaded ones. */
export const RESULT_COLUMNS = [
  "normalized_email",
  "verdict",
  "sub_status",
  "quality_score",
  "confidence",
  ...SIGNAL_NAMES.map((name) => `signal_${name}` as const),
  "verified_at",
  "did_you_mean",
  "reason",
] as const;

const PREFIX = "postwarden_";
const UNFINISHED = RESULT_COLUMNS.map(() => "");

/** Whether an export has the bytes of the upload, whose encoding is not known. UTF-8 otherwise, with a byte order mark, or for a preset. */
export const isExportedByByte = ({ encoding }: ResultsFormat, { bom, preset }: ExportOptions): boolean =>
  isReadByByte(encoding) && bom !== true && preset === undefined;

/**
 * Writes an export: `head` once, then `rows` for every batch. UTF-8 with CRLF line ends (RFC 4180); the columns of
 * `options`, those of the results empty for unfinished rows. Rows above the header are kept with all columns, padded to
 * the width of the others; a line `sep=;` is not, because spreadsheets ignore a byte order mark after it.
 *
 * The delimiter is the uploaded one, and a comma for a preset. A byte order mark is written if the upload had one or had
 * another known encoding than UTF-8 (a spreadsheet needs it to read UTF-8), and not otherwise, because other programs take
 * it for part of the first name; `bom` overrides that. Cells that a spreadsheet would run as a formula are defused unless
 * `defuse` is false. A list without a header gets the names `email` and `column_N` (N from 1).
 */
export const createResultsCsv = (format: ResultsFormat, options: ExportOptions = {}) => {
  const { bom, defuse, preset } = options;
  const delimiter = preset === undefined ? (format.delimiter ?? ",") : ",";
  const written = { delimiter, defuse: defuse ?? true } as const;
  const { encoding } = format;
  const hasMark = preset === undefined && (encoding.bom || (encoding.name !== "utf-8" && !isReadByByte(encoding)));
  const { names, cells, titles } = layoutOf(format, options);
  return {
    head: (): string =>
      ((bom ?? hasMark) ? "\ufeff" : "") + [...titles, names].map((line) => csvLine(line, written)).join(""),
    rows: (rows: readonly ResultRow[]): string => rows.map((row) => csvLine(cells(row), written)).join(""),
  };
};

/** An export as bytes, one chunk per batch: UTF-8, or the bytes of an upload in an unknown encoding. */
export async function* writeResults(
  format: ResultsFormat,
  batches: AsyncIterable<readonly ResultRow[]>,
  options: ExportOptions = {},
): AsyncGenerator<Uint8Array, void> {
  const writer = createResultsCsv(format, options);
  const encode = isExportedByByte(format, options) ? bytesAsRead : (text: string) => Buffer.from(text);
  yield encode(writer.head());
  for await (const batch of batches) {
    const text = writer.rows(batch);
    // Also an empty chunk, so that the event loop is yielded when no row of a batch matches.
    yield encode(text);
  }
}

/** The lines of an export: above the names, the names, and the cells of a row. */
interface Layout {
  readonly titles: ReadonlyArray<readonly string[]>;
  readonly names: readonly string[];
  readonly cells: (row: ResultRow) => readonly string[];
}

const layoutOf = (format: ResultsFormat, { columns = "all", clean = false, preset }: ExportOptions): Layout => {
  const { column, width } = format;
  const uploaded = uploadedNames(format);
  const filledUp = (cells: readonly string[]): string[] => {
    const line = cells.slice(0, width);
    while (line.length < width) line.push("");
    return line;
  };
  if (preset !== undefined) return presetLayout(PRESET_NAMES[preset], { names: uploaded, column });
  const own = ({ cells }: ResultRow): string[] => {
    const line = filledUp(cells);
    if (clean) line[column] = cleanAddress(line[column] ?? "");
    return line;
  };
  if (columns === "address")
    return { titles: [], names: [uploaded[column] ?? "email"], cells: (row) => [own(row)[column] ?? ""] };
  if (columns === "uploaded") return { titles: format.titles.map(filledUp), names: uploaded, cells: own };
  return {
    titles: format.titles.map((cells) => [...filledUp(cells), ...UNFINISHED]),
    names: [...uploaded, ...resultNames(uploaded)],
    cells: (row) => {
      const line = own(row);
      if (row.result === null) line.push(...UNFINISHED);
      else pushResult(line, row, row.result);
      return line;
    },
  };
};

/** The names of the columns that an export has. */
export const exportedColumns = (format: ResultsFormat, options: ExportOptions): readonly string[] =>
  layoutOf(format, options).names;

/** The address of a cell as it is spelled there; the cell when it holds none. */
export const cleanAddress = (cell: string): string => {
  const read = readAddressCell(cell);
  return read.ok ? read.value.text : cell;
};

/** The names that the import of a tool recognizes. `attributes`: where all other columns go together, as JSON. */
interface PresetNames {
  readonly email: string;
  readonly first?: string;
  readonly last?: string;
  readonly name?: string;
  readonly attributes?: string;
}

/** From the import pages of the tools' manuals. */
const PRESET_NAMES: Readonly<Record<(typeof PRESETS)[number], PresetNames>> = {
  mailchimp: { email: "Email Address", first: "First Name", last: "Last Name" },
  brevo: { email: "EMAIL", first: "FIRSTNAME", last: "LASTNAME" },
  hubspot: { email: "Email", first: "First Name", last: "Last Name" },
  listmonk: { email: "email", name: "name", attributes: "attributes" },
};

/** Headings of columns that hold names of people, in lower case, letters only. */
const FIRST_NAMES = ["firstname", "givenname", "forename", "vorname", "prénom", "prenom", "nombre", "voornaam", "imię"];
const LAST_NAMES = [
  "lastname",
  "surname",
  "familyname",
  "nachname",
  "familienname",
  "apellido",
  "apellidos",
  "cognome",
];
const WHOLE_NAMES = ["name", "fullname", "contact", "contactname", "ansprechpartner", "nom", "naam", "nome"];

/** The address first, then the names of people, then the other columns. A column that would repeat a name is numbered. */
const presetLayout = (
  preset: PresetNames,
  { names, column }: { readonly names: readonly string[]; readonly column: number },
): Layout => {
  const headings = names.map((name) => name.toLowerCase().replace(/[^\p{L}]/gu, ""));
  const find = (wanted: readonly string[]) => headings.findIndex((one, at) => at !== column && wanted.includes(one));
  const [first, last, whole] = [find(FIRST_NAMES), find(LAST_NAMES), find(WHOLE_NAMES)];
  const people = [
    { name: preset.first, at: [first] },
    { name: preset.last, at: [last] },
    { name: preset.name, at: whole < 0 ? [first, last] : [whole] },
  ].flatMap(({ name, at }) => {
    const found = at.filter((each) => each >= 0);
    return name === undefined || found.length === 0 ? [] : [{ name, at: found }];
  });
  const used = new Set([column, ...people.flatMap(({ at }) => at)]);
  const others = names.flatMap((name, at) => (used.has(at) ? [] : [{ name, at }]));
  const { attributes } = preset;
  const fixed = [preset.email, ...people.map(({ name }) => name)];
  const cellsOfPeople = (cells: readonly string[]) =>
    people.map(({ at }) =>
      at
        .map((each) => cells[each]?.trim() ?? "")
        .join(" ")
        .trim(),
    );
  const otherNames = freeNames(
    others.map(({ name }) => name),
    attributes === undefined ? fixed : [],
  );
  const otherCells = (cells: readonly string[]) => others.map(({ at }) => cells[at] ?? "");
  const asJson = (cells: readonly string[]) =>
    JSON.stringify(Object.fromEntries(otherCells(cells).map((cell, at) => [otherNames[at], cell])));
  return {
    titles: [],
    names: [...fixed, ...(attributes === undefined ? otherNames : [attributes])],
    cells: ({ cells }) => [
      cleanAddress(cells[column] ?? ""),
      ...cellsOfPeople(cells),
      ...(attributes === undefined ? otherCells(cells) : [asJson(cells)]),
    ],
  };
};

/** `names` without repeats: one that is taken gets a prefix, then a number. */
const freeNames = (names: readonly string[], others: readonly string[]): string[] => {
  const taken = new Set(others.map((name) => name.trim().toLowerCase()));
  return names.map((name) => {
    let free = taken.has(name.toLowerCase()) ? `${PREFIX}${name}` : name;
    for (let number = 2; taken.has(free.toLowerCase()); number += 1) free = `${PREFIX}${name}_${number}`;
    taken.add(free.toLowerCase());
    return free;
  });
};

const pushResult = (cells: string[], { suggestion, problem }: ResultRow, result: VerificationResult): void => {
  const { signals } = result;
  cells.push(result.normalized_email, result.verdict, result.sub_status);
  cells.push(String(result.quality_score), String(result.confidence));
  for (const name of SIGNAL_NAMES) cells.push(signals[name]);
  cells.push(result.verified_at, suggestion ?? "", problem ?? "");
};

const uploadedNames = ({ header, column, width }: ResultsFormat): string[] =>
  Array.from({ length: width }, (_, index) => {
    const name = header?.[index]?.trim() ?? "";
    if (name !== "") return header?.[index] ?? name;
    return header === null && index === column ? "email" : `column_${index + 1}`;
  });

/** A name that the upload has too (such as an export uploaded again) gets a prefix, then a number. */
const resultNames = (uploaded: readonly string[]): string[] => freeNames(RESULT_COLUMNS, uploaded);
