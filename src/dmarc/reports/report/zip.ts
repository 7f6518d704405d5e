import { type Entry, fromBufferPromise } from "yauzl";
import { err, ok, type Result } from "../../../foundation/base/errors.ts";
import { type Inflated, inflateRaw } from "./inflate.ts";
import type { UnpackProblem } from "./outcome.ts";

/** Entries of a directory, folders included; an archive with more is rejected. */
export const ZIP_DIRECTORY_ENTRIES_MAX = 64;

/** One file of an archive, not yet inflated. */
export interface ZipFile {
  readonly name: string;
  /** Its bytes, at most `bytesMax`; or why they could not be unpacked. */
  open(bytesMax: number): Promise<Result<Inflated, UnpackProblem>>;
}

/** Whether the bytes begin like a zip archive: a file, an empty archive, or the marker of a split one. */
export const isZip = (bytes: Uint8Array): boolean => {
  const [p, k, third, fourth] = bytes;
  if (p !== 0x50 || k !== 0x4b) return false;
  return (third === 3 && fourth === 4) || (third === 5 && fourth === 6) || (third === 7 && fourth === 8);
};

/**
 * Calls `visit` with the files of a zip archive in memory, in the order of its directory, without folders. The visitor opens
 * the files it needs and may stop. Returns null, or what is wrong with the archive as a whole, perhaps after some files.
 *
 * Sizes in the directory are not trusted. Opening an encrypted file, or one with another method than "stored" and "deflated",
 * fails. Never throws.
 */
export const readZip = async (
  bytes: Uint8Array,
  visit: (file: ZipFile) => Promise<"go_on" | "stop">,
): Promise<UnpackProblem | null> => {
  const archive = withoutTail(bytes);
  if (archive === null) return "zip_damaged";
  try {
    // Names are never used as paths, so they need not be safe; undecoded names are not validated.
    const zip = await fromBufferPromise(archive, { decodeStrings: false, validateEntrySizes: false });
    if (zip.entryCount > ZIP_DIRECTORY_ENTRIES_MAX) return "too_many_entries";
    for await (const entry of zip.eachEntry()) {
      const name = nameOf(entry);
      if (name.endsWith("/")) continue;
      const { fileDataStart } = await zip.readLocalFileHeaderPromise(entry, { minimal: true });
      const data = archive.subarray(fileDataStart, fileDataStart + entry.compressedSize);
      if ((await visit({ name, open: (bytesMax) => openFile(entry, data, bytesMax) })) === "stop") return null;
    }
  } catch (error) {
    // The library throws plain errors for damaged archives; anything else is a bug.
    if (!(error instanceof Error) || error instanceof TypeError) throw error;
    return "zip_damaged";
  }
  return null;
};

const METHOD = { stored: 0, deflated: 8 } as const;

const openFile = async (entry: Entry, data: Uint8Array, bytesMax: number): Promise<Result<Inflated, UnpackProblem>> => {
  if (entry.isEncrypted()) return err("zip_encrypted");
  if (entry.compressionMethod === METHOD.stored) {
    if (data.byteLength > bytesMax) return err("entry_too_large");
    const isTruncated = data.byteLength < entry.compressedSize;
    return ok({ bytes: data, isTruncated, consumedBytes: data.byteLength });
  }
  if (entry.compressionMethod !== METHOD.deflated) return err("zip_method_unsupported");
  const inflated = await inflateRaw(data, bytesMax);
  if (inflated.ok) return inflated;
  return err(inflated.error === "too_large" ? "entry_too_large" : "zip_damaged");
};

/** Names are undecoded, in spite of the type declarations; report names are ASCII, and others are only displayed. */
const nameOf = ({ fileNameRaw }: Entry): string => new TextDecoder().decode(fileNameRaw).slice(0, 255);

const END_RECORD_BYTES = 22;
const COMMENT_BYTES_MAX = 0xffff;

/**
 * The archive up to the end of its end-of-directory record: the library rejects trailing bytes, but in mail a line end or a
 * signature may follow. Null when there is no such record.
 */
const withoutTail = (bytes: Uint8Array): Buffer | null => {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const at = buffer.lastIndexOf("PK\u0005\u0006");
  if (at === -1 || at + END_RECORD_BYTES > buffer.byteLength) return null;
  if (buffer.byteLength - at > END_RECORD_BYTES + 2 * COMMENT_BYTES_MAX) return null;
  const end = at + END_RECORD_BYTES + buffer.readUInt16LE(at + END_RECORD_BYTES - 2);
  if (end <= buffer.byteLength) return buffer.subarray(0, end);
  // The comment is truncated: the archive is complete without it.
  const mended = Buffer.from(buffer.subarray(0, at + END_RECORD_BYTES));
  mended.writeUInt16LE(0, at + END_RECORD_BYTES - 2);
  return mended;
};
