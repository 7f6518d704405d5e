import { nextTurn } from "../base/clock.ts";

/** How a body is encoded (RFC 2045 §6). */
export type TransferEncoding = "base64" | "quoted-printable" | "identity";

const [LF, CR, EQUALS] = [10, 13, 61];
/** Bytes decoded before others have their turn: about a millisecond. */
export const BYTES_PER_TURN = 256 * 1024;

/** The encoding that a Content-Transfer-Encoding names, comments and unusual spellings allowed. */
export const readTransferEncoding = (value: string): TransferEncoding => {
  const [name = ""] = /[\w-]+/.exec(value.replace(/\([^()]*\)/g, "").toLowerCase()) ?? [];
  if (name.includes("base64")) return "base64";
  return name.includes("quoted-printable") ? "quoted-printable" : "identity";
};

/** Decodes a body; its lines end with LF then, unless they are base64. Takes time in proportion to its length. */
export const decodeBody = (body: Uint8Array, encoding: TransferEncoding): Promise<Uint8Array> => {
  switch (encoding) {
    case "base64":
      return decodeBase64(body);
    case "quoted-printable":
      return decodeQuotedPrintable(body);
    case "identity":
      return normalizeLines(body);
    default:
      return encoding satisfies never;
  }
};

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const IGNORED = 255;
const SEXTETS = new Uint8Array(256).fill(IGNORED);
for (const [value, character] of [...ALPHABET].entries()) SEXTETS[character.charCodeAt(0)] = value;

/** Calls `work` for one stretch of `length` bytes after the other, with turns for others in between. */
const inStretches = async (length: number, work: (from: number, to: number) => void): Promise<void> => {
  for (let from = 0; from < length; from += BYTES_PER_TURN) {
    if (from > 0) await nextTurn();
    work(from, Math.min(length, from + BYTES_PER_TURN));
  }
};

/** Characters outside the alphabet are ignored (RFC 2045 §6.8). Padding ends a unit, not the body: some senders pad each line. */
const decodeBase64 = async (body: Uint8Array): Promise<Uint8Array> => {
  const decoded = new Uint8Array(Math.ceil((body.length * 3) / 4));
  let length = 0;
  let bits = 0;
  let sextets = 0;
  const endUnit = () => {
    // One sextet alone is no octet.
    if (sextets >= 2) decoded[length++] = sextets === 2 ? bits >> 4 : bits >> 10;
    if (sextets === 3) decoded[length++] = bits >> 2;
    sextets = 0;
    bits = 0;
  };
  await inStretches(body.length, (from, to) => {
    for (let at = from; at < to; at++) {
      const byte = body[at] ?? 0;
      const sextet = SEXTETS[byte] ?? IGNORED;
      if (sextet === IGNORED) {
        if (byte === EQUALS) endUnit();
        continue;
      }
      bits = (bits << 6) | sextet;
      if (++sextets < 4) continue;
      decoded[length] = bits >> 16;
      decoded[length + 1] = bits >> 8;
      decoded[length + 2] = bits;
      length += 3;
      sextets = 0;
      bits = 0;
    }
  });
  endUnit();
  return decoded.subarray(0, length);
};

/** RFC 2045 §6.7; invalid escapes stay as they are written. */
const decodeQuotedPrintable = async (body: Uint8Array): Promise<Uint8Array> => {
  const text = await normalizeLines(body);
  const decoded = new Uint8Array(text.length);
  let length = 0;
  let next = 0;
  await inStretches(text.length, (_from, to) => {
    while (next < to) {
      const byte = text[next++] ?? 0;
      const octet = byte === EQUALS ? hexDigit(text[next]) * 16 + hexDigit(text[next + 1]) : NOT_HEX;
      if (octet >= 0) next += 2;
      // Else a soft line break disappears.
      if (octet < 0 && byte === EQUALS && text[next] === LF) next++;
      else decoded[length++] = octet >= 0 ? octet : byte;
    }
  });
  return decoded.subarray(0, length);
};

const NOT_HEX = -1_000;

const hexDigit = (byte = 0): number => {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const letter = byte & ~32;
  return letter >= 65 && letter <= 70 ? letter - 55 : NOT_HEX;
};

/** Every line ends with one LF: CRs before it are dropped, and the last line gets one. */
const normalizeLines = async (body: Uint8Array): Promise<Uint8Array> => {
  const lines = new Uint8Array(body.length + 1);
  let length = 0;
  let crs = 0;
  await inStretches(body.length, (from, to) => {
    for (let at = from; at < to; at++) {
      const byte = body[at] ?? 0;
      if (byte === CR) {
        crs++;
        continue;
      }
      if (byte !== LF) for (; crs > 0; crs--) lines[length++] = CR;
      crs = 0;
      lines[length++] = byte;
    }
  });
  if (body.length > 0 && (crs > 0 || lines[length - 1] !== LF)) lines[length++] = LF;
  return lines.subarray(0, length);
};
