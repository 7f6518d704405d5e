import { errorCode } from "../../foundation/base/errors.ts";
import { type Dirent, fstatSync, read, realpathSync, type Stats, statSync } from "node:fs";
import { type FileHandle, open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const CHUNK_BYTES = 4 * 1024 * 1024;
const readAsync = promisify(read);
/** Folders below a data directory. */
const DEPTH_MAX = 4;

/** A file can disappear while the directory is read. */
const ignoreMissing = (error: unknown): void => {
  if (errorCode(error) !== "ENOENT") throw error;
};

async function* filesIn(folder: string, depth = 0): AsyncGenerator<string, void> {
  const entries: Dirent[] = (await readdir(folder, { withFileTypes: true }).catch(ignoreMissing)) ?? [];
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isFile()) yield path;
    else if (entry.isDirectory() && depth < DEPTH_MAX) yield* filesIn(path, depth + 1);
  }
}

const latin1Lower = (bytes: Buffer): string => bytes.toString("latin1").toLowerCase();

const containsIn = async (descriptor: number, needle: string): Promise<boolean> => {
  const block = Buffer.alloc(CHUNK_BYTES);
  let rest = "";
  for (let at = 0; ;) {
    const { bytesRead } = await readAsync(descriptor, block, 0, block.length, at);
    if (bytesRead === 0) return false;
    const text = rest + latin1Lower(block.subarray(0, bytesRead));
    if (text.includes(needle)) return true;
    rest = text.slice(-needle.length);
    at += bytesRead;
  }
};

const contains = async (path: string, needle: string): Promise<boolean> => {
  let file: FileHandle | null = null;
  try {
    file = await open(path, "r");
    return await containsIn(file.fd, needle);
  } catch (error) {
    ignoreMissing(error);
    return false;
  } finally {
    await file?.close();
  }
};

/** Tells a file from others, whatever its name. */
const identityOf = ({ dev, ino }: Pick<Stats, "dev" | "ino">): string => `${dev}:${ino}`;

const identityAt = (path: string): string | null => {
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? null : identityOf(found);
};

/** A database that this process has open: its path, and a descriptor of its file. */
interface OpenDatabase {
  readonly path: string;
  readonly descriptor: number;
}

/** Files with a text: whether the database itself or its write-ahead log is one, and the paths of others. */
export interface FoundIn {
  readonly isInDatabase: boolean;
  readonly others: readonly string[];
}

/**
 * The database, and the files below folders, whose bytes contain a text, in any case of its ASCII letters. Of `database`,
 * neither the file nor its `-shm`, which holds page numbers only, is opened under any name: closing them would end the locks
 * of SQLite in this process.
 */
export const filesWith = async (folders: readonly string[], text: string, database: OpenDatabase): Promise<FoundIn> => {
  const needle = latin1Lower(Buffer.from(text));
  const path = realpathSync(database.path);
  const [log, index] = [`${path}-wal`, `${path}-shm`];
  const own = new Set([identityOf(fstatSync(database.descriptor)), identityAt(log), identityAt(index), null]);
  const others = new Set<string>();
  for (const folder of folders)
    for await (const file of filesIn(folder))
      if (!own.has(identityAt(file)) && (await contains(file, needle))) others.add(file);
  const isInDatabase = (await containsIn(database.descriptor, needle)) || (await contains(log, needle));
  return { isInDatabase, others: [...others].toSorted() };
};
