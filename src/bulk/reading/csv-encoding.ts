import { isAscii } from "node:buffer";
import { nextTurn } from "../../foundation/base/clock.ts";
import { type Result, err, ok } from "../../foundation/base/errors.ts";
import { CHUNK_BYTES, type ByteSource } from "./byte-source.ts";

/** The encodings that lists can have, by their names in the Encoding Standard. */
export const ENCODINGS = [
  ...(["utf-8", "utf-16le", "utf-16be"] as const),
  ...(["windows-1250", "windows-1251", "windows-1252", "windows-1253", "windows-1254"] as const),
  ...(["windows-1255", "windows-1256", "windows-1257", "windows-1258", "windows-874"] as const),
  ...(["iso-8859-2", "iso-8859-15", "macintosh", "koi8-r", "koi8-u"] as const),
  ...(["shift_jis", "euc-jp", "gb18030", "big5", "euc-kr"] as const),
] as const;
export type EncodingName = (typeof ENCODINGS)[number];

/** The encoding of a list. `bom`: it starts with a byte order mark, which is not part of the first cell. */
export interface TextEncoding {
  readonly name: EncodingName;
  readonly bom: boolean;
  /**
   * Nobody has named the encoding and the list is not valid Unicode. As `windows-1252` each byte is one character, so that
   * `bytesAsRead` gives back the bytes of the list, whatever they mean.
   */
  readonly isAssumed: boolean;
}

/** Bytes in which UTF-16 and binary files are recognized. */
const HEAD_BYTES = 4096;
/** Latin text in UTF-16 has a NUL in nearly every second byte; other scripts at least in line ends and "@". */
const NUL_SHARE_OF_UTF16 = 0.3;

/** Tolerated control characters in a text. */
const CONTROLS_MAX = 4;
const CONTROL_SHARE_MAX = 0.05;
const NO_CSV = "This is not a CSV file: it contains binary data. Save the list as CSV (UTF-8).";

const NOT_TEXT: ReadonlyArray<readonly [what: string, magic: readonly number[]]> = [
  ["a ZIP archive", [0x50, 0x4b, 0x03, 0x04]],
  ["an old Excel workbook (.xls)", [0xd0, 0xcf, 0x11, 0xe0]],
  ["a gzip file", [0x1f, 0x8b]],
  ["a PDF", [0x25, 0x50, 0x44, 0x46, 0x2d]],
  ["UTF-32 text", [0xff, 0xfe, 0x00, 0x00]],
  ["UTF-32 text", [0x00, 0x00, 0xfe, 0xff]],
];

const MARKS: ReadonlyArray<readonly [name: EncodingName, mark: readonly number[]]> = [
  ["utf-8", [0xef, 0xbb, 0xbf]],
  ["utf-16le", [0xff, 0xfe]],
  ["utf-16be", [0xfe, 0xff]],
];

/**
 * Detects the encoding, or makes sure that the list has the one that is `named`; reads the whole list once.
 *
 * A byte order mark decides; otherwise NULs in every second byte mean UTF-16; otherwise it is UTF-8 if that is valid. The
 * encodings of one byte a letter cannot be told apart: Windows-1252 is assumed. UTF-8 with a few invalid bytes stays UTF-8
 * (they become U+FFFD), because Windows-1252 would corrupt every valid letter outside ASCII; it is assumed, too. NULs at
 * the end are padding. The error is a sentence.
 */
export const detectEncoding = async (
  source: ByteSource,
  named?: EncodingName,
): Promise<Result<TextEncoding, string>> => {
  const head = await readHead(source);
  const found = NOT_TEXT.find(([, magic]) => startsWith(head, magic));
  if (found !== undefined) return err(`This is ${found[0]}. Save the list as CSV (UTF-8).`);
  const [marked] = MARKS.find(([, mark]) => startsWith(head, mark)) ?? [];
  if (named !== undefined) return checkEncoding(source, named, marked);
  if (marked !== undefined) return ok({ name: marked, bom: true, isAssumed: false });
  const nulsAt = (parity: number) => head.filter((byte, index) => byte === 0 && index % 2 === parity).length;
  const [even, odd] = [nulsAt(0), nulsAt(1)];
  const enough = (head.length / 2) * NUL_SHARE_OF_UTF16;
  if (odd > enough && odd > 4 * even) return ok({ name: "utf-16le", bom: false, isAssumed: false });
  if (even > enough && even > 4 * odd) return ok({ name: "utf-16be", bom: false, isAssumed: false });
  const text = head.filter((byte) => byte !== 0);
  const controls = text.filter(isControl).length;
  if (controls > Math.max(CONTROLS_MAX, text.length * CONTROL_SHARE_MAX)) return err(NO_CSV);
  const { letters, invalid } = await countUtf8(source);
  return ok({ name: invalid > letters ? "windows-1252" : "utf-8", bom: false, isAssumed: invalid > 0 });
};

/** Makes sure that every byte means something in the encoding that the user has named. */
const checkEncoding = async (
  source: ByteSource,
  name: EncodingName,
  marked: EncodingName | undefined,
): Promise<Result<TextEncoding, string>> => {
  if (marked !== undefined && marked !== name)
    return err(`The list begins with the byte order mark of ${marked}, so it is not ${name}.`);
  const decoder = new TextDecoder(name, { fatal: true });
  try {
    for await (const chunk of source()) decoder.decode(chunk, { stream: true });
    decoder.decode();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return err(`The list is not valid ${name}. Name another encoding, or none to have it detected.`);
  }
  return ok({ name, bom: marked !== undefined, isAssumed: false });
};

/** Whether the text of a list stands for its bytes: `bytesAsRead` gives them back. */
export const isReadByByte = ({ name, isAssumed }: TextEncoding): boolean => isAssumed && name === "windows-1252";

/** The bytes of letters of Windows-1252 beyond U+00FF. */
const BYTES_OF_LETTERS: ReadonlyMap<string, string> = new Map(
  Array.from({ length: 0x20 }, (_, at) => {
    const byte = Uint8Array.of(0x80 + at);
    return [new TextDecoder("windows-1252").decode(byte), Buffer.from(byte).toString("latin1")];
  }),
);

/** The bytes of a text that was read as Windows-1252. Other letters become a question mark. */
export const bytesAsRead = (text: string): Uint8Array =>
  Buffer.from(
    text.replace(/[^\0-\xff]/gu, (letter) => BYTES_OF_LETTERS.get(letter) ?? "?"),
    "latin1",
  );

/** The text as UTF-8 without a byte order mark and the NULs at its end, in chunks of at most `CHUNK_BYTES` of input. */
export async function* utf8Chunks(source: ByteSource, encoding: TextEncoding): AsyncGenerator<Uint8Array, void> {
  let nuls = 0;
  for await (const chunk of decodedChunks(source, encoding)) {
    const end = chunk.at(-1) === 0 ? chunk.findLastIndex((byte) => byte !== 0) + 1 : chunk.length;
    for (; end > 0 && nuls > 0; nuls -= Math.min(nuls, CHUNK_BYTES)) yield new Uint8Array(Math.min(nuls, CHUNK_BYTES));
    if (end > 0) yield chunk.subarray(0, end);
    nuls += chunk.length - end;
  }
}

async function* decodedChunks(source: ByteSource, encoding: TextEncoding): AsyncGenerator<Uint8Array, void> {
  const decoder = encoding.name === "utf-8" ? null : new TextDecoder(encoding.name, { ignoreBOM: true });
  let skip = encoding.bom ? (decoder === null ? 3 : 2) : 0;
  for await (const chunk of source()) {
    for (let at = 0; at < chunk.length; at += CHUNK_BYTES) {
      if (at > 0) await nextTurn();
      const piece = chunk.subarray(at, at + CHUNK_BYTES);
      const text = piece.subarray(Math.min(skip, piece.length));
      skip -= piece.length - text.length;
      yield decoder === null ? text : Buffer.from(decoder.decode(text, { stream: true }));
    }
  }
  if (decoder !== null) yield Buffer.from(decoder.decode());
}

const ESCAPE = 0x1b;

/** C0 without white space (0x09-0x0d) and ESC, which is frequent in older Japanese encodings. */
const isControl = (byte: number): boolean => (byte < 0x09 || (byte > 0x0d && byte < 0x20)) && byte !== ESCAPE;

const startsWith = (bytes: Uint8Array, magic: readonly number[]): boolean =>
  magic.every((byte, index) => bytes[index] === byte);

/** The first bytes without NULs at their end. */
const readHead = async (source: ByteSource): Promise<Uint8Array> => {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of source()) {
    parts.push(chunk);
    bytes += chunk.length;
    if (bytes >= HEAD_BYTES) break;
  }
  const head = Buffer.concat(parts).subarray(0, HEAD_BYTES);
  return head.subarray(0, head.findLastIndex((byte) => byte !== 0) + 1);
};

/** Counts letters outside ASCII in well-formed UTF-8, and invalid bytes (RFC 3629 §3). */
const countUtf8 = async (source: ByteSource): Promise<{ letters: number; invalid: number }> => {
  let letters = 0;
  let invalid = 0;
  let awaited = 0;
  for await (const chunk of source()) {
    if (awaited === 0 && isAscii(chunk)) continue;
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at] ?? 0;
      if (byte < 0x80) {
        if (awaited > 0) invalid += 1;
        awaited = 0;
      } else if (byte < 0xc0) {
        if (awaited === 0) invalid += 1;
        else if (--awaited === 0) letters += 1;
      } else {
        if (awaited > 0) invalid += 1;
        awaited = byte >= 0xf5 || byte < 0xc2 ? 0 : byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : 1;
        if (awaited === 0) invalid += 1;
      }
    }
  }
  return { letters, invalid: invalid + (awaited > 0 ? 1 : 0) };
};
