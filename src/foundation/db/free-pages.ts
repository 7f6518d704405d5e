import { inSteps } from "../base/in-steps.ts";
import type { Db } from "./open.ts";

/** Pages moved and cut off in one transaction: it holds the event loop for a few milliseconds. */
const PAGES_AT_ONCE = 128;
/** `PRAGMA auto_vacuum` of a database whose free pages can be returned in steps. */
export const INCREMENTAL = 2;

const pragmaOf = ({ sqlite }: Pick<Db, "sqlite">, name: string): number =>
  Number(Object.values((sqlite.query(`PRAGMA ${name}`).get() as object | null) ?? {})[0] ?? 0);

/** Whether free pages can be returned while the database is in use; false for one that `compact` has not converted yet. */
export const canReturnPages = (db: Pick<Db, "sqlite">): boolean => pragmaOf(db, "auto_vacuum") === INCREMENTAL;

/** Bytes of the file that are not in use. */
export const freeBytesOf = (db: Pick<Db, "sqlite">): number =>
  pragmaOf(db, "freelist_count") * pragmaOf(db, "page_size");

/**
 * Returns the free pages of the database to the file system, in short transactions, until none is left or `isStopping`.
 * Returns how many bytes; 0 when the database cannot return pages in steps.
 */
export const returnFreePages = async (
  db: Pick<Db, "sqlite" | "commit">,
  isStopping: () => boolean,
): Promise<number> => {
  if (!canReturnPages(db)) return 0;
  const pageBytes = pragmaOf(db, "page_size");
  const { count } = await inSteps(() => returnSome(db), { isStopping });
  return count * pageBytes;
};

/** Returns how many pages were returned; 0 at the end. */
const returnSome = async (db: Pick<Db, "sqlite" | "commit">): Promise<number> => {
  const before = pragmaOf(db, "freelist_count");
  if (before === 0) return 0;
  // `all`: the statement returns a page with each step.
  await db.commit(() => void db.sqlite.query(`PRAGMA incremental_vacuum(${PAGES_AT_ONCE})`).all());
  return Math.max(0, before - pragmaOf(db, "freelist_count"));
};
