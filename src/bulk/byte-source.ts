import { open } from "node:fs/promises";

/** Where a list's bytes come from. Every call starts again at the first byte: a list is read more than once. */
export type ByteSource = () => AsyncIterable<Uint8Array>;

/**
 * What is read and parsed at one go: small enough that even the slowest text (every row of another width) holds the
 * event loop up for some milliseconds only.
 */
export const CHUNK_BYTES = 16 * 1024;

/** Reads a file from its start in pieces of `CHUNK_BYTES`. The file is closed when the reader stops early, too. */
export const fileSource = (path: string): ByteSource =>
  async function* () {
    const file = await open(path, "r");
    try {
      for (;;) {
        const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES);
        if (bytesRead === 0) return;
        yield buffer.subarray(0, bytesRead);
      }
    } finally {
      await file.close();
    }
  };
