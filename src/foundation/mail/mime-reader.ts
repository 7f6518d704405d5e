import { nextTurn } from "../base/clock.ts";
import { decodeEncodedWords, type HeaderFields, readHeaderFields, readParameterField } from "./mime-header.ts";

/** One leaf of a message, decoded from its transfer encoding. */
export interface MimePart {
  /** Lower case, without parameters; `text/plain` where the part says nothing. Senders get it wrong: judge by the bytes. */
  readonly contentType: string;
  /** From Content-Disposition or Content-Type (RFC 2231 continuations joined), else Content-Description; null for none. */
  readonly name: string | null;
  readonly bytes: Uint8Array;
}

/** Ceilings of one message. A message that exceeds one of them is refused whole, never read in part. */
export interface MimeLimits {
  readonly linesMax: number;
  /** Lines that begin with `--`, as the boundaries of parts do; each may cost a part. */
  readonly dashLinesMax: number;
  /** Of all headers of all parts together, without line ends. */
  readonly headerBytesMax: number;
  readonly multipartDepthMax: number;
  /** Leaves with content. */
  readonly partsMax: number;
}

/** A message (RFC 5322, RFC 2045 f.): the fields of its own header, and its leaves in document order. */
interface MimeTree {
  readonly header: HeaderFields;
  readonly parts: readonly MimePart[];
}

const LF = 10;
const CR = 13;
const DASH = 45;
const EQUALS = 61;
const NAME_CHARACTERS_MAX = 255;
/** RFC 2046 §5.1.1 allows 70. */
const BOUNDARY_CHARACTERS_MAX = 256;
/** Lines read before others have their turn. */
const LINES_PER_TURN = 16_384;

/** A body that was found, still encoded. */
interface Leaf {
  readonly contentType: string;
  readonly name: string | null;
  readonly encoding: TransferEncoding;
  readonly start: number;
  end: number;
}

/** Reads a message; null when it exceeds a limit. Enclosed messages (message/rfc822) stay leaves. */
export const readMimeTree = async (message: Uint8Array, limits: MimeLimits): Promise<MimeTree | null> => {
  const reader = new StructureReader(message, limits);
  let lines = 0;
  for (let start = 0; start < message.length;) {
    const lf = message.indexOf(LF, start);
    const next = lf === -1 ? message.length : lf + 1;
    if (++lines > limits.linesMax || !reader.readLine(start, next)) return null;
    if (lines % LINES_PER_TURN === 0) await nextTurn();
    start = next;
  }
  if (!reader.end()) return null;
  const parts: MimePart[] = [];
  let decoded = 0;
  for (const { contentType, name, encoding, start, end } of reader.leaves) {
    decoded += end - start;
    if (decoded >= BYTES_PER_TURN) {
      await nextTurn();
      decoded = 0;
    }
    const bytes = await decodeBody(message.subarray(start, end), encoding);
    if (bytes.length === 0) continue;
    if (parts.length >= limits.partsMax) return null;
    parts.push({ contentType, name, bytes });
  }
  return { header: reader.header, parts };
};

/** Finds headers and bodies, line by line. */
class StructureReader {
  readonly leaves: Leaf[] = [];
  /** Of the message itself. */
  header: HeaderFields = new Map();
  /** The boundaries of the multiparts whose parts are being read (RFC 2046 §5.1), the innermost last. */
  readonly #open: Uint8Array[] = [];
  /** The lines of the header that is being read; null in a body, a preamble or an epilogue. */
  #headerLines: Uint8Array[] | null = [];
  #leaf: Leaf | null = null;
  #isFirstHeader: boolean = true;
  #headerBytes = 0;
  #dashLines = 0;

  constructor(
    private readonly message: Uint8Array,
    private readonly limits: MimeLimits,
  ) {}

  /** Takes the line from `start` to `next`, its line end included. False when a limit is exceeded. */
  readLine(start: number, next: number): boolean {
    const message = this.message;
    let end = next;
    while (end > start && (message[end - 1] === LF || message[end - 1] === CR)) end--;
    const isDashed = message[start] === DASH && message[start + 1] === DASH && end - start > 2;
    if (isDashed && ++this.#dashLines > this.limits.dashLinesMax) return false;
    if (isDashed && this.#readBoundary(message.subarray(start + 2, end))) return this.#open.length <= this.#depthMax;
    if (this.#headerLines !== null) {
      this.#headerBytes += end - start;
      if (this.#headerBytes > this.limits.headerBytesMax) return false;
      if (end > start) this.#headerLines.push(message.subarray(start, end));
      else this.#endHeader(next);
      return true;
    }
    if (this.#leaf !== null) this.#leaf.end = next;
    return true;
  }

  /** The message ends here. False when a limit is exceeded. */
  end(): boolean {
    if (this.#headerLines !== null) this.#endHeader(this.message.length);
    return this.#open.length <= this.#depthMax;
  }

  get #depthMax() {
    return this.limits.multipartDepthMax;
  }

  /** Whether the text behind `--` is a boundary of an open multipart, the innermost first; multiparts inside it end then. */
  #readBoundary(text: Uint8Array) {
    const textEnd = endOfText(text);
    for (let index = this.#open.length - 1; index >= 0; index--) {
      const boundary = this.#open[index] ?? new Uint8Array();
      const kind = kindOfBoundary(text, textEnd, boundary);
      if (kind === null) continue;
      this.#leaf = null;
      // The part that a delimiter begins has the multipart around it; a closing one leaves that, too.
      this.#open.length = kind === "closing" ? index : index + 1;
      this.#headerLines = kind === "closing" ? null : [];
      return true;
    }
    return false;
  }

  #endHeader(bodyStart: number) {
    const fields = readHeaderFields(this.#headerLines ?? []);
    this.#headerLines = null;
    if (this.#isFirstHeader) this.header = fields;
    this.#isFirstHeader = false;
    const type = readParameterField(fields.get("content-type") ?? "");
    if (type.value.startsWith("multipart/")) {
      const boundary = type.parameters.get("boundary") ?? "";
      if (boundary !== "" && boundary.length <= BOUNDARY_CHARACTERS_MAX) this.#open.push(Buffer.from(boundary));
      return;
    }
    const disposition = readParameterField(fields.get("content-disposition") ?? "");
    const name =
      disposition.parameters.get("filename") ?? type.parameters.get("name") ?? fields.get("content-description");
    this.#leaf = {
      contentType: type.value === "" ? "text/plain" : type.value,
      name: nameOf(name ?? ""),
      encoding: readTransferEncoding(fields.get("content-transfer-encoding") ?? ""),
      start: bodyStart,
      end: bodyStart,
    };
    this.leaves.push(this.#leaf);
  }
}

/** What a line is to a boundary (RFC 2046 §5.1.1): blanks may follow it. `textEnd` is where the blanks at its end begin. */
const kindOfBoundary = (text: Uint8Array, textEnd: number, boundary: Uint8Array): "delimiter" | "closing" | null => {
  if (text.length < boundary.length) return null;
  for (let at = 0; at < boundary.length; at++) if (text[at] !== boundary[at]) return null;
  if (textEnd <= boundary.length) return "delimiter";
  const isClosing = text[boundary.length] === DASH && text[boundary.length + 1] === DASH;
  return isClosing && textEnd <= boundary.length + 2 ? "closing" : null;
};

/** Where the spaces and tabs at the end of a line begin. */
const endOfText = (line: Uint8Array) => {
  let end = line.length;
  while (line[end - 1] === 32 || line[end - 1] === 9) end--;
  return end;
};

const nameOf = (text: string) =>
  text.trim() === "" ? null : decodeEncodedWords(text).trim().slice(0, NAME_CHARACTERS_MAX);

/** How a body is encoded (RFC 2045 §6). */
export type TransferEncoding = "base64" | "quoted-printable" | "identity";

/** Bytes decoded before others have their turn: about a millisecond. */
const BYTES_PER_TURN = 256 * 1024;

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
const inStretches = async (length: number, work: (from: number, to: number) => void) => {
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

const hexDigit = (byte = 0) => {
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
