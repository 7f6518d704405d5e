import { countAddresses } from "./columns-address.ts";
import { DELIMITERS, type Delimiter } from "./csv-records.ts";

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

export interface SeparatorLine {
  readonly delimiter: Delimiter | undefined;
  /** Its length in bytes, line end included; 0 without such a line. */
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
