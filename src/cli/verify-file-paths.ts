import { accessSync, constants, existsSync, type Stats, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { CommandFailed, UsageError } from "./io.ts";

/** What was said on the command line about the files. */
export interface PathOptions {
  readonly file?: string;
  readonly out?: string;
  readonly force?: boolean;
  /** How `out` is called where it is not the path that was given. */
  readonly outName?: string;
}

export interface Paths {
  readonly list: string;
  readonly out: string;
  /** The database in which the work stands until it is done. */
  readonly state: string;
}

const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : String(error);

/** What stands at a path, links followed; null when nothing does. */
const look = (path: string, shown: string): Stats | null => {
  try {
    return statSync(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw new CommandFailed(`${shown} cannot be used (${codeOf(error)}).`, "file");
  }
};

const isAllowed = (path: string, mode: number): boolean => {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    // Why not is of no use: the sentence says what is not allowed.
    return false;
  }
};

/** What is known of a list; throws a CommandFailed when it cannot be read. */
export const checkList = (path: string, shown: string): Stats => {
  const found = look(path, shown);
  if (found === null) throw new CommandFailed(`${shown} is not there.`, "file");
  if (found.isDirectory()) throw new CommandFailed(`${shown} is a directory; --file is a list.`, "file");
  if (!found.isFile())
    throw new CommandFailed(`${shown} is not a regular file. A list is read more than once: save it first.`, "file");
  if (!isAllowed(path, constants.R_OK)) throw new CommandFailed(`${shown} may not be read.`, "file");
  return found;
};

const checkFolder = (folder: string): void => {
  const found = look(folder, folder);
  if (found === null) throw new CommandFailed(`The directory ${folder} of --out is not there.`, "out");
  if (!found.isDirectory()) throw new CommandFailed(`${folder} is no directory; --out cannot go there.`, "out");
  if (!isAllowed(folder, constants.W_OK | constants.X_OK))
    throw new CommandFailed(`The directory ${folder} of --out may not be written to.`, "out");
};

/**
 * Where the list is read and its results go, after everything that can be known to be wrong with that before the work
 * begins. A file that stands at `out` is replaced with `force` only, or where an interrupted run goes on. Throws a
 * UsageError or a CommandFailed.
 */
export const checkPaths = ({ file, out, force }: PathOptions): Paths => {
  if (file === undefined || out === undefined) throw new UsageError("--file and --out go together.");
  if (file === "" || out === "") throw new UsageError("--file and --out need a path.");
  const paths = { list: resolve(file), out: resolve(out), state: `${resolve(out)}.postwarden` };
  if (paths.list === paths.out) throw new UsageError("--out must be another file than --file.");
  const list = checkList(paths.list, file);
  const there = look(paths.out, out);
  if (there?.isDirectory() || out.endsWith("/"))
    throw new CommandFailed(`${out} is a directory; --out is a file.`, "out");
  if (there !== null && there.dev === list.dev && there.ino === list.ino)
    throw new UsageError("--out must be another file than --file.");
  if (there !== null && !there.isFile()) throw new CommandFailed(`${out} is not a regular file.`, "out");
  checkFolder(dirname(paths.out));
  if (there !== null && force !== true && !existsSync(paths.state))
    throw new CommandFailed(`${out} exists; give another --out or --force.`, "exists");
  return paths;
};
