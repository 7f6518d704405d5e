import { errorCode } from "../foundation/base/errors.ts";
import { accessSync, constants, existsSync, type Stats, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { CommandFailed, describeFileError, UsageError } from "./io.ts";

/** The options of the command line about files. */
export interface PathOptions {
  readonly file?: string | undefined;
  readonly out?: string | undefined;
  readonly force?: boolean;
  /** How `out` is shown when it is not the given path. */
  readonly outName?: string;
}

export interface Paths {
  readonly list: string;
  readonly out: string;
  /** The database of the job until it is finished. */
  readonly state: string;
}

const codeOf = (error: unknown) => errorCode(error) || String(error);

/** The file at a path, links followed; null when there is none. */
const look = (path: string, shown: string): Stats | null => {
  try {
    return statSync(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw new CommandFailed(describeFileError(shown, error), "file");
  }
};

const isAllowed = (path: string, mode: number): boolean => {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    // The caller says what is not allowed.
    return false;
  }
};

/** The file of a list; throws a CommandFailed when it cannot be read. */
export const checkList = (path: string, shown: string): Stats => {
  const found = look(path, shown);
  if (found === null) throw new CommandFailed(`${shown}: no such file`, "file");
  if (found.isDirectory()) throw new CommandFailed(`${shown}: is a directory; --file must be a list`, "file");
  if (!found.isFile())
    throw new CommandFailed(
      `${shown}: not a regular file; save the list to a file first, because it is read more than once`,
      "file",
    );
  if (!isAllowed(path, constants.R_OK)) throw new CommandFailed(`${shown}: permission denied`, "file");
  return found;
};

const checkFolder = (folder: string): void => {
  const found = look(folder, folder);
  if (found === null) throw new CommandFailed(`${folder}: no such directory; create it, or give another --out`, "out");
  if (!found.isDirectory()) throw new CommandFailed(`${folder}: not a directory; give another --out`, "out");
  if (!isAllowed(folder, constants.W_OK | constants.X_OK))
    throw new CommandFailed(`${folder}: permission denied; give another --out`, "out");
};

/**
 * The paths of the list, the results and the state, checked before the work begins. An existing file at `out` is replaced
 * only with `force` or when an interrupted run is resumed. Throws a UsageError or a CommandFailed.
 */
export const checkPaths = ({ file, out, force }: PathOptions): Paths => {
  if (file === undefined || out === undefined) throw new UsageError("--file needs --out, and --out needs --file.");
  if (file === "" || out === "") throw new UsageError("--file and --out need a path.");
  const paths = { list: resolve(file), out: resolve(out), state: `${resolve(out)}.postwarden` };
  if (paths.list === paths.out) throw new UsageError("--out must not be the same file as --file.");
  const list = checkList(paths.list, file);
  const there = look(paths.out, out);
  if (there?.isDirectory() || out.endsWith("/"))
    throw new CommandFailed(`${out}: is a directory; --out must be a file`, "out");
  if (there !== null && there.dev === list.dev && there.ino === list.ino)
    throw new UsageError("--out must not be the same file as --file.");
  if (there !== null && !there.isFile()) throw new CommandFailed(`${out}: not a regular file`, "out");
  checkFolder(dirname(paths.out));
  if (there !== null && force !== true && !existsSync(paths.state))
    throw new CommandFailed(`${out} exists. Give another --out, or replace it with --force.`, "exists");
  return paths;
};
