import { countAddresses } from "./columns-address.ts";
import type { Delimiter } from "./csv-records.ts";

/** The first records of a list as they come out when read with `delimiter`. */
export interface DelimiterCandidate {
  readonly delimiter: Delimiter;
  readonly records: ReadonlyArray<readonly string[]>;
}

/** Shares of rows are compared in steps of a twentieth: a few odd rows decide nothing. */
const STEPS = 20;

/**
 * Chooses the reading that fits best: where most rows have an address in one and the same column; among those the one
 * whose rows have most often the same number of cells (two or more), then the widest, then the first. When no
 * delimiter gives columns, the list is one column (`null`), and a stray comma in it belongs to its cell.
 */
export const chooseDelimiter = (readings: readonly DelimiterCandidate[]): DelimiterCandidate | undefined => {
  const ranked = readings.map((reading) => ({ reading, rank: rankOf(reading) }));
  const best = ranked.reduce<(typeof ranked)[number] | undefined>(
    (top, next) => (top === undefined || compare(next.rank, top.rank) > 0 ? next : top),
    undefined,
  );
  return best?.reading;
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
