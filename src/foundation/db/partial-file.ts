import { errorCode } from "../base/errors.ts";
import {
  closeSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  existsSync,
  readFileSync,
  readSync,
  statSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { createPrivateFile } from "../base/private-file.ts";

/** What SQLite writes beside a file that it fills, or that is used and removed. */
const COMPANIONS = ["-journal", "-wal", "-shm"];
const PARTIAL = /^(?<file>.+)\.(?<pid>\d+)\.partial(?:-journal|-wal|-shm)?$/;

/** The name of a file until it is complete. The process ID tells others whether its writer is still alive. */
export const partialNameOf = (file: string): string => `${file}.${process.pid}.partial`;

const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) === "EPERM";
  }
};

/** Removes a partial file of this process. */
export const removePartial = (file: string): void => {
  for (const suffix of ["", ...COMPANIONS]) rmSync(partialNameOf(file) + suffix, { force: true });
};

/**
 * Removes what interrupted writers left in a directory: partial files whose process has ended, or is this one, which has to
 * write none of them at the time. `isOurs` selects by the name of the complete file.
 */
export const removeAbandonedPartials = (directory: string, isOurs: (name: string) => boolean): void => {
  for (const name of readdirSync(directory)) {
    const { file = "", pid = "" } = PARTIAL.exec(name)?.groups ?? {};
    if (file === "" || !isOurs(file)) continue;
    if (Number(pid) === process.pid || !isAlive(Number(pid))) rmSync(join(directory, name), { force: true });
  }
};

/** Removes what interrupted writers of one file left beside it. */
export const removeAbandonedPartialsOf = (file: string): void =>
  removeAbandonedPartials(dirname(file), (name) => name === basename(file));

/** Whether there is anything under a name, a dangling symbolic link included. */
export const nameIsTaken = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

/** What file systems without hard links (FAT, some network file systems) and without synced directories reply. */
const NOT_SUPPORTED: ReadonlySet<unknown> = new Set(["EPERM", "ENOSYS", "ENOTSUP", "EOPNOTSUPP", "EINVAL"]);

/** Makes a file, or the names in a directory, survive a power failure. */
export const syncFile = (path: string): void => {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
};

/** Makes the names in the directory of `path` survive a power failure, where the file system can. */
export const syncNames = (path: string): void => {
  try {
    syncFile(dirname(path));
  } catch (error) {
    if (!NOT_SUPPORTED.has(errorCode(error))) throw error;
  }
};

/** Gives a complete file its name. Returns false if there is a file of this name already; it is never overwritten. */
export const publishPartial = (partial: string, file: string): boolean => {
  try {
    // A link, unlike a rename, fails if somebody has created the file meanwhile.
    linkSync(partial, file);
  } catch (error) {
    if (errorCode(error) === "EEXIST") return false;
    if (!NOT_SUPPORTED.has(errorCode(error))) throw error;
    if (nameIsTaken(file)) return false;
    renameSync(partial, file);
  }
  syncNames(file);
  return true;
};

/** Stands after the name of a backup in that of its checksum, which `sha256sum -c` checks, too. */
export const CHECKSUM_SUFFIX = ".sha256";

/**
 * Whether a file is what its checksum was computed from. `missing`: there is no checksum, so only SQLite's structure can be
 * checked; `unreadable`: the file with the checksum holds none.
 */
type ChecksumState = "matches" | "differs" | "missing" | "unreadable";

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

/** Gives a complete file its name, with its checksum beside it. False if there is a file of this name already. */
export const publishChecked = (partial: string, file: string): boolean => {
  writeChecksum(file, sha256OfFile(partial));
  const isPublished = publishPartial(partial, file);
  if (!isPublished) removeChecksum(file);
  return isPublished;
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
