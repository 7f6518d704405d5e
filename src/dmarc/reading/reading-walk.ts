import { nextTurn } from "../../base/clock.ts";

/** What was found among some rows that were looked at. */
export interface Stretch<R, K> {
  readonly rows: readonly R[];
  /** Behind which key to go on; null when there is nothing more. */
  readonly end: K | null;
}

/** Something that is read in one order, from behind a key on. */
export interface Walk<R, K> {
  /** Looks at some rows behind `before`, about `looks` of them, and answers those that are wanted, about `wanted` at most. */
  readonly read: (before: K, looks: number, wanted: number) => Stretch<R, K>;
  readonly keyOf: (row: R) => K;
  /** Rows looked at in one go, when fewer are wanted than there are. */
  readonly step: number;
}

export interface WalkPage<R, K> {
  readonly rows: readonly R[];
  /** Behind which key the next page begins; null on the last one. */
  readonly next: K | null;
}

/** Rows looked at for one page. A filter that next to nothing passes then ends the page early: it has a next one. */
export const WALKED_MAX = 1_000_000;

/** One page: up to `limit` rows behind `before`. It is walked in steps between which others have their turn. */
export const walk = async <R, K>(
  { read, keyOf, step }: Walk<R, K>,
  { before, limit }: { readonly before: K; readonly limit: number },
): Promise<WalkPage<R, K>> => {
  const found: R[] = [];
  let behind = before;
  let looks = limit + 1;
  for (let walked = 0; walked < WALKED_MAX; walked += looks) {
    if (walked > 0) looks = Math.max(step, limit + 1);
    const { rows, end } = read(behind, looks, limit + 1 - found.length);
    found.push(...rows);
    const page = found.slice(0, limit);
    const last = page.at(-1);
    if (found.length > limit && last !== undefined) return { rows: page, next: keyOf(last) };
    if (end === null) return { rows: page, next: null };
    behind = end;
    await nextTurn();
  }
  return { rows: found, next: behind };
};

/** A stretch of rows that were read as they are, and are held against a condition here. */
export const stretchOf = <R, K>(
  rows: readonly R[],
  looks: number,
  { keyOf, passes }: { readonly keyOf: (row: R) => K; readonly passes: (row: R) => boolean },
): Stretch<R, K> => {
  const last = rows.at(-1);
  return { rows: rows.filter(passes), end: last === undefined || rows.length < looks ? null : keyOf(last) };
};
