import { errorCode } from "./errors.ts";
import { chmodSync, chownSync, closeSync, fchownSync, openSync, statSync, readFileSync } from "node:fs";
import { dirname } from "node:path";

/** Permissions of everybody but the owner. */
export const OTHERS_PERMISSIONS = 0o077;

/** Creates an empty file for its owner only (0600). Throws EEXIST where there is a file or a link, which is not followed. */
export const createExclusively = (path: string): void => closeSync(openSync(path, "wx", 0o600));

/**
 * Creates an empty file for its owner only (0600), whatever the umask. A file that root creates belongs to the owner of
 * its directory, so that the service can use it. Throws EEXIST where there is a file or a link.
 */
export const createPrivateFile = (path: string): void => {
  const file = openSync(path, "wx", 0o600);
  try {
    const { uid, gid } = statSync(dirname(path));
    if (process.geteuid?.() === 0) fchownSync(file, uid, gid);
  } finally {
    closeSync(file);
  }
};

/**
 * Removes the permissions of group and others from a file or directory. Returns whether it is private then: false where it
 * belongs to another user, or the file system cannot be changed. A missing file is private.
 */
export const makePrivate = (path: string): boolean => {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined || (found.mode & OTHERS_PERMISSIONS) === 0) return true;
  try {
    chmodSync(path, found.mode & 0o7777 & ~OTHERS_PERMISSIONS);
    return true;
  } catch (error) {
    if (["EPERM", "EACCES", "EROFS"].includes(errorCode(error))) return false;
    throw error;
  }
};

/** Gives a file to the owner of another one, if this process may: a file that root creates must be usable by the service. */
export const giveToOwnerOf = (reference: string, path: string): void => {
  const { uid, gid } = statSync(reference);
  if (process.geteuid?.() === 0) chownSync(path, uid, gid);
};

const PASSWD_PATH = "/etc/passwd";

/** The name of a user of this machine; `user ID 1234` for one without a name here, as in a container or a directory service. */
export const userNameOf = (id: number, passwd = readPasswd()): string => {
  const line = passwd.split("\n").find((one) => one.split(":")[2] === String(id));
  const name = line?.split(":")[0] ?? "";
  return name === "" ? `user ID ${id}` : name;
};

const readPasswd = () => {
  try {
    return readFileSync(PASSWD_PATH, "utf8");
  } catch {
    return "";
  }
};

/** Numeric id of the user of this process; 0 is root. */
export const ownUserId = (): number => process.geteuid?.() ?? 0;
