import { statSync } from "node:fs";
import { createPrivateFile, makePrivate } from "../base/private-file.ts";

/** What SQLite keeps beside a database takes over its permissions where it is created, and keeps its own where it is there. */
const SUFFIXES = ["", "-wal", "-shm", "-journal"];

/**
 * To be called before a database is opened: creates its file for its owner only, and takes away what others may do with a
 * file that is there already. Keys, webhook secrets and addresses are in it. Throws what the file system throws.
 */
export const keepDatabasePrivate = (path: string): void => {
  if (path === ":memory:") return;
  if (statSync(path, { throwIfNoEntry: false }) === undefined) createPrivateFile(path);
  for (const suffix of SUFFIXES) makePrivate(path + suffix);
};
