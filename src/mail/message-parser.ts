import PostalMime from "postal-mime";
import { nextTurn } from "../base/clock.ts";

/** Ceilings that the parser itself holds; beyond them it throws. */
export interface MessageParserLimits {
  readonly multipartDepthMax: number;
  readonly headerBytesMax: number;
  readonly paddingsMax: number;
  readonly quotedLineBytesMax: number;
}

/** Bytes and lines read before others have their turn: a few milliseconds. */
const TURN = { bytes: 512 * 1024, lines: 8192 } as const;
/** Longer lines of base64 are given to the parser in pieces of so many bytes, which changes nothing in what they say. */
const PIECE_BYTES = 64 * 1024;
const PADDING = 61;

type ProcessLine = (line: Uint8Array, isLast: boolean) => Promise<void>;

/**
 * A parser of messages that leaves turns to everybody else while it reads a large one.
 *
 * By itself it reads a message in one go, and makes text of its pages and pages of its texts, which nobody asks for. The
 * methods that are replaced here are not in its declarations; if they went away, it would read as it is written.
 */
export const createMessageParser = (limits: MessageParserLimits): PostalMime => {
  const parser = new PostalMime({
    maxNestingDepth: limits.multipartDepthMax,
    maxHeadersSize: limits.headerBytesMax,
    maxRfc822NestingDepth: 0,
  });
  const original: unknown = Reflect.get(parser, "processLine");
  if (typeof original !== "function") return parser;
  const processLine: ProcessLine = async (line, isLast) => Reflect.apply(original, parser, [line, isLast]);
  let bytesInTurn = 0;
  let linesInTurn = 0;
  let paddings = 0;

  const processInPieces: ProcessLine = async (line, isLast) => {
    for (let at = 0; at < line.byteLength; at += PIECE_BYTES) {
      await nextTurn();
      await processLine(line.subarray(at, at + PIECE_BYTES), isLast && at + PIECE_BYTES >= line.byteLength);
    }
  };

  const processInTurn: ProcessLine = (line, isLast) => {
    const encoding = bodyEncoding(parser);
    const isBase64 = /base64/i.test(encoding);
    if (line.byteLength > limits.quotedLineBytesMax && /quoted-printable/i.test(encoding)) {
      throw new Error("a line of quoted-printable is too long");
    }
    if (isBase64) paddings += countPaddings(line, limits.paddingsMax);
    if (paddings > limits.paddingsMax) throw new Error("too many pieces of base64");
    bytesInTurn += line.byteLength;
    linesInTurn += 1;
    if (bytesInTurn < TURN.bytes && linesInTurn < TURN.lines) return processLine(line, isLast);
    bytesInTurn = 0;
    linesInTurn = 0;
    if (isBase64 && line.byteLength > PIECE_BYTES) return processInPieces(line, isLast);
    return nextTurn().then(() => processLine(line, isLast));
  };

  Reflect.set(parser, "processLine", processInTurn);
  // Texts stay the bytes they are, as attachments do.
  Reflect.set(parser, "isInlineTextNode", () => false);
  return parser;
};

/** The transfer encoding of the body that the parser is in; empty for none, and in headers. */
const bodyEncoding = (parser: object): string => {
  const node: unknown = Reflect.get(parser, "currentNode");
  if (typeof node !== "object" || node === null || Reflect.get(node, "state") !== "body") return "";
  const encoding: unknown = Reflect.get(Object(Reflect.get(node, "contentTransferEncoding")), "encoding");
  return typeof encoding === "string" ? encoding : "";
};

/** How many pieces of base64 end within a line; those beyond the ceiling are not looked for. */
const countPaddings = (line: Uint8Array, max: number): number => {
  let count = 0;
  for (let at = line.indexOf(PADDING); at !== -1 && count <= max; at = line.indexOf(PADDING, at + 1)) {
    if (line[at + 1] !== PADDING) count += 1;
  }
  return count;
};
