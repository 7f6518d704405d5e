import { nextTurn } from "../../../foundation/base/clock.ts";
import { err, ok, type Result } from "../../../foundation/base/errors.ts";
import type { ReportFault, ReportProblem } from "./report.ts";
import { REPAIR_LIMITS, localName, repairText } from "./text-pre-pass.ts";
import { SaxesParser } from "saxes";
import { isUtf8 } from "node:buffer";

/** Limits of one document. */
export const XML_LIMITS = {
  depthMax: 32,
  attributesMax: 1000,
  /** Of the attributes of one element together. */
  attributeCharactersMax: 64 * 1024,
  /** Before `feedback`. */
  preambleCharactersMax: 256 * 1024,
  /** Of one element's text; the rest is dropped. */
  textCharactersMax: 1024,
  /** Faults tolerated in a repaired text. */
  faultsMax: 10_000,
} as const;

/** Gets the elements of a report. Names are local, in lower case, below `feedback`. */
export interface ReportSink {
  /** An element begins. A problem ends the parsing. */
  open(path: readonly string[]): ReportProblem | null;
  /** An element ends; `text` is its own text, trimmed. */
  close(path: readonly string[], text: string): void;
}

/**
 * Passes the first `feedback` element of a document, wherever it is, to a sink.
 *
 * A document type declaration rejects the document before the parser sees it, and entities other than the five of XML are
 * never expanded. A text that is not well-formed is repaired (`repairText`) and parsed again with a new sink, within the
 * budget. A repair never adds a tag: a text that ends within `feedback`, or has an end tag without a start tag in it, is
 * `truncated`, with the line. Large documents are parsed in chunks between which others have their turn. Never throws.
 */
export const walkReport = async <S extends ReportSink>(
  bytes: Uint8Array,
  createSink: () => S,
  budget: { repairCharactersLeft: number },
): Promise<Result<{ readonly sink: S; readonly wasRepaired: boolean }, ReportFault>> => {
  const strict = createSink();
  const linesBefore = countLinesBefore(bytes);
  const first = await run(xmlPieces(bytes), strict, { faultsMax: 0, linesBefore });
  if (first.ok) return ok({ sink: strict, wasRepaired: false });
  const { problem } = first.error;
  if (problem !== "malformed" && problem !== "truncated") return first;
  const text = await wholeXml(bytes, Math.min(REPAIR_LIMITS.charactersMax, budget.repairCharactersLeft));
  if (text === null) return first;
  budget.repairCharactersLeft -= text.length;
  const repaired = await repairText(text);
  if (repaired === null) return first;
  const { damagedLine } = repaired;
  if (damagedLine !== null) return err({ problem: "truncated", line: linesBefore + damagedLine });
  const lenient = createSink();
  const second = await run(textPieces(repaired.text), lenient, { faultsMax: XML_LIMITS.faultsMax, linesBefore });
  return second.ok ? ok({ sink: lenient, wasRepaired: true }) : second;
};

interface RunOptions {
  /** Faults that are tolerated; end tags without a start tag never are. */
  readonly faultsMax: number;
  /** Lines of the document before what the parser gets. */
  readonly linesBefore: number;
}

const run = async (
  pieces: Iterable<string>,
  sink: ReportSink,
  { faultsMax, linesBefore }: RunOptions,
): Promise<Result<null, ReportFault>> => {
  const { parser, read } = createXmlParser();
  const walk = new FeedbackWalk(sink, parser, faultsMax);
  const screen = createScreen();
  let isFirst = true;
  for (const piece of pieces) {
    if (!isFirst) await nextTurn();
    isFirst = false;
    const found = screen(piece);
    if (found !== null) return err({ problem: found, line: null });
    if (!read(piece, () => walk.isOver()) && walk.problem === null) return err({ problem: "malformed", line: null });
    if (walk.problem !== null) break;
  }
  // Closing the parser resets its line.
  const line = walk.line ?? parser.line;
  if (!walk.isOver()) parser.close();
  const problem = walk.conclude();
  if (problem === null) return ok(null);
  return err({ problem, line: problem === "truncated" ? linesBefore + line : null });
};

type XmlParser = ReturnType<typeof createXmlParser>["parser"];

/** Passes the elements of the first `feedback` element to a sink, as the parser reports them. */
class FeedbackWalk {
  readonly #path: string[] = [];
  #state: "before" | "inside" | "after" = "before";
  /** Open elements around `feedback`. */
  #outside = 0;
  /** The text of the open element. */
  #text = "";
  #hasChild: boolean = false;
  #faults = 0;
  #attributes = 0;
  #attributeCharacters = 0;
  #problem: ReportProblem | null = null;
  #line: number | null = null;

  constructor(
    private readonly sink: ReportSink,
    private readonly parser: XmlParser,
    private readonly faultsMax: number,
  ) {
    parser.on("error", ({ message }) => this.#onError(message));
    parser.on("doctype", () => this.#stopAt("doctype"));
    parser.on("attribute", ({ name, value }) => this.#onAttribute(name.length + value.length));
    parser.on("opentag", ({ name }) => this.#onOpenTag(name));
    parser.on("text", (piece) => this.#onText(piece));
    parser.on("cdata", (piece) => this.#onText(piece));
    parser.on("closetag", () => this.#onCloseTag());
  }

  get problem(): ReportProblem | null {
    return this.#problem;
  }

  /** The line of a truncation, as the parser counts. */
  get line(): number | null {
    return this.#line;
  }

  isOver(): boolean {
    return this.#problem !== null || this.#state === "after" || this.#hasTooManyFaults();
  }

  /** What is wrong with the document as a whole; null for nothing. */
  conclude(): ReportProblem | null {
    if (this.#problem !== null) return this.#problem;
    if (this.#hasTooManyFaults()) return "malformed";
    if (this.#state === "before") return "not_a_report";
    return this.#state === "after" ? null : "truncated";
  }

  #hasTooManyFaults() {
    return this.#faults > this.faultsMax;
  }

  #stopAt(found: ReportProblem | null) {
    if (this.#problem === null && found === "truncated") this.#line = this.parser.line;
    this.#problem ??= found;
  }

  #onError(message: string) {
    this.#faults += 1;
    // The first fault of an unrepaired text may follow from a bare sign before it; a mismatch in a repaired one cannot.
    if (this.#problem !== null || this.#state === "before" || (this.faultsMax === 0 && this.#faults > 1)) return;
    if (MISMATCH.test(message)) this.#stopAt("truncated");
    else if (ATTRIBUTE_FAULT.test(message) && (this.#path.length === 0 || this.#path[0] === "record")) {
      this.#stopAt("truncated");
    }
  }

  #onAttribute(characters: number) {
    this.#attributes += 1;
    this.#attributeCharacters += characters;
    const { attributesMax, attributeCharactersMax } = XML_LIMITS;
    const isTooMuch = this.#attributes > attributesMax || this.#attributeCharacters > attributeCharactersMax;
    if (isTooMuch && !this.#hasTooManyFaults()) this.#stopAt("malformed");
  }

  #onOpenTag(name: string) {
    this.#attributes = 0;
    this.#attributeCharacters = 0;
    // After a fault that ends the walk the parser guesses.
    if (this.isOver()) return;
    if (this.#path.length + this.#outside >= XML_LIMITS.depthMax) this.#stopAt("too_deep");
    else if (this.#state === "inside") this.#open(localName(name));
    else if (localName(name) === "feedback") this.#state = "inside";
    else this.#outside += 1;
  }

  #open(name: string) {
    if (this.#text.includes(TAG_END)) {
      this.#stopAt("truncated");
      return;
    }
    this.#text = "";
    this.#hasChild = false;
    this.#path.push(name);
    this.#stopAt(this.sink.open(this.#path));
  }

  #onText(piece: string) {
    if (this.#state !== "inside" || this.#text.length >= XML_LIMITS.textCharactersMax) return;
    this.#text += piece.slice(0, XML_LIMITS.textCharactersMax);
  }

  #onCloseTag() {
    if (this.#problem !== null || this.#hasTooManyFaults()) return;
    if (this.#state === "before") this.#outside -= 1;
    if (this.#state !== "inside") return;
    if (this.#hasChild && this.#text.includes(TAG_END)) {
      this.#stopAt("truncated");
      return;
    }
    this.#hasChild = true;
    if (this.#path.length === 0) {
      this.#state = "after";
      return;
    }
    this.sink.close(this.#path, this.#text.trim());
    this.#path.pop();
    this.#text = "";
  }
}

/** Next to elements, where no text belongs, it is the rest of a tag that lost its beginning. */
const TAG_END = ">";

/**
 * The parser's messages about an end tag whose start tag is missing, elements that end within others, and a comment whose
 * end is missing.
 */
const MISMATCH = /^(?:unmatched closing tag|unexpected close tag|malformed comment)/;

/** In records, whose elements have hardly any attributes, a sign of two halves of tags. */
const ATTRIBUTE_FAULT = /attribute/;

/** Checks a text before the parser, chunk by chunk. */
const createScreen = () => {
  let tail = "";
  let head: string | null = "";
  return (piece: string): ReportProblem | null => {
    if (DECLARATION.test(tail + piece)) return "doctype";
    tail = piece.slice(-DECLARATION_CHARACTERS);
    if (head === null) return null;
    head += piece;
    if (/[<:]feedback[\s/>]/i.test(head)) head = null;
    // Large and something else: a page, a sitemap, white space.
    else if (head.length > XML_LIMITS.preambleCharactersMax) return "not_a_report";
    return null;
  };
};

const DECLARATION = /<!(?:DOCTYPE|ENTITY)/i;
const DECLARATION_CHARACTERS = "<!DOCTYP".length;

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

  const gathered = (field: string) => {
    const value: unknown = Reflect.get(parser, field);
    if (typeof value !== "string") throw new Error(`the XML parser has no field ${field} any more`);
    return value;
  };

  /** Cuts the token that has not ended yet; false when it is a name, which cannot be cut. */
  const bound = () => {
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
