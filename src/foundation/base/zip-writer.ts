import { once } from "node:events";
import { Readable } from "node:stream";
import { ZipFile } from "yazl";

/** A file of an archive: its name, and its bytes in pieces. */
export interface ZipEntry {
  readonly name: string;
  readonly pieces: AsyncIterable<Uint8Array>;
}

/** Writes an archive in pieces, with a piece of one entry in memory. `atMs`: the time of its files. */
export async function* writeZip(
  entries: AsyncIterable<ZipEntry>,
  atMs: number,
): AsyncGenerator<Uint8Array<ArrayBufferLike>, void> {
  const zip = new ZipFile();
  // A PassThrough, which its type does not say.
  const out = zip.outputStream as Readable;
  zip.on("error", (error: Error) => out.destroy(error));
  const left = new AbortController();
  const options = { mtime: new Date(atMs), signal: left.signal };
  const added = addAll(zip, entries, options).catch((error: unknown) => out.destroy(error as Error));
  try {
    for await (const piece of out) yield piece as Buffer;
    await added;
  } finally {
    out.destroy();
    left.abort();
  }
}

/** One entry after the other: the next may be there only when this one was read. */
const addAll = async (
  zip: ZipFile,
  entries: AsyncIterable<ZipEntry>,
  { mtime, signal }: { readonly mtime: Date; readonly signal: AbortSignal },
): Promise<void> => {
  for await (const { name, pieces } of entries) {
    const source = Readable.from(pieces, { objectMode: true, highWaterMark: 1, signal });
    const closed = once(source, "close");
    zip.addReadStream(source, name, { mtime, mode: 0o100_644 });
    await closed;
  }
  zip.end();
};
