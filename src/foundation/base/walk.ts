import { backgroundTurn } from "./fair-queue.ts";

/** Some rows of something that is read in one order. */
export interface WalkPage<R, K> {
  readonly rows: readonly R[];
  /** Behind which key the next page begins; null on the last one. */
  readonly next: K | null;
}

/** Looks at some rows behind a key, about `looks` of them, and answers those that are wanted, about `wanted` at most. */
export type ReadRows<R, K> = (behind: K, looks: number, wanted: number) => WalkPage<R, K>;

/** Something that is read in one order, from behind a key on. */
export interface Walk<R, K> {
  readonly read: ReadRows<R, K>;
  readonly keyOf: (row: R) => K;
  /** Rows looked at in one go, when fewer are wanted than there are. */
  readonly step: number;
  /** Rows that `read` is asked for at most in one go, where rows may be large; it says where it ended. Default: all wanted. */
  readonly rowsAtOnce?: number;
  /** Bytes that a row takes of a page. A page ends before it has more than `PAGE_BYTES_MAX`, but never without a row. */
  readonly weigh?: (row: R) => number;
  /** Rows looked at for one page. Default: `WALKED_MAX`. */
  readonly looksMax?: number;
}

/** Rows looked at for one page. A filter that next to nothing passes then ends the page early: it has a next one. */
export const WALKED_MAX = 1_000_000;

/** What the rows of one page take at most. It then ends early: it has a next one. */
export const PAGE_BYTES_MAX = 4 * 1024 * 1024;

/** One page: up to `limit` rows behind `before`, in steps of background work of `account`. */
export const walk = async <R, K>(
  { read, keyOf, step, rowsAtOnce = Number.POSITIVE_INFINITY, weigh = weightless, looksMax = WALKED_MAX }: Walk<R, K>,
  { before, limit, account = null }: { readonly before: K; readonly limit: number; readonly account?: string | null },
): Promise<WalkPage<R, K>> => {
  const found: R[] = [];
  let behind = before;
  let looks = limit + 1;
  let bytes = 0;
  for (let walked = 0; walked < looksMax; walked += looks) {
    await backgroundTurn(account);
    if (walked > 0) looks = Math.max(step, limit + 1);
    const { rows, next } = read(behind, looks, Math.min(limit + 1 - found.length, rowsAtOnce));
    for (const row of rows) {
      const last = found.at(-1);
      bytes += weigh(row);
      const isFull = found.length === limit || bytes > PAGE_BYTES_MAX;
      if (isFull && last !== undefined) return { rows: found, next: keyOf(last) };
      found.push(row);
    }
    if (next === null) return { rows: found, next };
    behind = next;
  }
  return { rows: found, next: behind };
};

const weightless = () => 0;

/** A piece of what is ordered by ids. */
export interface IdWindow {
  readonly before: string | null;
  readonly from?: string | undefined;
  readonly limit: number;
}

/**
 * Reads rows of somebody, newest first, by ids that grow. `list` returns the rows that pass and are older than `before` and not
 * older than `from`. `idBehind` returns the id `places` behind the newest older than `before`, or null if there are fewer: with it,
 * filters that few rows pass never look at more in one go.
 */
export const readById =
  <R extends { readonly id: string }>(
    list: (window: IdWindow) => readonly R[],
    idBehind: (before: string | null, places: number) => string | null = () => null,
  ): ReadRows<R, string | null> =>
  (before, looks, wanted) => {
    const from = idBehind(before, looks - 1);
    const rows = list({ before, from: from ?? undefined, limit: wanted });
    const last = rows.at(-1);
    return { rows, next: rows.length === wanted && last !== undefined ? last.id : from };
  };

/** Conditions of a list; one that is undefined does not restrict it. */
export type FiltersOf<T> = { readonly [K in keyof T]?: T[K] | undefined };
