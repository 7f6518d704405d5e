import { isUtf8 } from "node:buffer";
import { nextTurn } from "../../../foundation/base/clock.ts";

/** Bytes decoded at a time: a document of 64 MB is never a string as a whole. */
export const PIECE_BYTES = 64 * 1024;

/**
 * The text of a document in chunks, from its first `<` on, decoded by its byte order mark, else as UTF-8, else by its
 * declared encoding. A surrogate pair may be split between two chunks.
 */
export function* xmlPieces(bytes: Uint8Array): Generator<string> {
  const decoder = new TextDecoder(encodingOf(bytes));
  let hasBegun = false;
  for (let at = 0; at < bytes.byteLength; at += PIECE_BYTES) {
    const stream = at + PIECE_BYTES < bytes.byteLength;
    const piece = decoder.decode(bytes.subarray(at, at + PIECE_BYTES), { stream });
    const start = hasBegun ? 0 : piece.indexOf("<");
    if (start === -1) continue;
    hasBegun = true;
    yield start === 0 ? piece : piece.slice(start);
  }
}

/** The lines of a document that end before its first `<`, which `xmlPieces` leaves out. */
export const countLinesBefore = (bytes: Uint8Array): number => {
  const start = bytes.indexOf(LESS_THAN);
  let lines = 0;
  for (let at = bytes.indexOf(LINE_FEED); at !== -1 && at < start; at = bytes.indexOf(LINE_FEED, at + 1)) lines += 1;
  return lines;
};

const LESS_THAN = 0x3c;
const LINE_FEED = 0x0a;

/** A text in pieces of that size. */
export function* textPieces(text: string): Generator<string> {
  for (let at = 0; at < text.length; at += PIECE_BYTES) yield text.slice(at, at + PIECE_BYTES);
}

/** The whole text, as `xmlPieces` gives it; null when it has more characters than allowed. */
export const wholeXml = async (bytes: Uint8Array, charactersMax: number): Promise<string | null> => {
  const pieces: string[] = [];
  let characters = 0;
  for (const piece of xmlPieces(bytes)) {
    if (pieces.length > 0) await nextTurn();
    characters += piece.length;
    if (characters > charactersMax) return null;
    pieces.push(piece);
  }
  return pieces.join("");
};

const encodingOf = (bytes: Uint8Array): Bun.Encoding => {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return "utf-16le";
  if (first === 0xfe && second === 0xff) return "utf-16be" as Bun.Encoding;
  if (first === 0x3c && second === 0) return "utf-16le";
  if (first === 0 && second === 0x3c) return "utf-16be" as Bun.Encoding;
  if (isUtf8(bytes)) return "utf-8";
  const head = new TextDecoder("latin1").decode(bytes.subarray(0, 200));
  // Only the encodings in use; anything else is decoded as UTF-8 with replacement characters.
  return /^[^>]*encoding\s*=\s*["'](?:iso-8859-1|windows-1252|latin1)["']/i.test(head) ? "windows-1252" : "utf-8";
};
