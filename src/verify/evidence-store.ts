import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import dictionary1 from "../../fixtures/evidence-dictionary-1.txt" with { type: "text" };
import { type Evidence, evidenceSchema } from "./evidence.ts";

/**
 * Dictionaries that evidence is compressed with, by the number that precedes it. One that was ever used must not change:
 * evidence could not be read any more. A better one gets the next number.
 */
const DICTIONARIES: ReadonlyMap<number, Buffer> = new Map([[1, Buffer.from(dictionary1)]]);
const CURRENT = 1;
/** Stronger levels save a tenth and take twice as long. */
const LEVEL = 1;
/** Size of the output buffers: larger evidence takes several. */
const PACKED_BYTES_USUAL = 1024;
/** First byte of evidence that was stored as plain JSON. */
const BRACE = 0x7b;

/**
 * Evidence as it is stored: the number of a dictionary, then its JSON compressed by zstd (RFC 8878) with that. 3 kB of
 * JSON come to 300 to 500 bytes in 20 µs.
 */
export const packEvidence = (evidence: Evidence): Buffer => {
  const params = { [constants.ZSTD_c_compressionLevel]: LEVEL };
  const dictionary = DICTIONARIES.get(CURRENT);
  const options = { params, chunkSize: PACKED_BYTES_USUAL, ...(dictionary === undefined ? {} : { dictionary }) };
  return Buffer.concat([Buffer.of(CURRENT), zstdCompressSync(JSON.stringify(evidence), options)]);
};

/** Reads what `packEvidence` returned, or plain JSON. Throws when it is neither. */
export const unpackEvidence = (stored: Uint8Array): Evidence => evidenceSchema.parse(JSON.parse(evidenceJson(stored)));

/** The JSON of stored evidence. Throws when it cannot be unpacked. */
export const evidenceJson = (stored: Uint8Array): string => {
  if (stored[0] === BRACE) return Buffer.from(stored).toString();
  const dictionary = DICTIONARIES.get(stored[0] ?? 0);
  if (dictionary === undefined) throw new Error(`evidence packed with the unknown dictionary ${stored[0]}`);
  return zstdDecompressSync(stored.subarray(1), { dictionary }).toString();
};
