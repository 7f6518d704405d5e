import { createReadStream, type Dirent } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";

const CHUNK_BYTES = 4 * 1024 * 1024;
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

const contains = async (path: string, needle: string): Promise<boolean> => {
  let rest = "";
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES })) {
      const text = rest + latin1Lower(chunk);
      if (text.includes(needle)) return true;
      rest = text.slice(-needle.length);
    }
  } catch (error) {
    ignoreMissing(error);
  }
  return false;
};

/** The files below a folder whose bytes contain a text, in any case of its ASCII letters. */
export const filesWith = async (folder: string, text: string): Promise<string[]> => {
  const needle = latin1Lower(Buffer.from(text));
  const found: string[] = [];
  for await (const path of filesIn(folder)) if (await contains(path, needle)) found.push(path);
  return found.toSorted();
};
