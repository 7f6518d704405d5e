import { open } from "node:fs/promises";

/** The bytes of a list. Every call starts at the first byte, because a list is read more than once. */
export type ByteSource = () => AsyncIterable<Uint8Array>;

/** Bytes read and parsed at once: even the slowest text blocks the event loop only for a few milliseconds. */
export const CHUNK_BYTES = 16 * 1024;

/** Reads a file in chunks of `CHUNK_BYTES`. It is closed also when the reader stops early. */
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
