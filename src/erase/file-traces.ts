import { type Dirent, read } from "node:fs";
import { type FileHandle, open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const CHUNK_BYTES = 4 * 1024 * 1024;
const readAsync = promisify(read);
/** Folders below a data directory. */
const DEPTH_MAX = 4;

/** A file can disappear while the directory is read. */
const ignoreMissing = (error: unknown): void => {
  if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
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

/** A database that this process has open: its path, and a descriptor of its file. */
interface OpenDatabase {
  readonly path: string;
  readonly descriptor: number;
}

/**
 * The files below a folder whose bytes contain a text, in any case of its ASCII letters. Of `database`, neither the file nor
 * its `-shm`, which holds page numbers only, is opened: closing them would end the locks of SQLite in this process.
 */
export const filesWith = async (folder: string, text: string, database: OpenDatabase): Promise<string[]> => {
  const needle = latin1Lower(Buffer.from(text));
  const found: string[] = [];
  for await (const path of filesIn(folder)) {
    if (path === `${database.path}-shm`) continue;
    const isOwn = path === database.path;
    if (await (isOwn ? containsIn(database.descriptor, needle) : contains(path, needle))) found.push(path);
  }
  return found.toSorted();
};
