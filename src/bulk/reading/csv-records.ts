import { CsvError, type Parser, parse } from "csv-parse";
import { countAddresses } from "./columns-address.ts";

/** The supported delimiters; `null`: one column. */
export const DELIMITERS = [",", ";", "\t", "|"] as const;
export type Delimiter = (typeof DELIMITERS)[number] | null;

/** `strict`: RFC 4180. `relaxed`: a quote where RFC 4180 does not allow one is an ordinary character. */
export type Quoting = "strict" | "relaxed";

/** A longer row is an unclosed quote or not a list. It also limits what a job stores, because all cells are kept. */
export const CSV_ROW_BYTES_MAX = 64 * 1024;
export const CSV_ROW_CELLS_MAX = 1000;

/** Why a row cannot be read. `row`: from 1, header included, empty lines excluded. */
export interface CsvRowProblem {
  readonly row: number;
  readonly reason: string;
}

export interface RecordFormat {
  readonly delimiter: Delimiter;
  readonly quoting: Quoting;
}

/** The records of one chunk. The reader ends at a `problem`; `quoting`: the list may be readable with relaxed quoting. */
export interface ReadRecords {
  readonly records: string[][];
  readonly problem: (CsvRowProblem & { readonly kind: "quoting" | "unclosed" | "size" }) | null;
}

/** Bytes that never occur in UTF-8, for lists without a delimiter. */
const NO_DELIMITER = Buffer.from([0xff, 0xfe, 0xff, 0xfe]);

/**
 * Reads records (arrays of cells, without empty lines) from UTF-8 text in chunks that may be cut anywhere. Line ends may be
 * LF, CRLF or CR, mixed. Call `feed` for one chunk at a time, `end` once, and `stop` to give up early.
 */
export class RecordReader {
  readonly #parser: Parser;
  #failure: Error | null = null;
  #recordsRead = 0;
  #bytesSinceRow = 0;
  #rowsSeen = 0;

  constructor(private readonly format: RecordFormat) {
    this.#parser = parse({
      delimiter: format.delimiter ?? NO_DELIMITER,
      record_delimiter: ["\r\n", "\n", "\r"],
      relax_column_count: true,
      relax_quotes: format.quoting === "relaxed",
      skip_empty_lines: true,
      max_record_size: CSV_ROW_BYTES_MAX,
    });
    this.#parser.on("error", (error) => {
      this.#failure = error;
    });
  }

  async feed(chunk: Uint8Array): Promise<ReadRecords> {
    const records: string[][] = [];
    const written = new Promise<void>((resolve) => {
      this.#parser.write(chunk, () => resolve());
    });
    this.#drain(records);
    await written;
    this.#drain(records);
    const rowsSeen = this.#parser.info.records + this.#parser.info.empty_lines;
    this.#bytesSinceRow = rowsSeen > this.#rowsSeen ? 0 : this.#bytesSinceRow + chunk.length;
    this.#rowsSeen = rowsSeen;
    return this.#check(records);
  }

  async end(): Promise<ReadRecords> {
    const records: string[][] = [];
    await new Promise<void>((resolve) => {
      this.#parser.end(() => resolve());
    });
    this.#drain(records);
    return this.#check(records);
  }

  stop(): void {
    this.#parser.destroy();
  }

  #drain(records: string[][]): void {
    for (let record: unknown = this.#parser.read(); record !== null; record = this.#parser.read())
      records.push(record as string[]);
  }

  #check(records: string[][]): ReadRecords {
    const problems = records.map((record) => recordProblem(record, this.format.quoting));
    const at = problems.findIndex((problem) => problem !== null);
    const row = this.#recordsRead + at + 1;
    const problem =
      at < 0 ? this.#parserProblem(records.length) : { kind: "size" as const, row, reason: problems[at] ?? "" };
    this.#recordsRead += records.length;
    return { records, problem };
  }

  #parserProblem(count: number): ReadRecords["problem"] {
    const failure = this.#failure;
    if (failure === null && this.#bytesSinceRow <= CSV_ROW_BYTES_MAX + 1) return null;
    if (failure !== null && !(failure instanceof CsvError)) throw failure;
    // The parser loses the records that it had read before it failed, but counts them.
    const row = failure === null ? this.#recordsRead + count + 1 : this.#parser.info.records + 1;
    return { row, ...explain(failure?.code) };
  }
}

/** Why a record is refused although the parser accepted it. */
const recordProblem = (record: readonly string[], quoting: Quoting): string | null => {
  if (record.length > CSV_ROW_CELLS_MAX) return `more than ${CSV_ROW_CELLS_MAX} cells`;
  // With relaxed quoting a stray quote at the start of a cell swallows the rows up to the next quote.
  const swallows = (cell: string) => cell.startsWith('"') && /[\r\n]/.test(cell);
  return quoting === "relaxed" && record.some(swallows) ? "a quote opens a cell and is not closed properly" : null;
};

const explain = (code: string | undefined): { kind: "quoting" | "unclosed" | "size"; reason: string } => {
  if (code === "CSV_QUOTE_NOT_CLOSED") return { kind: "unclosed", reason: "a quote opens a cell and is never closed" };
  if (code === "CSV_INVALID_CLOSING_QUOTE" || code === "INVALID_OPENING_QUOTE")
    return { kind: "quoting", reason: "a quote is not allowed here" };
  return {
    kind: "size",
    reason: `longer than ${CSV_ROW_BYTES_MAX / 1024} KiB (often because of an unclosed quote)`,
  };
};

/** The first records of a list as read with `delimiter`. */
export interface DelimiterCandidate {
  readonly delimiter: Delimiter;
  readonly records: ReadonlyArray<readonly string[]>;
}

/** Shares of rows are compared in steps of a twentieth, so that a few irregular rows decide nothing. */
const STEPS = 20;

/**
 * Chooses the candidate with the most rows that have an address in the same column; then the one whose rows most often
 * have the same number of cells (two or more), then the widest, then the first. Without a delimiter that gives columns,
 * the list is one column (`null`), and a stray comma belongs to its cell.
 */
export const chooseDelimiter = (candidates: readonly DelimiterCandidate[]): DelimiterCandidate | undefined => {
  const ranked = candidates.map((candidate) => ({ candidate, rank: rankOf(candidate) }));
  const best = ranked.reduce<(typeof ranked)[number] | undefined>(
    (top, next) => (top === undefined || compare(next.rank, top.rank) > 0 ? next : top),
    undefined,
  );
  return best?.candidate;
};

const rankOf = ({ delimiter, records }: DelimiterCandidate): readonly number[] => {
  if (records.length === 0) return [0, 0, 0];
  const addressed = Math.max(0, ...countAddresses(records)) / records.length;
  const widths = new Map<number, number>();
  for (const { length } of records) widths.set(length, (widths.get(length) ?? 0) + 1);
  const [width, rows] = [...widths].reduce((top, next) => (next[1] > top[1] ? next : top));
  const first = records[0] ?? [];
  const namesColumns = first.length > 1 && !first.some((cell) => cell.includes("@"));
  const regularity = width > 1 ? 1 + rows / records.length : namesColumns ? 0.5 : delimiter === null ? 0.25 : 0;
  return [Math.round(addressed * STEPS), Math.round(regularity * STEPS), width];
};

const compare = (a: readonly number[], b: readonly number[]): number => {
  const differing = a.findIndex((value, index) => value !== b[index]);
  return differing < 0 ? 0 : (a[differing] ?? 0) - (b[differing] ?? 0);
};

/** Longer than any line `sep=`. */
const HEAD_BYTES = 16;
const SEPARATOR_LINE = /^"?sep=(.)"?(?:\r\n|\n|\r)/i;

interface SeparatorLine {
  readonly delimiter: Delimiter | undefined;
  /** The length of the line in bytes, line end included; 0 without such a line. */
  readonly bytes: number;
}

/** Reads the line `sep=;` with which spreadsheets name the delimiter. An unknown delimiter is ignored; the line is not a row either way. */
export const readSeparatorLine = async (text: AsyncIterable<Uint8Array>): Promise<SeparatorLine> => {
  let head = Buffer.alloc(0);
  for await (const chunk of text) {
    head = Buffer.concat([head, chunk.subarray(0, HEAD_BYTES)]);
    if (head.length >= HEAD_BYTES) break;
  }
  const [line, sign] = SEPARATOR_LINE.exec(head.toString()) ?? [];
  if (line === undefined) return { delimiter: undefined, bytes: 0 };
  return { delimiter: DELIMITERS.find((delimiter) => delimiter === sign), bytes: Buffer.byteLength(line) };
};
