import { closeSync, fsyncSync, lstatSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { giveToOwnerOf } from "../base/private-file.ts";
import type { Migrated } from "./migrate-file.ts";
import { MIGRATIONS } from "./migrations.ts";
import image from "./new-database.gz" with { type: "file" };
import { partialNameOf, publishPartial, removePartial } from "./partial-file.ts";

/** The bytes of a database as all migrations make it, without rows. Written by `npm run migrations`. */
export const newDatabase = (): Uint8Array => Bun.gunzipSync(readFileSync(image));

/** The read and write version in the header: 2 is a file with a write-ahead log (SQLite file format §1.3.3), which only a file can have. */
const withLog = (bytes: Uint8Array): Uint8Array => {
  bytes.fill(2, 18, 20);
  return bytes;
};

/** What opening a new database migrated. */
export const NEWLY_MIGRATED: Migrated = {
  before: 0,
  after: MIGRATIONS.length,
  applied: MIGRATIONS.map(({ name }) => name),
  copy: null,
};

/**
 * Creates the file of a database, for the owner of its directory only, and returns whether it did: false where there is one. The
 * file appears complete and is durable then. Throws the errors of the file system.
 */
export const createDatabaseFile = (path: string): boolean => {
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return false;
  const partial = partialNameOf(path);
  removePartial(path);
  try {
    const file = openSync(partial, "wx", 0o600);
    try {
      writeFileSync(file, withLog(newDatabase()));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    giveToOwnerOf(dirname(path), partial);
    return publishPartial(partial, path);
  } finally {
    removePartial(path);
  }
};
