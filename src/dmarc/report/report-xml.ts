import { nextTurn } from "../../base/clock.ts";
import { err, ok, type Result } from "../../base/errors.ts";
import type { ReportProblem } from "./outcome.ts";
import { localName, REPAIR_LIMITS, repairText } from "./text-pre-pass.ts";
import { createXmlParser } from "./xml-parser.ts";
import { textPieces, wholeXml, xmlPieces } from "./xml-text.ts";

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

/** How the end of the document was found. */
export interface Walk {
  /** `feedback` was not closed, but nothing was open below it. */
  readonly wasCompleted: boolean;
  /** The text was not well-formed and was read after repair. */
  readonly wasRepaired: boolean;
}

/**
 * Walks through the first `feedback` element of a document, wherever it stands, and tells a sink what is in it.
 *
 * A document type declaration, wherever it stands, refuses the document before the parser comes to it, and entities other
 * than the five of XML are never expanded. A text that is not well-formed is repaired (`repairText`) and walked again with a new sink, so
 * sound reports pay nothing for the others, as far as the budget goes, which is used up by that. Large documents are read in turns with everybody else. Never throws.
 */
export const walkReport = async <S extends ReportSink>(
  bytes: Uint8Array,
  createSink: () => S,
  budget: { repairCharactersLeft: number },
): Promise<Result<{ readonly sink: S; readonly walk: Walk }, ReportProblem>> => {
  const strict = createSink();
  const first = await run(xmlPieces(bytes), strict, 0);
  if (first.ok) return ok({ sink: strict, walk: { wasCompleted: false, wasRepaired: false } });
  if (first.error !== "malformed" && first.error !== "truncated") return first;
  const text = await wholeXml(bytes, Math.min(REPAIR_LIMITS.charactersMax, budget.repairCharactersLeft));
  if (text === null) return first;
  budget.repairCharactersLeft -= text.length;
  const repaired = await repairText(text);
  if (repaired === null) return first;
  const lenient = createSink();
  const second = await run(textPieces(repaired), lenient, XML_LIMITS.faultsMax);
  if (!second.ok) return second;
  return ok({ sink: lenient, walk: { wasCompleted: second.value.wasCompleted, wasRepaired: true } });
};

const run = async (
  pieces: Iterable<string>,
  sink: ReportSink,
  faultsMax: number,
): Promise<Result<{ wasCompleted: boolean }, ReportProblem>> => {
  const { parser, read } = createXmlParser();
  const screen = createScreen();
  const path: string[] = [];
  let state: "before" | "inside" | "after" = "before";
  let outside = 0;
  let pending = "";
  let faults = 0;
  let attributes = 0;
  let attributeCharacters = 0;
  let problem: ReportProblem | null = null;
  const stopAt = (found: ReportProblem | null): void => {
    problem ??= found;
  };

  parser.on("error", () => {
    faults += 1;
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
    pending = "";
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
    if (found !== null) return err(found);
    if (!read(piece, isOver)) stopAt("malformed");
    if (problem !== null) break;
  }
  if (!isOver()) parser.close();
  return judge({ problem, state, faults, faultsMax, isBlank: pending.trim() === "", depth: path.length });
};

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
  readonly problem: ReportProblem | null;
  readonly state: "before" | "inside" | "after";
  readonly faults: number;
  readonly faultsMax: number;
  readonly isBlank: boolean;
  readonly depth: number;
}

const judge = (end: End): Result<{ wasCompleted: boolean }, ReportProblem> => {
  if (end.problem !== null) return err(end.problem);
  if (end.faults > end.faultsMax) return err("malformed");
  if (end.state === "before") return err("not_a_report");
  if (end.state === "after") return ok({ wasCompleted: false });
  // Something begun and not ended, be it an element or half a tag: more was to come, and what is here is not all.
  return end.depth === 0 && end.isBlank ? ok({ wasCompleted: true }) : err("truncated");
};
