import { expect, test } from "bun:test";
import { unzipped } from "../../testing/zip.ts";
import { writeZip, type ZipEntry } from "./zip-writer.ts";

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

test("a source that fails fails the archive, and the sources after it are not read", async () => {
  const begun: string[] = [];
  async function* failing(name: string): AsyncGenerator<Uint8Array, void> {
    begun.push(name);
    yield Buffer.from("begin");
    throw new Error(`${name} broke`);
  }
  async function* given(): AsyncGenerator<ZipEntry, void> {
    yield { name: "a", pieces: failing("a") };
    yield { name: "b", pieces: failing("b") };
  }
  await expect(archive(given())).rejects.toThrow("a broke");
  expect(begun).toEqual(["a"]);
});

test("a reader that leaves ends the sources", async () => {
  const ended = Promise.withResolvers<string>();
  async function* endless(): AsyncGenerator<Uint8Array, void> {
    try {
      for (;;) yield crypto.getRandomValues(new Uint8Array(10_000));
    } finally {
      ended.resolve("ended");
    }
  }
  async function* given(): AsyncGenerator<ZipEntry, void> {
    yield { name: "endless", pieces: endless() };
  }
  for await (const piece of writeZip(given(), 0)) if (piece.length > 0) break;
  expect(await ended.promise).toBe("ended");
});
