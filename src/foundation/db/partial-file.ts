import { closeSync, fsyncSync, linkSync, lstatSync, openSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileErrorCode } from "../base/private-file.ts";

/** SQLite writes a journal beside the file that it fills. */
const PARTIAL = /^(?<file>.+)\.(?<pid>\d+)\.partial(-journal)?$/;

/** The name of a file until it is complete. The process ID tells others whether its writer is still alive. */
export const partialNameOf = (file: string): string => `${file}.${process.pid}.partial`;

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return fileErrorCode(error) === "EPERM";
  }
};

/** Removes a partial file of this process. */
export const removePartial = (file: string): void => {
  for (const suffix of ["", "-journal"]) rmSync(partialNameOf(file) + suffix, { force: true });
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
    if (!NOT_SUPPORTED.has(fileErrorCode(error))) throw error;
  }
};

/** Gives a complete file its name. Returns false if there is a file of this name already; it is never overwritten. */
export const publishPartial = (partial: string, file: string): boolean => {
  try {
    // A link, unlike a rename, fails if somebody has created the file meanwhile.
    linkSync(partial, file);
  } catch (error) {
    if (fileErrorCode(error) === "EEXIST") return false;
    if (!NOT_SUPPORTED.has(fileErrorCode(error))) throw error;
    if (nameIsTaken(file)) return false;
    renameSync(partial, file);
  }
  syncNames(file);
  return true;
};
