import { fromBufferPromise } from "yauzl";

/** The files of a ZIP archive as texts, by their names. Throws for an archive that is damaged. */
export const unzipped = async (bytes: Buffer): Promise<ReadonlyMap<string, string>> => {
  const archive = await fromBufferPromise(bytes);
  const files = new Map<string, string>();
  for await (const entry of archive.eachEntry()) {
    const pieces: Buffer[] = [];
    for await (const piece of await archive.openReadStreamPromise(entry)) pieces.push(Buffer.from(piece));
    files.set(entry.fileName, Buffer.concat(pieces).toString());
  }
  return files;
};
