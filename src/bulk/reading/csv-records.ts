import { CsvError, type Parser, parse } from "csv-parse";
import { countAddresses } from "./columns-address.ts";
import { isAscii } from "node:buffer";
import { nextTurn } from "../../foundation/base/clock.ts";
import { type Result, err, ok } from "../../foundation/base/errors.ts";
import { open } from "node:fs/promises";

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
const SEPARATOR_BYTES = 16;
const SEPARATOR_LINE = /^"?sep=(.)"?(?:\r\n|\n|\r)/i;

/** Reads the line `sep=;` with which spreadsheets name the delimiter. An unknown delimiter is ignored; the line is not a row either way. `bytes`: its length, line end included; 0 without it. */
export const readSeparatorLine = async (text: AsyncIterable<Uint8Array>) => {
  let head = Buffer.alloc(0);
  for await (const chunk of text) {
    head = Buffer.concat([head, chunk.subarray(0, SEPARATOR_BYTES)]);
    if (head.length >= SEPARATOR_BYTES) break;
  }
  const [line, sign] = SEPARATOR_LINE.exec(head.toString()) ?? [];
  if (line === undefined) return { delimiter: undefined, bytes: 0 };
  return { delimiter: DELIMITERS.find((delimiter) => delimiter === sign), bytes: Buffer.byteLength(line) };
};

/** The encodings that lists can have, by their names in the Encoding Standard. */
export const ENCODINGS = [
  ...(["utf-8", "utf-16le", "utf-16be"] as const),
  ...(["windows-1250", "windows-1251", "windows-1252", "windows-1253", "windows-1254"] as const),
  ...(["windows-1255", "windows-1256", "windows-1257", "windows-1258", "windows-874"] as const),
  ...(["iso-8859-2", "iso-8859-15", "macintosh", "koi8-r", "koi8-u"] as const),
  ...(["shift_jis", "euc-jp", "gb18030", "big5", "euc-kr"] as const),
] as const;
export type EncodingName = (typeof ENCODINGS)[number];

/** The encoding of a list. `bom`: it starts with a byte order mark, which is not part of the first cell. */
export interface TextEncoding {
  readonly name: EncodingName;
  readonly bom: boolean;
  /**
   * Nobody has named the encoding and the list is not valid Unicode. As `windows-1252` each byte is one character, so that
   * `bytesAsRead` gives back the bytes of the list, whatever they mean.
   */
  readonly isAssumed: boolean;
}

/** Bytes in which UTF-16 and binary files are recognized. */
const HEAD_BYTES = 4096;
/** Latin text in UTF-16 has a NUL in nearly every second byte; other scripts at least in line ends and "@". */
const NUL_SHARE_OF_UTF16 = 0.3;

/** Tolerated control characters in a text. */
const CONTROLS_MAX = 4;
const CONTROL_SHARE_MAX = 0.05;
const NO_CSV = "This is not a CSV file: it contains binary data. Save the list as CSV (UTF-8).";

const NOT_TEXT: ReadonlyArray<readonly [what: string, magic: readonly number[]]> = [
  ["a ZIP archive", [0x50, 0x4b, 0x03, 0x04]],
  ["an old Excel workbook (.xls)", [0xd0, 0xcf, 0x11, 0xe0]],
  ["a gzip file", [0x1f, 0x8b]],
  ["a PDF", [0x25, 0x50, 0x44, 0x46, 0x2d]],
  ["UTF-32 text", [0xff, 0xfe, 0x00, 0x00]],
  ["UTF-32 text", [0x00, 0x00, 0xfe, 0xff]],
];

const MARKS: ReadonlyArray<readonly [name: EncodingName, mark: readonly number[]]> = [
  ["utf-8", [0xef, 0xbb, 0xbf]],
  ["utf-16le", [0xff, 0xfe]],
  ["utf-16be", [0xfe, 0xff]],
];

/**
 * Detects the encoding, or makes sure that the list has the one that is `named`; reads the whole list once.
 *
 * A byte order mark decides; otherwise NULs in every second byte mean UTF-16; otherwise it is UTF-8 if that is valid. The
 * encodings of one byte a letter cannot be told apart: Windows-1252 is assumed. UTF-8 with a few invalid bytes stays UTF-8
 * (they become U+FFFD), because Windows-1252 would corrupt every valid letter outside ASCII; it is assumed, too. NULs at
 * the end are padding. The error is a sentence.
 */
export const detectEncoding = async (
  source: ByteSource,
  named?: EncodingName,
): Promise<Result<TextEncoding, string>> => {
  const head = await readHead(source);
  const found = NOT_TEXT.find(([, magic]) => startsWith(head, magic));
  if (found !== undefined) return err(`This is ${found[0]}. Save the list as CSV (UTF-8).`);
  const [marked] = MARKS.find(([, mark]) => startsWith(head, mark)) ?? [];
  if (named !== undefined) return checkEncoding(source, named, marked);
  if (marked !== undefined) return ok({ name: marked, bom: true, isAssumed: false });
  const nulsAt = (parity: number) => head.filter((byte, index) => byte === 0 && index % 2 === parity).length;
  const [even, odd] = [nulsAt(0), nulsAt(1)];
  const enough = (head.length / 2) * NUL_SHARE_OF_UTF16;
  if (odd > enough && odd > 4 * even) return ok({ name: "utf-16le", bom: false, isAssumed: false });
  if (even > enough && even > 4 * odd) return ok({ name: "utf-16be", bom: false, isAssumed: false });
  const text = head.filter((byte) => byte !== 0);
  const controls = text.filter(isControl).length;
  if (controls > Math.max(CONTROLS_MAX, text.length * CONTROL_SHARE_MAX)) return err(NO_CSV);
  const { letters, invalid } = await countUtf8(source);
  return ok({ name: invalid > letters ? "windows-1252" : "utf-8", bom: false, isAssumed: invalid > 0 });
};

/** Makes sure that every byte means something in the encoding that the user has named. */
const checkEncoding = async (
  source: ByteSource,
  name: EncodingName,
  marked: EncodingName | undefined,
): Promise<Result<TextEncoding, string>> => {
  if (marked !== undefined && marked !== name)
    return err(`The list begins with the byte order mark of ${marked}, so it is not ${name}.`);
  const decoder = new TextDecoder(name, { fatal: true });
  try {
    for await (const chunk of source()) decoder.decode(chunk, { stream: true });
    decoder.decode();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return err(`The list is not valid ${name}. Name another encoding, or none to have it detected.`);
  }
  return ok({ name, bom: marked !== undefined, isAssumed: false });
};

/** Whether the text of a list stands for its bytes: `bytesAsRead` gives them back. */
export const isReadByByte = ({ name, isAssumed }: TextEncoding): boolean => isAssumed && name === "windows-1252";

/** The bytes of letters of Windows-1252 beyond U+00FF. */
const BYTES_OF_LETTERS: ReadonlyMap<string, string> = new Map(
  Array.from({ length: 0x20 }, (_, at) => {
    const byte = Uint8Array.of(0x80 + at);
    return [new TextDecoder("windows-1252").decode(byte), Buffer.from(byte).toString("latin1")];
  }),
);

/** The bytes of a text that was read as Windows-1252. Other letters become a question mark. */
export const bytesAsRead = (text: string): Uint8Array =>
  Buffer.from(
    text.replace(/[^\0-\xff]/gu, (letter) => BYTES_OF_LETTERS.get(letter) ?? "?"),
    "latin1",
  );

/** The text as UTF-8 without a byte order mark and the NULs at its end, in chunks of at most `CHUNK_BYTES` of input. */
export async function* utf8Chunks(source: ByteSource, encoding: TextEncoding): AsyncGenerator<Uint8Array, void> {
  let nuls = 0;
  for await (const chunk of decodedChunks(source, encoding)) {
    const end = chunk.at(-1) === 0 ? chunk.findLastIndex((byte) => byte !== 0) + 1 : chunk.length;
    for (; end > 0 && nuls > 0; nuls -= Math.min(nuls, CHUNK_BYTES)) yield new Uint8Array(Math.min(nuls, CHUNK_BYTES));
    if (end > 0) yield chunk.subarray(0, end);
    nuls += chunk.length - end;
  }
}

async function* decodedChunks(source: ByteSource, encoding: TextEncoding): AsyncGenerator<Uint8Array, void> {
  const decoder = encoding.name === "utf-8" ? null : new TextDecoder(encoding.name, { ignoreBOM: true });
  let skip = encoding.bom ? (decoder === null ? 3 : 2) : 0;
  for await (const chunk of source()) {
    for (let at = 0; at < chunk.length; at += CHUNK_BYTES) {
      if (at > 0) await nextTurn();
      const piece = chunk.subarray(at, at + CHUNK_BYTES);
      const text = piece.subarray(Math.min(skip, piece.length));
      skip -= piece.length - text.length;
      yield decoder === null ? text : Buffer.from(decoder.decode(text, { stream: true }));
    }
  }
  if (decoder !== null) yield Buffer.from(decoder.decode());
}

const ESCAPE = 0x1b;

/** C0 without white space (0x09-0x0d) and ESC, which is frequent in older Japanese encodings. */
const isControl = (byte: number): boolean => (byte < 0x09 || (byte > 0x0d && byte < 0x20)) && byte !== ESCAPE;

const startsWith = (bytes: Uint8Array, magic: readonly number[]): boolean =>
  magic.every((byte, index) => bytes[index] === byte);

/** The first bytes without NULs at their end. */
const readHead = async (source: ByteSource): Promise<Uint8Array> => {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of source()) {
    parts.push(chunk);
    bytes += chunk.length;
    if (bytes >= HEAD_BYTES) break;
  }
  const head = Buffer.concat(parts).subarray(0, HEAD_BYTES);
  return head.subarray(0, head.findLastIndex((byte) => byte !== 0) + 1);
};

/** Counts letters outside ASCII in well-formed UTF-8, and invalid bytes (RFC 3629 §3). */
const countUtf8 = async (source: ByteSource): Promise<{ letters: number; invalid: number }> => {
  let letters = 0;
  let invalid = 0;
  let awaited = 0;
  for await (const chunk of source()) {
    if (awaited === 0 && isAscii(chunk)) continue;
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at] ?? 0;
      if (byte < 0x80) {
        if (awaited > 0) invalid += 1;
        awaited = 0;
      } else if (byte < 0xc0) {
        if (awaited === 0) invalid += 1;
        else if (--awaited === 0) letters += 1;
      } else {
        if (awaited > 0) invalid += 1;
        awaited = byte >= 0xf5 || byte < 0xc2 ? 0 : byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : 1;
        if (awaited === 0) invalid += 1;
      }
    }
  }
  return { letters, invalid: invalid + (awaited > 0 ? 1 : 0) };
};

/** The bytes of a list. Every call starts at the first byte, because a list is read more than once. */
export type ByteSource = () => AsyncIterable<Uint8Array>;

/** Bytes read and parsed at once: even the slowest text blocks the event loop only for a few milliseconds. */
export const CHUNK_BYTES = 16 * 1024;

/** Reads a file in chunks of `CHUNK_BYTES`. It is closed also when the reader stops early. */
export const fileSource = (path: string): ByteSource =>
  async function* () {
    const file = await open(path, "r");
    try {
      for (;;) {
        const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES);
        if (bytesRead === 0) return;
        yield buffer.subarray(0, bytesRead);
      }
    } finally {
      await file.close();
    }
  };
