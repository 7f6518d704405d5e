import { SaxesParser } from "saxes";
import { isUtf8 } from "node:buffer";
import { nextTurn } from "../../../foundation/base/clock.ts";

/** Limits of what the parser buffers until a token ends. Reports stay far below: their longest value is a sentence. */
export const TOKEN_LIMITS = {
  /** Of a text, an attribute value, a comment, a section or an instruction. Longer ones are cut. */
  textCharactersMax: 64 * 1024,
  /** What is kept of one that is cut. */
  textCharactersKept: 4096,
  /** Of the name of an element, an attribute, an entity or an instruction's target. */
  nameCharactersMax: 1024,
} as const;

/** The characters that the parser gets at a time: how far it can exceed a limit before it is stopped. */
const CHUNK_CHARACTERS = 16_384;

/** The parser's buffers of names, and of what should become `<!--` or `<![CDATA[`. */
const NAME_FIELDS = ["name", "piTarget", "entity", "openWakaBang"] as const;

/** The five entities of XML and nothing that an object inherits: `&constructor;` is no entity. */
const ENTITIES: Readonly<Record<string, string>> = { amp: "&", gt: ">", lt: "<", quot: '"', apos: "'" };

/**
 * A parser whose memory is bounded, whatever the input.
 *
 * saxes buffers a token until it ends, without a limit of its own: 64 MB of one CDATA section would take gigabytes. Its
 * buffers are not in its type declarations, so they are checked here.
 */
export const createXmlParser = () => {
  const parser = new SaxesParser({ xmlns: false, position: false });
  parser.ENTITIES = Object.assign(Object.create(null), ENTITIES);

  const gathered = (field: string): string => {
    const value: unknown = Reflect.get(parser, field);
    if (typeof value !== "string") throw new Error(`the XML parser has no field ${field} any more`);
    return value;
  };

  /** Cuts the token that has not ended yet; false when it is a name, which cannot be cut. */
  const bound = (): boolean => {
    const text = gathered("text");
    if (text.length > TOKEN_LIMITS.textCharactersMax) {
      Reflect.set(parser, "text", text.slice(0, TOKEN_LIMITS.textCharactersKept));
    }
    return NAME_FIELDS.every((field) => gathered(field).length <= TOKEN_LIMITS.nameCharactersMax);
  };

  return {
    parser,
    /** Parses until `isOver`. False when a name exceeds its limit. */
    read(piece: string, isOver: () => boolean): boolean {
      for (let at = 0; at < piece.length && !isOver(); at += CHUNK_CHARACTERS) {
        parser.write(piece.slice(at, at + CHUNK_CHARACTERS));
        if (!bound()) return false;
      }
      return true;
    },
  };
};

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
