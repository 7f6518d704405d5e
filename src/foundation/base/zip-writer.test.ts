import { expect, test } from "bun:test";
import { unzipped } from "../../testing/zip.ts";
import { archiveEnd, directoryEntry, writeZip, type ZipEntry } from "./zip-writer.ts";

async function* entries(files: Readonly<Record<string, readonly string[]>>): AsyncGenerator<ZipEntry, void> {
  async function* pieces(texts: readonly string[]): AsyncGenerator<Uint8Array, void> {
    for (const text of texts) yield Buffer.from(text);
  }
  for (const [name, texts] of Object.entries(files)) yield { name, pieces: pieces(texts) };
}

const archive = async (given: AsyncIterable<ZipEntry>): Promise<Buffer> => {
  const pieces: Uint8Array[] = [];
  for await (const piece of writeZip(given, Date.UTC(2026, 10, 27, 22, 1, 3))) pieces.push(piece);
  return Buffer.concat(pieces);
};

test("an archive has its files, in pieces, empty and long ones", async () => {
  const files = {
    "a.txt": ["one ", "two"],
    "empty.json": [],
    "long.json": Array.from({ length: 50 }, () => "x".repeat(10_000)),
  };
  const read = await unzipped(await archive(entries(files)));
  expect([...read]).toEqual(Object.entries(files).map(([name, texts]) => [name, texts.join("")]));
});

test("the files have the time that was given, to two seconds", async () => {
  const bytes = await archive(entries({ "a.txt": ["text"] }));
  const [time, date] = [bytes.readUInt16LE(10), bytes.readUInt16LE(12)];
  expect([time >> 11, (time >> 5) & 63, (time & 31) * 2]).toEqual([22, 1, 2]);
  expect([(date >> 9) + 1980, (date >> 5) & 15, date & 31]).toEqual([2026, 11, 27]);
});

test("a file behind 4 GiB has its position in the extra field of ZIP64 (APPNOTE 4.5.3)", () => {
  const far = { name: Buffer.from("a"), offset: 5 * 2 ** 30, crc: 1, packedBytes: 2, bytes: 3 };
  const entry = directoryEntry(far, [0, 0]);
  expect([entry.readUInt16LE(30), entry.readUInt32LE(42), entry.subarray(46, 47).toString()]).toEqual([
    ...[12, 0xff_ff_ff_ff, "a"],
  ]);
  expect([entry.readUInt16LE(47), entry.readUInt16LE(49), entry.readBigUInt64LE(51)]).toEqual([1, 8, 5n * 2n ** 30n]);
  expect(directoryEntry({ ...far, offset: 7 }, [0, 0]).length).toBe(47);
});

test.each([
  ["of more than 65,535 files", 65_540, { bytes: 100, offset: 200 }],
  ["of more than 4 GiB", 3, { bytes: 100, offset: 5 * 2 ** 30 }],
])("an archive %s ends with the records of ZIP64 (APPNOTE 4.3.14, 4.3.15)", (_, count, directory) => {
  const end = archiveEnd(count, directory);
  expect([end.readUInt32LE(0), end.readUInt32LE(56), end.readUInt32LE(76)]).toEqual([
    ...[0x0606_4b50, 0x0706_4b50, 0x0605_4b50],
  ]);
  expect([end.readBigUInt64LE(4), end.readBigUInt64LE(32)]).toEqual([44n, BigInt(count)]);
  expect([end.readBigUInt64LE(40), end.readBigUInt64LE(48)]).toEqual([100n, BigInt(directory.offset)]);
  expect(end.readBigUInt64LE(64)).toBe(BigInt(directory.offset + 100));
  expect(end.length).toBe(98);
});
