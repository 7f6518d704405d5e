import { nextTurn } from "../../../foundation/base/clock.ts";
import { err, ok, type Result } from "../../../foundation/base/errors.ts";
import { Gate } from "../../../foundation/base/wait.ts";
import { readReportFile } from "./read-file.ts";
import type { Report, ReportReading } from "./report.ts";
import { createUnpackBudget, UNPACK_LIMITS } from "./unpack.ts";

/** A mail or file that is to be read. */
export interface FileToRead {
  readonly bytes: Uint8Array;
  /** The name of the file; null where it has none. */
  readonly name: string | null;
}

/** How many bytes some files together may still unpack to. Used up as they are read. */
export interface UnpackAllowance {
  bytesLeft: number;
}

/** What was read from a file. */
export interface ReadFile {
  readonly readings: readonly ReportReading[];
  /** The hash of the rows of each report among the readings. */
  readonly rowsHashes: ReadonlyMap<Report, string>;
}

/** Why a file could not be read; `error` is what was thrown, or null. */
export interface ReadFailure {
  readonly reason: "upload_too_large" | "took_too_long" | "internal_error";
  readonly error: unknown;
}

export type ReadOutcome = Result<ReadFile, ReadFailure>;

/** Reads mails and files with reports in this thread or in another one. */
export interface FileReader {
  /** Whether another thread reads: the next files can be read while the reports of the last ones are written. */
  readonly isBeside: boolean;
  /**
   * Reads files from the first one on, as many as are good to read together, and at least one of them. The outcomes are in the
   * order of the files. Never rejects.
   */
  read(files: readonly FileToRead[], allowance: UnpackAllowance): Promise<readonly ReadOutcome[]>;
  /** Ends what was started for reading. Call it when nothing is being read. */
  stop(): void;
}

/** Unpacked bytes after which the garbage is collected: a decompression bomb leaves hundreds of megabytes behind. */
const COLLECT_AFTER_BYTES = 16 * 1024 * 1024;

/** Reads a file; null when it exceeds what is left of the allowance, although it could be read alone. */
export const readWithin = async (
  { bytes, name }: FileToRead,
  allowance: UnpackAllowance,
  read = readReportFile,
): Promise<readonly ReportReading[] | null> => {
  const budget = createUnpackBudget();
  const given = Math.min(budget.bytesLeft, allowance.bytesLeft);
  if (given <= 0) return null;
  budget.bytesLeft = given;
  const readings = await read(bytes, name, budget);
  const used = given - budget.bytesLeft;
  allowance.bytesLeft -= used;
  if (used >= COLLECT_AFTER_BYTES) Bun.gc(false);
  const isOver = readings.some(({ reason }) => reason === "mail_too_large");
  return isOver && given < UNPACK_LIMITS.mailBytesMax ? null : readings;
};

/** Rows hashed in one turn of the event loop, and the characters of their JSON: a few milliseconds. */
const ROWS_PER_TURN = 500;
const CHARACTERS_PER_TURN = 256 * 1024;
/** 162 bits of the hash, in base64url. */
const HASH_CHARACTERS = 27;

export const shortHash = (hasher: Bun.CryptoHasher): string => hasher.digest("base64url").slice(0, HASH_CHARACTERS);

/**
 * The rows of a report, hashed in their order: the hash of their JSON, which `keep` gets in pieces, rows separated by commas.
 * Yields where there are many.
 */
export const hashRows = async (
  { rows }: Pick<Report, "rows">,
  keep: (rowsJson: string) => void = () => undefined,
): Promise<string> => {
  const hasher = new Bun.CryptoHasher("sha256").update("[");
  for (let from = 0; from < rows.length;) {
    if (from > 0) await nextTurn();
    const some: string[] = [];
    for (let characters = 0; some.length < ROWS_PER_TURN && characters < CHARACTERS_PER_TURN && from < rows.length;) {
      const row = JSON.stringify(rows[from]);
      some.push(row);
      characters += row.length;
      from += 1;
    }
    const json = some.join(",");
    hasher.update(from === some.length ? json : `,${json}`);
    keep(json);
  }
  return shortHash(hasher.update("]"));
};

/** Reads files in this thread, one at a time. `read` is replaced by tests. */
export const readingHere = (read = readReportFile): FileReader => {
  const readFirst = async ([file]: readonly FileToRead[], allowance: UnpackAllowance): Promise<ReadOutcome[]> => {
    if (file === undefined) return [];
    try {
      const readings = await readWithin(file, allowance, read);
      if (readings === null) return [err({ reason: "upload_too_large", error: null })];
      const rowsHashes = new Map<Report, string>();
      for (const { report } of readings) if (report !== null) rowsHashes.set(report, await hashRows(report));
      return [ok({ readings, rowsHashes })];
    } catch (error) {
      return [err({ reason: "internal_error", error })];
    }
  };
  // What a file unpacks to is in memory meanwhile.
  const gate = new Gate(1);
  return {
    isBeside: false,
    read: (files, allowance) => gate.run(() => readFirst(files, allowance)),
    stop: () => undefined,
  };
};
