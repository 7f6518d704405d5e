import { nextTurn } from "../../../foundation/base/clock.ts";
import { err, ok, type Result } from "../../../foundation/base/errors.ts";
import type { ReportFault, ReportProblem } from "./outcome.ts";
import { localName, REPAIR_LIMITS, repairText } from "./text-pre-pass.ts";
import { createXmlParser, countLinesBefore, textPieces, wholeXml, xmlPieces } from "./xml-parser.ts";

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

  #hasTooManyFaults(): boolean {
    return this.#faults > this.faultsMax;
  }

  #stopAt(found: ReportProblem | null): void {
    if (this.#problem === null && found === "truncated") this.#line = this.parser.line;
    this.#problem ??= found;
  }

  #onError(message: string): void {
    this.#faults += 1;
    // The first fault of an unrepaired text may follow from a bare sign before it; a mismatch in a repaired one cannot.
    if (this.#problem !== null || this.#state === "before" || (this.faultsMax === 0 && this.#faults > 1)) return;
    if (MISMATCH.test(message)) this.#stopAt("truncated");
    else if (ATTRIBUTE_FAULT.test(message) && (this.#path.length === 0 || this.#path[0] === "record")) {
      this.#stopAt("truncated");
    }
  }

  #onAttribute(characters: number): void {
    this.#attributes += 1;
    this.#attributeCharacters += characters;
    const { attributesMax, attributeCharactersMax } = XML_LIMITS;
    const isTooMuch = this.#attributes > attributesMax || this.#attributeCharacters > attributeCharactersMax;
    if (isTooMuch && !this.#hasTooManyFaults()) this.#stopAt("malformed");
  }

  #onOpenTag(name: string): void {
    this.#attributes = 0;
    this.#attributeCharacters = 0;
    // After a fault that ends the walk the parser guesses.
    if (this.isOver()) return;
    if (this.#path.length + this.#outside >= XML_LIMITS.depthMax) this.#stopAt("too_deep");
    else if (this.#state === "inside") this.#open(localName(name));
    else if (localName(name) === "feedback") this.#state = "inside";
    else this.#outside += 1;
  }

  #open(name: string): void {
    if (this.#text.includes(TAG_END)) {
      this.#stopAt("truncated");
      return;
    }
    this.#text = "";
    this.#hasChild = false;
    this.#path.push(name);
    this.#stopAt(this.sink.open(this.#path));
  }

  #onText(piece: string): void {
    if (this.#state !== "inside" || this.#text.length >= XML_LIMITS.textCharactersMax) return;
    this.#text += piece.slice(0, XML_LIMITS.textCharactersMax);
  }

  #onCloseTag(): void {
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
