import { nextTurn } from "../../base/clock.ts";
import { err, ok, type Result } from "../../base/errors.ts";
import type { ReportFault, ReportProblem } from "./outcome.ts";
import { localName, REPAIR_LIMITS, repairText } from "./text-pre-pass.ts";
import { createXmlParser } from "./xml-parser.ts";
import { countLinesBefore, textPieces, wholeXml, xmlPieces } from "./xml-text.ts";

/** Ceilings of one document. */
export const XML_LIMITS = {
  depthMax: 32,
  attributesMax: 1000,
  /** Of the attributes of one element together. */
  attributeCharactersMax: 64 * 1024,
  /** Where `feedback` begins at the latest. */
  preambleCharactersMax: 256 * 1024,
  /** Characters of one element's text that are kept; the rest is dropped. */
  textCharactersMax: 1024,
  /** Faults passed over in a text that has been repaired already. */
  faultsMax: 10_000,
} as const;

/** What is told of a report while it is read. Names are local, lower case, from below `feedback` down. */
export interface ReportSink {
  /** An element begins. False ends the reading with that problem. */
  open(path: readonly string[]): ReportProblem | null;
  /** An element ends; `text` is what stood directly in it, trimmed. */
  close(path: readonly string[], text: string): void;
}

/**
 * Walks through the first `feedback` element of a document, wherever it stands, and tells a sink what is in it.
 *
 * A document type declaration, wherever it stands, refuses the document before the parser comes to it, and entities other
 * than the five of XML are never expanded. A text that is not well-formed is repaired (`repairText`) and walked again with a new sink, so
 * sound reports pay nothing for the others, as far as the budget goes, which is used up by that. No repair invents a tag: a text
 * that ends inside of `feedback`, or has an end tag in it that fits no start tag, is `truncated`, with the line.
 * Large documents are read in turns with everybody else. Never throws.
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
  /** The faults that are passed over; end tags that fit no start tag are never. */
  readonly faultsMax: number;
  /** Lines of the document above what is given to the parser. */
  readonly linesBefore: number;
}

const run = async (
  pieces: Iterable<string>,
  sink: ReportSink,
  { faultsMax, linesBefore }: RunOptions,
): Promise<Result<null, ReportFault>> => {
  const { parser, read } = createXmlParser();
  const screen = createScreen();
  const path: string[] = [];
  let state: "before" | "inside" | "after" = "before";
  let outside = 0;
  let pending = "";
  let hasChild = false;
  let faults = 0;
  let attributes = 0;
  let attributeCharacters = 0;
  let problem: ReportProblem | null = null;
  let line: number | null = null;
  const stopAt = (found: ReportProblem | null): void => {
    if (problem === null && found === "truncated") line = parser.line;
    problem ??= found;
  };

  parser.on("error", ({ message }) => {
    faults += 1;
    // The first fault of an unrepaired text may come of a bare sign before it; a mismatch in a repaired one cannot.
    if (problem !== null || state === "before" || (faultsMax === 0 && faults > 1)) return;
    if (MISMATCH.test(message)) return stopAt("truncated");
    if (ATTRIBUTE_FAULT.test(message) && (path.length === 0 || path[0] === "record")) stopAt("truncated");
  });
  parser.on("doctype", () => stopAt("doctype"));
  parser.on("attribute", ({ name, value }) => {
    attributes += 1;
    attributeCharacters += name.length + value.length;
    const isTooMuch = attributes > XML_LIMITS.attributesMax || attributeCharacters > XML_LIMITS.attributeCharactersMax;
    if (isTooMuch && faults <= faultsMax) stopAt("malformed");
  });
  parser.on("opentag", ({ name }) => {
    attributes = 0;
    attributeCharacters = 0;
    // Behind a fault that ends the walk the parser guesses; what it tells then is nothing to judge by.
    if (problem !== null || faults > faultsMax || state === "after") return;
    if (path.length + outside >= XML_LIMITS.depthMax) return stopAt("too_deep");
    if (state === "before") {
      if (localName(name) === "feedback") state = "inside";
      else outside += 1;
      return;
    }
    if (pending.includes(TAG_END)) return stopAt("truncated");
    pending = "";
    hasChild = false;
    path.push(localName(name));
    stopAt(sink.open(path));
  });
  const hear = (piece: string): void => {
    if (state === "inside" && pending.length < XML_LIMITS.textCharactersMax) {
      pending += piece.slice(0, XML_LIMITS.textCharactersMax);
    }
  };
  parser.on("text", hear);
  parser.on("cdata", hear);
  parser.on("closetag", () => {
    if (problem !== null || faults > faultsMax) return;
    if (state === "before") outside -= 1;
    if (state !== "inside") return;
    if (hasChild && pending.includes(TAG_END)) return stopAt("truncated");
    hasChild = true;
    if (path.length === 0) {
      state = "after";
      return;
    }
    sink.close(path, pending.trim());
    path.pop();
    pending = "";
  });

  // What the handlers change is out of sight of the type checker.
  const isOver = (): boolean => problem !== null || state === "after" || faults > faultsMax;
  let isFirst = true;
  for (const piece of pieces) {
    if (!isFirst) await nextTurn();
    isFirst = false;
    const found = screen(piece);
    if (found !== null) return err({ problem: found, line: null });
    if (!read(piece, isOver)) stopAt("malformed");
    if (problem !== null) break;
  }
  // Closing the parser resets its line.
  line ??= parser.line;
  if (!isOver()) parser.close();
  const found = problem ?? judge({ state, faults, faultsMax });
  if (found === null) return ok(null);
  return err({ problem: found, line: found === "truncated" ? linesBefore + line : null });
};

/** Beside elements, where no text belongs, it is what is left of a tag that lost its beginning. */
const TAG_END = ">";

/**
 * What the parser says of an end tag whose start tag is missing, of elements that end inside of others, and of a comment
 * with another one in it, whose end is missing.
 */
const MISMATCH = /^(?:unmatched closing tag|unexpected close tag|malformed comment)/;

/** In records, whose elements have hardly any attributes, two halves of tags look like this. */
const ATTRIBUTE_FAULT = /attribute/;

/** Looks at a text before the parser does, piece by piece. */
const createScreen = () => {
  let tail = "";
  let head: string | null = "";
  return (piece: string): ReportProblem | null => {
    if (DECLARATION.test(tail + piece)) return "doctype";
    tail = piece.slice(-DECLARATION_CHARACTERS);
    if (head === null) return null;
    head += piece;
    if (/[<:]feedback[\s/>]/i.test(head)) head = null;
    // Large, and about something else: a page, a sitemap, white space without end.
    else if (head.length > XML_LIMITS.preambleCharactersMax) return "not_a_report";
    return null;
  };
};

const DECLARATION = /<!(?:DOCTYPE|ENTITY)/i;
const DECLARATION_CHARACTERS = "<!DOCTYP".length;

interface End {
  readonly state: "before" | "inside" | "after";
  readonly faults: number;
  readonly faultsMax: number;
}

const judge = ({ state, faults, faultsMax }: End): ReportProblem | null => {
  if (faults > faultsMax) return "malformed";
  if (state === "before") return "not_a_report";
  return state === "after" ? null : "truncated";
};
