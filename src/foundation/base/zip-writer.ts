import { Readable } from "node:stream";
import { crc32, createDeflateRaw } from "node:zlib";

/** A file of an archive, of less than 4 GiB: its name in ASCII, and its bytes in pieces. */
export interface ZipEntry {
  readonly name: string;
  readonly pieces: AsyncIterable<Uint8Array>;
}

interface WrittenEntry {
  readonly name: Buffer;
  readonly offset: number;
  readonly crc: number;
  readonly packedBytes: number;
  readonly bytes: number;
}

/** APPNOTE 4.4.4: sizes follow the data (bit 3), names are UTF-8 (bit 11). */
const FLAGS = 0x0808;
const DEFLATE = 8;
/** APPNOTE 4.4.3.2: version 4.5 has ZIP64. */
const VERSION = 45;
const MAX_16 = 0xff_ff;
const MAX_32 = 0xff_ff_ff_ff;
const ZIP64_EXTRA = 1;

/** Fields of 2, 4 or 8 bytes, little-endian. */
const fields = (...values: ReadonlyArray<readonly [bytes: 2 | 4 | 8, value: number]>): Buffer => {
  const buffer = Buffer.alloc(values.reduce((sum, [bytes]) => sum + bytes, 0));
  let at = 0;
  for (const [bytes, value] of values) {
    if (bytes === 8) buffer.writeBigUInt64LE(BigInt(value), at);
    else buffer.writeUIntLE(value, at, bytes);
    at += bytes;
  }
  return buffer;
};

/** APPNOTE 4.4.6: date and time of MS-DOS, in steps of two seconds, here in UTC. */
const dosTime = (atMs: number): readonly [time: number, date: number] => {
  const at = new Date(atMs);
  const time = (at.getUTCHours() << 11) | (at.getUTCMinutes() << 5) | (at.getUTCSeconds() >> 1);
  return [time, ((at.getUTCFullYear() - 1980) << 9) | ((at.getUTCMonth() + 1) << 5) | at.getUTCDate()];
};

/** APPNOTE 4.3.12: an entry of the directory at the end. */
export const directoryEntry = (entry: WrittenEntry, [time, date]: readonly [number, number]): Buffer => {
  const { name, offset, crc, packedBytes, bytes } = entry;
  const extra = offset < MAX_32 ? Buffer.alloc(0) : fields([2, ZIP64_EXTRA], [2, 8], [8, offset]);
  return Buffer.concat([
    fields([4, 0x0201_4b50], [2, VERSION], [2, VERSION], [2, FLAGS], [2, DEFLATE], [2, time], [2, date], [4, crc]),
    fields([4, packedBytes], [4, bytes], [2, name.length], [2, extra.length], [2, 0], [2, 0], [2, 0], [4, 0]),
    fields([4, Math.min(offset, MAX_32)]),
    ...[name, extra],
  ]);
};

/** APPNOTE 4.3.14 to 4.3.16: the end of the archive, which begins with its ZIP64 form where a number is too large. */
export const archiveEnd = (
  count: number,
  { bytes, offset }: { readonly bytes: number; readonly offset: number },
): Buffer => {
  const end = offset + bytes;
  const isLarge = count >= MAX_16 || end >= MAX_32;
  const zip64 = isLarge
    ? [
        fields([4, 0x0606_4b50], [8, 44], [2, VERSION], [2, VERSION], [4, 0], [4, 0], [8, count], [8, count]),
        fields([8, bytes], [8, offset], [4, 0x0706_4b50], [4, 0], [8, end], [4, 1]),
      ]
    : [];
  const [shownCount, shownBytes] = [Math.min(count, MAX_16), Math.min(bytes, MAX_32)];
  return Buffer.concat([
    ...zip64,
    fields([4, 0x0605_4b50], [2, 0], [2, 0], [2, shownCount], [2, shownCount], [4, shownBytes]),
    fields([4, Math.min(offset, MAX_32)], [2, 0]),
  ]);
};

/** Writes an archive (ZIP, APPNOTE 6.3) in pieces, with a piece of each entry in memory. `atMs`: the time of its files. */
export async function* writeZip(
  entries: AsyncIterable<ZipEntry>,
  atMs: number,
): AsyncGenerator<Uint8Array<ArrayBufferLike>, void> {
  const stamp = dosTime(atMs);
  const written: WrittenEntry[] = [];
  let offset = 0;
  for await (const { name: text, pieces } of entries) {
    const name = Buffer.from(text);
    const begin = offset;
    const sum = { crc: 0, bytes: 0, packedBytes: 0 };
    const head = Buffer.concat([
      fields([4, 0x0403_4b50], [2, VERSION], [2, FLAGS], [2, DEFLATE], [2, stamp[0]], [2, stamp[1]], [4, 0], [4, 0]),
      fields([4, 0], [2, name.length], [2, 0]),
      name,
    ]);
    yield head;
    for await (const piece of deflated(pieces, sum)) {
      sum.packedBytes += piece.length;
      yield piece;
    }
    const tail = fields([4, 0x0807_4b50], [4, sum.crc], [4, sum.packedBytes], [4, sum.bytes]);
    yield tail;
    offset += head.length + sum.packedBytes + tail.length;
    written.push({ name, offset: begin, ...sum });
  }
  const directory = written.map((entry) => directoryEntry(entry, stamp));
  const bytes = directory.reduce((total, { length }) => total + length, 0);
  yield* directory;
  yield archiveEnd(written.length, { bytes, offset });
}

/** The pieces compressed; `sum` gets the checksum and size of what was read. */
async function* deflated(
  pieces: AsyncIterable<Uint8Array>,
  sum: { crc: number; bytes: number },
): AsyncGenerator<Buffer, void> {
  const counted = async function* (): AsyncGenerator<Uint8Array, void> {
    for await (const piece of pieces) {
      sum.crc = crc32(piece, sum.crc);
      sum.bytes += piece.length;
      yield piece;
    }
  };
  const source = Readable.from(counted(), { objectMode: true, highWaterMark: 1 });
  const packed = createDeflateRaw();
  source.on("error", (error) => packed.destroy(error));
  source.pipe(packed);
  try {
    for await (const piece of packed) yield piece as Buffer;
  } finally {
    source.destroy();
  }
}
