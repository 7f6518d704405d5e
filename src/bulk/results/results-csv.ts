import {
  type VerificationResult,
  signalsSchema,
  type Signal,
  type Signals,
  type SubStatus,
  VERDICT_OF,
} from "../../verify/result.ts";
import { z } from "zod";
import { bytesAsRead, ENCODINGS, isReadByByte, DELIMITERS } from "../reading/csv-records.ts";
import { csvLine } from "../../foundation/http/csv.ts";
import { cached } from "../../foundation/base/bounded-map.ts";
import { isoTime } from "../../foundation/base/clock.ts";

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

export interface ExportOptions {
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

/** Whether an export has the bytes of the upload, whose encoding is not known; UTF-8 otherwise. With a byte order mark it is UTF-8. */
export const isExportedByByte = ({ encoding }: ResultsFormat, { bom }: ExportOptions): boolean =>
  isReadByByte(encoding) && bom !== true;

/**
 * Writes an export: `head` once, then `rows` for every batch. UTF-8 with CRLF line ends (RFC 4180); the uploaded columns,
 * then `RESULT_COLUMNS`, empty for unfinished rows. Rows above the header are kept, padded to the width of the others; a
 * line `sep=;` is not, because spreadsheets ignore a byte order mark after it.
 *
 * The delimiter is the uploaded one. A byte order mark is written if the upload had one or had another known encoding than UTF-8
 * (a spreadsheet needs it to read UTF-8), and not otherwise, because other programs take it for part of the first name; `bom` overrides
 * that. Cells that a spreadsheet would run as a formula are defused unless `defuse` is false. A list without a header
 * gets the names `email` and `column_N` (N from 1).
 */
export const createResultsCsv = (format: ResultsFormat, { bom, defuse }: ExportOptions = {}) => {
  const written = { delimiter: format.delimiter ?? ",", defuse: defuse ?? true } as const;
  const { width } = format;
  const { encoding } = format;
  const needsMark = bom ?? (encoding.bom || (encoding.name !== "utf-8" && !isReadByByte(encoding)));
  const uploaded = uploadedNames(format);
  const unfinished = RESULT_COLUMNS.map(() => "");

  const filledUp = (cells: readonly string[]): string[] => {
    const line = cells.slice(0, width);
    while (line.length < width) line.push("");
    return line;
  };
  const rowLine = (row: ResultRow): string => {
    const line = filledUp(row.cells);
    if (row.result === null) line.push(...unfinished);
    else pushResult(line, row, row.result);
    return csvLine(line, written);
  };
  const titleLine = (cells: readonly string[]): string => csvLine([...filledUp(cells), ...unfinished], written);

  return {
    head: (): string =>
      (needsMark ? "\ufeff" : "") +
      format.titles.map(titleLine).join("") +
      csvLine([...uploaded, ...resultNames(uploaded)], written),
    rows: (rows: readonly ResultRow[]): string => rows.map(rowLine).join(""),
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
const resultNames = (uploaded: readonly string[]): string[] => {
  const taken = new Set(uploaded.map((name) => name.trim().toLowerCase()));
  return RESULT_COLUMNS.map((name) => {
    let free: string = taken.has(name) ? `${PREFIX}${name}` : name;
    for (let number = 2; taken.has(free); number += 1) free = `${PREFIX}${name}_${number}`;
    return free;
  });
};

/** A result in the columns of an address: a million JSON objects would take half a gigabyte. */
export interface ResultColumns {
  readonly subStatus: SubStatus;
  readonly qualityScore: number;
  readonly confidence: number;
  /** One letter per signal, in the order of the API. */
  readonly signals: string;
  readonly verifiedAtMs: number;
}

const LETTER_OF: Readonly<Record<Signal, string>> = { pass: "p", warn: "w", fail: "f", unknown: "u", skipped: "s" };
const SIGNAL_OF: ReadonlyMap<string, Signal> = new Map(
  (Object.keys(LETTER_OF) as Signal[]).map((signal) => [LETTER_OF[signal], signal]),
);
const NAMES = signalsSchema.keyof().options;
/** Of the 5^10 possible sets a few dozen occur. */
const SETS_CACHED_MAX = 10_000;

interface SignalSet {
  readonly signals: Signals;
  readonly json: string;
}

const readSignals = cached(SETS_CACHED_MAX, (letters): SignalSet => {
  const pairs = NAMES.map((name, at) => [name, SIGNAL_OF.get(letters[at] ?? "") ?? "unknown"] as const);
  const signals = Object.fromEntries(pairs) as Signals;
  return { signals, json: JSON.stringify(signals) };
});

/** The inverse of `toResult`, without the addresses. */
export const toColumns = (result: VerificationResult): ResultColumns => ({
  subStatus: result.sub_status,
  qualityScore: result.quality_score,
  confidence: result.confidence,
  signals: NAMES.map((name) => LETTER_OF[result.signals[name]]).join(""),
  verifiedAtMs: Date.parse(result.verified_at),
});

/** The result object of the API for a row. */
export const toResult = (columns: ResultColumns, email: string, normalizedEmail: string): VerificationResult => ({
  email: email.trim(),
  normalized_email: normalizedEmail,
  verdict: VERDICT_OF[columns.subStatus],
  sub_status: columns.subStatus,
  quality_score: columns.qualityScore,
  confidence: columns.confidence,
  signals: readSignals(columns.signals).signals,
  verified_at: isoTime(columns.verifiedAtMs),
});

/** `toResult` as JSON text, ten times faster. */
export const toResultJson = (columns: ResultColumns, email: string, normalizedEmail: string): string => {
  const { subStatus, qualityScore, confidence, signals, verifiedAtMs } = columns;
  return (
    `{"email":${JSON.stringify(email.trim())},"normalized_email":${JSON.stringify(normalizedEmail)},` +
    `"verdict":"${VERDICT_OF[subStatus]}","sub_status":"${subStatus}","quality_score":${qualityScore},` +
    `"confidence":${confidence},"signals":${readSignals(signals).json},"verified_at":"${isoTime(verifiedAtMs)}"}`
  );
};
