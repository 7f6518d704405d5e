import { CsvError, parse } from "csv-parse";

/** The four that lists are written with; `null` is a list of one column, in which no character separates cells. */
export const DELIMITERS = [",", ";", "\t", "|"] as const;
export type Delimiter = (typeof DELIMITERS)[number] | null;

/** `strict`: RFC 4180. `relaxed`: a quote that stands elsewhere than RFC 4180 allows is an ordinary character. */
export type Quoting = "strict" | "relaxed";

/** A row longer than this is an unclosed quote or no list. All of its cells are kept, so it bounds what a job stores. */
export const CSV_ROW_BYTES_MAX = 64 * 1024;
export const CSV_ROW_CELLS_MAX = 1000;

/** Why a row cannot be read. `row` counts from 1, the header included, empty lines not. */
export interface CsvRowProblem {
  readonly row: number;
  readonly reason: string;
}

export interface RecordFormat {
  readonly delimiter: Delimiter;
  readonly quoting: Quoting;
}

/** What one piece of the text gave. After a `problem` the reader is finished; a `quoting` one may pass when relaxed. */
export interface ReadRecords {
  readonly records: string[][];
  readonly problem: (CsvRowProblem & { readonly kind: "quoting" | "unclosed" | "size" }) | null;
}

/** Bytes that no UTF-8 text contains, for the parser that insists on a delimiter. */
const NO_DELIMITER = Buffer.from([0xff, 0xfe, 0xff, 0xfe]);

/**
 * A reader of records (arrays of cells, empty lines left out) from UTF-8 text that comes in pieces, cut anywhere.
 * Line ends may be LF, CRLF or CR, mixed. Call `feed` one piece at a time, `end` once, `stop` when giving up early.
 */
export const createRecordReader = ({ delimiter, quoting }: RecordFormat) => {
  const parser = parse({
    delimiter: delimiter ?? NO_DELIMITER,
    record_delimiter: ["\r\n", "\n", "\r"],
    relax_column_count: true,
    relax_quotes: quoting === "relaxed",
    skip_empty_lines: true,
    max_record_size: CSV_ROW_BYTES_MAX,
  });
  let failure: Error | null = null;
  let recordsRead = 0;
  let bytesSinceRow = 0;
  let rowsSeenBefore = 0;
  parser.on("error", (error) => {
    failure = error;
  });

  const drain = (records: string[][]): void => {
    for (let record: unknown = parser.read(); record !== null; record = parser.read()) records.push(record as string[]);
  };

  const rowAfter = (count: number): number => recordsRead + count + 1;

  const checked = (records: string[][]): ReadRecords => {
    const odd = records.findIndex((record) => oddRecord(record, quoting) !== null);
    const oddOne = records[odd];
    const problem =
      oddOne !== undefined
        ? { kind: "size" as const, row: rowAfter(odd), reason: oddRecord(oddOne, quoting) ?? "" }
        : failureProblem(records.length);
    recordsRead += records.length;
    return { records, problem };
  };

  const failureProblem = (count: number): ReadRecords["problem"] => {
    if (failure === null && bytesSinceRow <= CSV_ROW_BYTES_MAX + 1) return null;
    if (failure !== null && !(failure instanceof CsvError)) throw failure;
    // What the parser had read before it failed is lost with it, but it counted them.
    const row = failure === null ? rowAfter(count) : parser.info.records + 1;
    return { row, ...explain(failure?.code) };
  };

  return {
    async feed(chunk: Uint8Array): Promise<ReadRecords> {
      const records: string[][] = [];
      const taken = new Promise<void>((resolve) => {
        parser.write(chunk, () => resolve());
      });
      drain(records);
      await taken;
      drain(records);
      const rowsSeen = parser.info.records + parser.info.empty_lines;
      bytesSinceRow = rowsSeen > rowsSeenBefore ? 0 : bytesSinceRow + chunk.length;
      rowsSeenBefore = rowsSeen;
      return checked(records);
    },
    async end(): Promise<ReadRecords> {
      const records: string[][] = [];
      await new Promise<void>((resolve) => {
        parser.end(() => resolve());
      });
      drain(records);
      return checked(records);
    },
    stop: (): void => void parser.destroy(),
  };
};

const oddRecord = (record: readonly string[], quoting: Quoting): string | null => {
  if (record.length > CSV_ROW_CELLS_MAX) return `more than ${CSV_ROW_CELLS_MAX} cells`;
  // Read leniently, a stray quote at the start of a cell swallows the rows up to the next quote: lose none silently.
  const swallows = (cell: string) => cell.startsWith('"') && /[\r\n]/.test(cell);
  return quoting === "relaxed" && record.some(swallows) ? "a quote opens a cell and is not closed properly" : null;
};

const explain = (code: string | undefined): { kind: "quoting" | "unclosed" | "size"; reason: string } => {
  if (code === "CSV_QUOTE_NOT_CLOSED") return { kind: "unclosed", reason: "a quote opens a cell and is never closed" };
  if (code === "CSV_INVALID_CLOSING_QUOTE" || code === "INVALID_OPENING_QUOTE")
    return { kind: "quoting", reason: "a quote stands where none may stand" };
  return {
    kind: "size",
    reason: `longer than ${CSV_ROW_BYTES_MAX / 1024} KiB (often a quote that opens a cell and is never closed)`,
  };
};
