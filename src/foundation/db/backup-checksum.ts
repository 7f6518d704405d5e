import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { basename, join } from "node:path";
import { createPrivateFile } from "../base/private-file.ts";

/** Stands after the name of a backup in that of its checksum, which `sha256sum -c` checks, too. */
export const CHECKSUM_SUFFIX = ".sha256";

/**
 * Whether a file is what its checksum was computed from. `missing`: there is no checksum, so only SQLite's structure can be
 * checked; `unreadable`: the file with the checksum holds none.
 */
export type ChecksumState = "matches" | "differs" | "missing" | "unreadable";

const CHUNK_BYTES = 1024 * 1024;
/** A checksum and a file name; a larger file is something else. */
const CHECKSUM_BYTES_MAX = 8_192;

/** The SHA-256 of a file, in hexadecimal. Blocks; reads all of it. */
export const sha256OfFile = (file: string): string => {
  const hasher = new Bun.CryptoHasher("sha256");
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  const descriptor = openSync(file, "r");
  try {
    for (let read = readSync(descriptor, chunk); read > 0; read = readSync(descriptor, chunk))
      hasher.update(chunk.subarray(0, read));
  } finally {
    closeSync(descriptor);
  }
  return hasher.digest("hex");
};

export const removeChecksum = (file: string): void => rmSync(file + CHECKSUM_SUFFIX, { force: true });

/**
 * Writes `<file>.sha256` in the format of sha256sum, before the file gets its name: a backup without its checksum cannot be
 * told from one of an older version, and a checksum without its backup harms nothing. One that is left over is replaced.
 */
export const writeChecksum = (file: string, sha256: string): void => {
  const path = file + CHECKSUM_SUFFIX;
  removeChecksum(file);
  createPrivateFile(path);
  const descriptor = openSync(path, "r+");
  try {
    writeSync(descriptor, `${sha256}  ${basename(file)}\n`);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
};

/** Whether there is a checksum beside a file. */
export const hasChecksum = (file: string): boolean => existsSync(file + CHECKSUM_SUFFIX);

/** Removes the checksums of backups that interrupted writers never completed. `isOurs` selects by the name of the backup. */
export const removeAbandonedChecksums = (directory: string, isOurs: (name: string) => boolean): void => {
  const names = new Set(readdirSync(directory));
  for (const name of names) {
    const file = name.slice(0, -CHECKSUM_SUFFIX.length);
    if (name.endsWith(CHECKSUM_SUFFIX) && isOurs(file) && !names.has(file)) removeChecksum(join(directory, file));
  }
};

/** Compares a file with its checksum. Blocks; reads all of the file where there is one. */
export const checkChecksum = (file: string): ChecksumState => {
  const path = file + CHECKSUM_SUFFIX;
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return "missing";
  if (!stat.isFile() || stat.size > CHECKSUM_BYTES_MAX) return "unreadable";
  const expected = /^[\da-f]{64}(?=\s)/i.exec(readFileSync(path, "utf8"))?.[0];
  if (expected === undefined) return "unreadable";
  return sha256OfFile(file) === expected.toLowerCase() ? "matches" : "differs";
};
