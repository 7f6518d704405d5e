import { deflateRawSync, inflateRawSync, zstdDecompressSync } from "node:zlib";
import dictionary1 from "../../fixtures/evidence-dictionary-1.txt" with { type: "text" };
import dictionary2 from "../../fixtures/evidence-dictionary-2.txt" with { type: "text" };
import { type Evidence, evidenceSchema } from "./evidence.ts";

/** Typical evidence. It must not change: what was compressed with it could not be read any more. */
const DICTIONARIES = { zstd: Buffer.from(dictionary1), deflate: Buffer.from(dictionary2) };

/** How evidence is read, by the number that precedes it. One that was ever written stays; a better one gets the next number. */
const READERS: ReadonlyMap<number, (packed: Uint8Array) => Buffer> = new Map([
  [1, (packed: Uint8Array): Buffer => zstdDecompressSync(packed, { dictionary: DICTIONARIES.zstd })],
  [2, (packed: Uint8Array): Buffer => inflateRawSync(packed, { dictionary: DICTIONARIES.deflate })],
]);
const CURRENT = 2;
/** Stronger levels save a tenth and take twice as long. A window of 16 kB covers the dictionary and ordinary evidence. */
const DEFLATE_OPTIONS = { level: 1, memLevel: 4, windowBits: 14, chunkSize: 1024, dictionary: DICTIONARIES.deflate };
/** First byte of evidence that was stored as plain JSON. */
const BRACE = 0x7b;

/**
 * Evidence as it is stored: the number of a format, then its JSON compressed by DEFLATE (RFC 1951) with a dictionary. 3 kB of
 * JSON come to 300 to 500 bytes, as with zstd (format 1), which takes twice as long for texts as short as these.
 */
export const packEvidence = (evidence: Evidence): Buffer =>
  Buffer.concat([Buffer.of(CURRENT), deflateRawSync(JSON.stringify(evidence), DEFLATE_OPTIONS)]);

/** Reads what `packEvidence` returned, or plain JSON. Throws when it is neither. */
export const unpackEvidence = (stored: Uint8Array): Evidence => evidenceSchema.parse(JSON.parse(evidenceJson(stored)));

/** The JSON of stored evidence. Throws when it cannot be unpacked. */
export const evidenceJson = (stored: Uint8Array): string => {
  if (stored[0] === BRACE) return Buffer.from(stored).toString();
  const read = READERS.get(stored[0] ?? 0);
  if (read === undefined) throw new Error(`evidence packed in the unknown format ${stored[0]}`);
  return read(stored.subarray(1)).toString();
};
