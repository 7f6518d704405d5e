import { nextTurn } from "../../foundation/base/clock.ts";
import { AppError, type Result, err, ok } from "../../foundation/base/errors.ts";
import {
  type ColumnReason,
  type ColumnOptions,
  countAddresses,
  findAddressColumn,
  COLUMN_REASONS,
  describeColumnReason,
} from "./columns-address.ts";
import {
  type DelimiterCandidate,
  chooseDelimiter,
  readSeparatorLine,
  DELIMITERS,
  type Delimiter,
  type RecordFormat,
  type CsvRowProblem,
  RecordReader,
  type EncodingName,
  type TextEncoding,
  detectEncoding,
  isReadByByte,
  utf8Chunks,
  type ByteSource,
  ENCODINGS,
} from "./csv-records.ts";
import { readAddressCell } from "../../foundation/mail/address-in-cell.ts";
import { z } from "zod";
import { flagField, nullableText, textField } from "../../foundation/http/schema-fields.ts";

/** Rows of a list (contract §5). */
export const ROWS_MAX = 1_000_000;
/** Rows per batch. */
export const LIST_BATCH_ROWS_MAX = 1000;
/** Rows of titles and header. */
const ROWS_ABOVE_MAX = 11;
/** Blank rows take time, too: a spreadsheet saved at full height has a million of them. */
const BLANKS_PER_ROW_MAX = 3;
const TOO_BLANK = { reason: "too many blank rows before it" };
/** The sample that delimiter, header and column are detected in. */
const SAMPLE_ROWS = 1000;
const SAMPLE_BYTES = 128 * 1024;

/** How a list is read. `readRows` returns the same rows for the same shape. */
export interface ListShape extends RecordFormat {
  readonly encoding: TextEncoding;
  /** The column names as uploaded; null when the first row is data. */
  readonly header: readonly string[] | null;
  /** Zero-based index of the column of addresses, and its name if it has one. */
  readonly column: number;
  readonly columnName: string | null;
  readonly reason: ColumnReason;
  /** The rows above the header, as uploaded. */
  readonly titles: ReadonlyArray<readonly string[]>;
  /** Bytes of a first line `sep=;` that names the delimiter; 0 without one. */
  readonly separatorLineBytes: number;
  /** Cells in the widest row. */
  readonly width: number;
  /** Rows with at least one cell that is not blank, without header and titles. */
  readonly rows: number;
}

/** The shape of a list, and the columns that could be the address column. */
export interface Inspection {
  readonly shape: ListShape;
  /** Columns that seem to contain addresses, with their number in the first `sampleRows` rows. */
  readonly candidates: ReadonlyArray<{
    readonly column: number;
    readonly name: string | null;
    readonly addresses: number;
  }>;
  readonly sampleRows: number;
}

/** Why a list is refused. `rows`: the invalid rows. */
export interface ListRefusal {
  readonly reason: string;
  readonly rows: readonly CsvRowProblem[];
}

/** A row of a list. `email`: the cell as submitted, empty when the row is too short. */
export interface ListRow {
  /** Zero-based; header and blank rows are not counted. */
  readonly rowIndex: number;
  readonly cells: readonly string[];
  readonly email: string;
}

export interface InspectOptions extends ColumnOptions {
  readonly rowsMax?: number;
  /** The delimiter, if known. */
  readonly delimiter?: Delimiter;
  /** The encoding that the user has named. */
  readonly encoding?: EncodingName | undefined;
}

/**
 * Reads a list to its end and returns its shape, or why it is refused.
 *
 * Blank rows (no text in any cell) are ignored. Short and long rows, and rows without an address, are accepted. Refused
 * are binary files, ambiguous quoting (an unclosed quote), lists beyond the limits, without rows, or without a column of addresses,
 * and addresses whose letters depend on an encoding that is only assumed.
 */
export const inspectList = async (
  source: ByteSource,
  { rowsMax = ROWS_MAX, delimiter: known, encoding, ...columns }: InspectOptions,
): Promise<Result<Inspection, ListRefusal>> => {
  const begun = await readBeginning(source, known, encoding);
  if (!begun.ok) return refuse(begun.error);
  const { text, sample } = begun.value;
  const delimiter = sample?.delimiter ?? null;
  const counted = await countRecords(source, { ...text, delimiter, recordsMax: rowsMax + 1 + ROWS_ABOVE_MAX });
  if (!counted.ok) return counted;
  if (sample === undefined || sample.records.length === 0) return refuse("The list has no rows.");
  const found = findAddressColumn(sample.records, columns);
  if (!found.ok) return refuse(found.error);
  const { header, column, titles } = found.value;
  const rowsAbove = titles.length + (header === null ? 0 : 1);
  const rows = counted.value.records - rowsAbove;
  if (rows === 0) return refuse("The list has a header but no rows.");
  if (rows > rowsMax) return err(tooManyRows(rowsMax, rowsMax + rowsAbove + 1));
  const { quoting, width, uncertain } = counted.value;
  const guessed = uncertain.get(column);
  if (guessed !== undefined) return refuse(guessed);
  const columnName = header?.[column]?.trim() ?? null;
  const sampled = sample.records.slice(rowsAbove);
  const candidates = countAddresses(sampled).flatMap((addresses, at) =>
    addresses > 0 || at === column ? [{ column: at, name: header?.[at]?.trim() ?? null, addresses }] : [],
  );
  const shape = { ...text, ...found.value, delimiter, quoting, columnName, width, rows };
  return ok({ shape, candidates, sampleRows: sampled.length });
};

/** The first rows of a text as cells, whatever they hold. */
export interface FileSample {
  readonly encoding: TextEncoding;
  readonly delimiter: Delimiter;
  readonly records: ReadonlyArray<readonly string[]>;
}

/** Reads the first rows of a list, at most `rowsMax`, also of one that is refused. The error is a sentence. */
export const sampleRecords = async (
  source: ByteSource,
  { rowsMax, delimiter }: { readonly rowsMax: number; readonly delimiter?: Delimiter },
): Promise<Result<FileSample, string>> => {
  const begun = await readBeginning(source, delimiter);
  if (!begun.ok) return begun;
  const { text, sample } = begun.value;
  const records = (sample?.records ?? []).slice(0, rowsMax);
  return ok({ encoding: text.encoding, delimiter: sample?.delimiter ?? null, records });
};

/**
 * The rows of an inspected list in order, in batches between which the event loop is yielded. Throws when the list was
 * changed since it was inspected.
 */
export async function* readRows(source: ByteSource, shape: ListShape): AsyncGenerator<readonly ListRow[], void> {
  let rowsAbove = shape.titles.length + (shape.header === null ? 0 : 1);
  let rowIndex = 0;
  for await (const { records, problem } of readRecords(source, shape)) {
    if (problem !== null) throw new Error(`The list changed since it was inspected: row ${problem.row}`);
    const rows = records.filter(isNotBlank);
    rowsAbove -= rows.splice(0, rowsAbove).length;
    for (let at = 0; at < rows.length; at += LIST_BATCH_ROWS_MAX) {
      const batch = rows.slice(at, at + LIST_BATCH_ROWS_MAX);
      yield batch.map((cells) => ({ rowIndex: rowIndex++, cells, email: cells[shape.column] ?? "" }));
      await nextTurn();
    }
  }
}

/** The error of a refused list: 400 with the invalid rows as `issues`. */
export const listRefused = ({ reason, rows }: ListRefusal): AppError =>
  new AppError("Invalid request body", {
    message: reason,
    issues: rows.map((problem) => ({ path: `row ${problem.row}`, message: problem.reason })),
  });

const isNotBlank = (cells: readonly string[]): boolean => cells.some((cell) => cell.trim() !== "");

const refuse = (reason: string): Result<never, ListRefusal> => err({ reason, rows: [] });

const tooManyRows = (rowsMax: number, row: number): ListRefusal => ({
  reason: `The list has more than ${rowsMax.toLocaleString("en")} rows. Split it.`,
  rows: [{ row, reason: "exceeds the limit" }],
});

/** How the bytes of a list become the text of its records. */
type TextShape = Pick<ListShape, "encoding" | "separatorLineBytes">;

async function* textChunks(source: ByteSource, { encoding, separatorLineBytes }: TextShape) {
  let skip = separatorLineBytes;
  for await (const chunk of utf8Chunks(source, encoding)) {
    const text = chunk.subarray(Math.min(skip, chunk.length));
    skip -= chunk.length - text.length;
    if (text.length > 0) yield text;
  }
}

async function* readRecords(source: ByteSource, format: RecordFormat & TextShape) {
  const reader = new RecordReader(format);
  try {
    for await (const chunk of textChunks(source, format)) {
      const read = await reader.feed(chunk);
      yield read;
      if (read.problem !== null) return;
    }
    yield await reader.end();
  } finally {
    reader.stop();
  }
}

/** How the bytes of a list become text, and its first rows; `known`: its delimiter. The error is a sentence. */
const readBeginning = async (source: ByteSource, known: Delimiter | undefined, named?: EncodingName) => {
  const encoding = await detectEncoding(source, named);
  if (!encoding.ok) return encoding;
  const separator = await readSeparatorLine(utf8Chunks(source, encoding.value));
  const text: TextShape = { encoding: encoding.value, separatorLineBytes: separator.bytes };
  return ok({ text, sample: await chooseSample(source, text, known ?? separator.delimiter) });
};

/** `named`: the delimiter in a line `sep=`; undefined without one. */
const chooseSample = async (
  source: ByteSource,
  text: TextShape,
  named: Delimiter | undefined,
): Promise<DelimiterCandidate | undefined> => {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of textChunks(source, text)) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > SAMPLE_BYTES) break;
  }
  const readings: DelimiterCandidate[] = [];
  for (const delimiter of named === undefined ? [...DELIMITERS, null] : [named]) {
    readings.push({ delimiter, records: await readSample(chunks, delimiter, bytes <= SAMPLE_BYTES) });
  }
  return chooseDelimiter(readings);
};

/** The first rows as read with `delimiter`, without the last row of a truncated sample. */
const readSample = async (chunks: readonly Uint8Array[], delimiter: Delimiter, whole: boolean) => {
  const reader = new RecordReader({ delimiter, quoting: "relaxed" });
  const kept: string[][] = [];
  const enough = () => kept.length >= SAMPLE_ROWS;
  for (const chunk of chunks) {
    kept.push(...(await reader.feed(chunk)).records.filter(isNotBlank));
    await nextTurn();
    if (enough()) break;
  }
  if (whole && !enough()) kept.push(...(await reader.end()).records.filter(isNotBlank));
  reader.stop();
  return kept.slice(0, SAMPLE_ROWS);
};

interface Counting extends TextShape {
  readonly delimiter: Delimiter;
  /** Counting stops after this many rows, header included. */
  readonly recordsMax: number;
}

const countRecords = async (source: ByteSource, { recordsMax, ...text }: Counting) => {
  const refuseRow = ({ row, reason }: CsvRowProblem) =>
    refuseRowAt(row + (text.separatorLineBytes > 0 ? 1 : 0), reason);
  const strict = await countAs(source, { ...text, quoting: "strict" }, recordsMax);
  if (strict.ok || strict.error.kind !== "quoting") return strict.ok ? strict : refuseRow(strict.error);
  const relaxed = await countAs(source, { ...text, quoting: "relaxed" }, recordsMax);
  return relaxed.ok ? relaxed : refuseRow(relaxed.error);
};

const countAs = async (source: ByteSource, format: RecordFormat & TextShape, recordsMax: number) => {
  const counted = { records: 0, width: 0, quoting: format.quoting, uncertain: new Map<number, string>() };
  let seen = 0;
  for await (const { records, problem } of readRecords(source, format)) {
    if (problem !== null) return err(problem);
    for (const record of records) {
      if (!isNotBlank(record)) continue;
      counted.records += 1;
      counted.width = Math.max(counted.width, record.length);
      if (isReadByByte(format.encoding)) noteUncertain(record, counted);
    }
    seen += records.length;
    if (counted.records > recordsMax) return ok(counted);
    if (seen > recordsMax * BLANKS_PER_ROW_MAX) return err({ kind: "size" as const, ...TOO_BLANK, row: seen });
  }
  return ok(counted);
};

/** Notes the first address of each column whose letters another encoding would change: it would be another mailbox. */
const noteUncertain = (
  record: readonly string[],
  { records, uncertain }: { readonly records: number; readonly uncertain: Map<number, string> },
): void => {
  for (const [column, cell] of record.entries()) {
    if (uncertain.has(column) || !hasLetters(cell) || !cell.includes("@")) continue;
    const read = readAddressCell(cell);
    if (read.ok && hasLetters(read.value.text))
      uncertain.set(
        column,
        `The encoding of this list is not known, and row ${records} has an address with letters outside ASCII: ${JSON.stringify(read.value.text)}. Name the encoding, for example windows-1252.`,
      );
  }
};

/** Letters outside ASCII. */
const hasLetters = (text: string): boolean => /[^\0-\x7f]/.test(text);

const refuseRowAt = (row: number, reason: string): Result<never, ListRefusal> =>
  err({ reason: `Row ${row} of the list cannot be read: ${reason}.`, rows: [{ row, reason }] });

/** Longer column names are cut: a header may have 64 KiB. */
const NAME_CHARACTERS_SHOWN = 200;

/** How a file is read, as jobs and previews show it. */
export const detectedFormatSchema = z
  .object({
    type: z.enum(["csv", "xlsx"]).meta({ description: "`xlsx`: a sheet of an Excel workbook." }),
    sheet: nullableText("The name of the sheet of a workbook; null for a CSV.").default(null),
    encoding: z.enum(ENCODINGS).meta({ description: "The character encoding of a CSV; `utf-8` for a workbook." }),
    encoding_assumed: z.boolean().default(false).meta({
      description:
        "True when the list is not valid Unicode and no encoding was named. Cells are shown as if the encoding were right; as `windows-1252`, results.csv returns the bytes of your columns unchanged.",
    }),
    delimiter: z.enum(DELIMITERS).nullable().meta({ description: "The character between cells; null: one column." }),
    header: flagField("Whether a row names the columns."),
    title_rows: z
      .int()
      .min(0)
      .meta({ description: "Rows above the header. They are kept in results.csv and not verified." }),
    column: z
      .object({
        index: z.int().min(0).meta({ description: "Zero-based index of the column." }),
        name: nullableText("The name of the column; null without a header."),
        reason: z.enum(COLUMN_REASONS).meta({ description: "Why this column was chosen." }),
        message: textField("The reason as a sentence."),
      })
      .meta({ description: "The column of addresses." }),
  })
  .meta({ title: "ListReading" });
export type DetectedFormat = z.output<typeof detectedFormatSchema>;

/** The name of a column, cut to a length that can be shown. */
export const shownName = (name: string | null): string | null =>
  name === null || name.length <= NAME_CHARACTERS_SHOWN ? name : `${name.slice(0, NAME_CHARACTERS_SHOWN)}…`;

/** The format of a list as the API shows it. */
export const detectedFormatOf = (
  type: DetectedFormat["type"],
  { encoding, delimiter, header, titles, column, columnName, reason }: ListShape,
  sheet: string | null = null,
): DetectedFormat => ({
  type,
  sheet: shownName(sheet),
  encoding: encoding.name,
  encoding_assumed: encoding.isAssumed,
  delimiter,
  header: header !== null,
  title_rows: titles.length,
  column: { index: column, name: shownName(columnName), reason, message: describeColumnReason(reason) },
});

const DELIMITER_NAMES = { ",": "comma", ";": "semicolon", "\t": "tab", "|": "bar" } as const;

const ASSUMED =
  "\nThe encoding is assumed: the list is not valid Unicode. If letters look wrong, name the encoding with --encoding.";

/** A format in lines for the command line. */
export const describeFormat = (format: DetectedFormat): string => {
  const { type, sheet, encoding, encoding_assumed, delimiter, header, title_rows, column } = format;
  const titles = title_rows === 0 ? "" : `, below ${title_rows === 1 ? "a title row" : `${title_rows} title rows`}`;
  const file =
    type === "xlsx"
      ? `Excel workbook${sheet === null ? "" : `, sheet ${JSON.stringify(sheet)}`}`
      : `CSV (${encoding}${delimiter === null ? "" : `, ${DELIMITER_NAMES[delimiter]}`})`;
  const name = column.name === null ? "" : ` ${JSON.stringify(column.name)}`;
  return `${file}, ${header ? `with a header${titles}` : "without a header"}.\nAddresses: column ${column.index}${name}. ${column.message}${encoding_assumed ? ASSUMED : ""}`;
};
