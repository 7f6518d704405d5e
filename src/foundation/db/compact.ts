import { statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { err, ok, type Result } from "../base/errors.ts";
import { freeBytesOf, INCREMENTAL } from "./free-pages.ts";
import type { Db } from "./open.ts";

/** The size of a database file before and after `compactDatabase`, in bytes. */
export interface Compacted {
  readonly before: number;
  readonly after: number;
}

/** Too little space on the disk, in bytes. */
export interface TooLittleSpace {
  readonly required: number;
  readonly available: number;
}

/** SQLite writes what is in use into a temporary file, and then into the write-ahead log. */
const COPIES = 2;

const checkpoint = ({ sqlite }: Pick<Db, "sqlite">): void => void sqlite.query("PRAGMA wal_checkpoint(TRUNCATE)").all();

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
