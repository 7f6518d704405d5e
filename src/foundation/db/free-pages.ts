import { inSteps } from "../base/in-steps.ts";
import type { Db } from "./open.ts";
import { statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { err, ok, type Result } from "../base/errors.ts";

/** Pages moved and cut off in one transaction: it holds the event loop for a few milliseconds. */
const PAGES_AT_ONCE = 128;
/** `PRAGMA auto_vacuum` of a database whose free pages can be returned in steps. */
export const INCREMENTAL = 2;

const pragmaOf = ({ sqlite }: Pick<Db, "sqlite">, name: string) =>
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
const returnSome = async (db: Pick<Db, "sqlite" | "commit">) => {
  const before = pragmaOf(db, "freelist_count");
  if (before === 0) return 0;
  // `all`: the statement returns a page with each step.
  await db.commit(() => void db.sqlite.query(`PRAGMA incremental_vacuum(${PAGES_AT_ONCE})`).all());
  return Math.max(0, before - pragmaOf(db, "freelist_count"));
};

/** The size of a database file before and after `compactDatabase`, in bytes. */
interface Compacted {
  readonly before: number;
  readonly after: number;
}

/** Too little space on the disk, in bytes. */
interface TooLittleSpace {
  readonly required: number;
  readonly available: number;
}

/** SQLite writes what is in use into a temporary file, and then into the write-ahead log. */
const COPIES = 2;

const checkpoint = ({ sqlite }: Pick<Db, "sqlite">) => void sqlite.query("PRAGMA wal_checkpoint(TRUNCATE)").all();

/**
 * Rewrites the database at `path` without unused space, so that nothing deleted is left in the file, and from then on
 * free pages can be returned in steps (`returnFreePages`). The caller holds the server lock. A crash leaves the database
 * as it was. Throws the errors of SQLite, such as a database that another program is using.
 */
export const compactDatabase = (db: Pick<Db, "sqlite">, path: string): Result<Compacted, TooLittleSpace> => {
  const { sqlite } = db;
  checkpoint(db);
  const before = statSync(path).size;
  const folder = dirname(path);
  const { bavail, bsize } = statfsSync(folder);
  const [required, available] = [COPIES * (before - freeBytesOf(db)), bavail * bsize];
  if (available < required) return err({ required, available });
  // In memory, or on a small /tmp, there is no room for a copy of a large database.
  sqlite.run("PRAGMA temp_store = FILE");
  sqlite.run(`PRAGMA temp_store_directory = '${folder.replaceAll("'", "''")}'`);
  sqlite.run(`PRAGMA auto_vacuum = ${INCREMENTAL}`);
  sqlite.run("VACUUM");
  checkpoint(db);
  return ok({ before, after: statSync(path).size });
};
