import { nextTurn } from "../../base/clock.ts";
import { isUtf8 } from "node:buffer";
import { SaxesParser } from "saxes";
import { err, ok, type Result } from "../../base/errors.ts";
import type { ReportProblem } from "./outcome.ts";
import { localName, repairText } from "./text-pre-pass.ts";

/** Ceilings of one document. */
export const XML_LIMITS = {
  depthMax: 32,
  attributesMax: 1000,
  /** Characters of one element's text that are kept; the rest is dropped. */
  textCharactersMax: 4096,
  /** Faults passed over in a text that has been repaired already. */
  faultsMax: 10_000,
} as const;

/** The characters given to the parser at a time: how far it can run beyond a ceiling before it is stopped. */
const CHUNK_CHARACTERS = 16_384;
/** After so many the rest of the process has its turn: 64 MB in one go would stop it for seconds. */
const TURN_CHARACTERS = 32 * CHUNK_CHARACTERS;

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
 * A document type declaration refuses the document before anything is parsed, and entities other than the five of XML
 * are never expanded. A text that is not well-formed is repaired (`repairText`) and walked again with a new sink, so
 * sound reports pay nothing for the others. Large documents are read in turns with everybody else. Never throws.
 */
export const walkReport = async <S extends ReportSink>(
  bytes: Uint8Array,
  createSink: () => S,
): Promise<Result<{ readonly sink: S; readonly walk: Walk }, ReportProblem>> => {
  const text = decodeXml(bytes);
  if (/<!(?:DOCTYPE|ENTITY)/i.test(text)) return err("doctype");
  const strict = createSink();
  const first = await run(text, strict, 0);
  if (first.ok) return ok({ sink: strict, walk: { wasCompleted: false, wasRepaired: false } });
  if (first.error !== "malformed" && first.error !== "truncated") return first;
  const repaired = repairText(text);
  if (repaired === null) return first;
  const lenient = createSink();
  const second = await run(repaired, lenient, XML_LIMITS.faultsMax);
  if (!second.ok) return second;
  return ok({ sink: lenient, walk: { wasCompleted: second.value.wasCompleted, wasRepaired: true } });
};

/** The text of a document, from its first `<` on: by its byte order mark, else as UTF-8, else by what it says. */
const decodeXml = (bytes: Uint8Array): string => {
  const text = new TextDecoder(encodingOf(bytes)).decode(bytes);
  return text.slice(Math.max(0, text.indexOf("<")));
};

const encodingOf = (bytes: Uint8Array): Bun.Encoding => {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return "utf-16le";
  if (first === 0xfe && second === 0xff) return "utf-16be" as Bun.Encoding;
  if (first === 0x3c && second === 0) return "utf-16le";
  if (first === 0 && second === 0x3c) return "utf-16be" as Bun.Encoding;
  if (isUtf8(bytes)) return "utf-8";
  const head = new TextDecoder("latin1").decode(bytes.subarray(0, 200));
  // Only the encodings that are in use; anything else is read as UTF-8 with replacement.
  return /^[^>]*encoding\s*=\s*["'](?:iso-8859-1|windows-1252|latin1)["']/i.test(head) ? "windows-1252" : "utf-8";
};

/** The five entities of XML and nothing that an object inherits: `&constructor;` is no entity. */
const ENTITIES: Readonly<Record<string, string>> = Object.assign(Object.create(null), {
  amp: "&",
  gt: ">",
  lt: "<",
  quot: '"',
  apos: "'",
});

const run = async (
  text: string,
  sink: ReportSink,
  faultsMax: number,
): Promise<Result<{ wasCompleted: boolean }, ReportProblem>> => {
  const parser = new SaxesParser({ xmlns: false, position: false });
  parser.ENTITIES = { ...ENTITIES };
  Object.setPrototypeOf(parser.ENTITIES, null);
  const path: string[] = [];
  let state: "before" | "inside" | "after" = "before";
  let outside = 0;
  let pending = "";
  let faults = 0;
  let attributes = 0;
  let problem: ReportProblem | null = null;
  const stopAt = (found: ReportProblem | null): void => {
    problem ??= found;
  };

  parser.on("error", () => {
    faults += 1;
  });
  parser.on("doctype", () => stopAt("doctype"));
  parser.on("attribute", () => {
    attributes += 1;
    if (attributes > XML_LIMITS.attributesMax && faults <= faultsMax) stopAt("malformed");
  });
  parser.on("opentag", ({ name }) => {
    attributes = 0;
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
  for (let at = 0; at < text.length && !isOver(); at += CHUNK_CHARACTERS) {
    if (at > 0 && at % TURN_CHARACTERS === 0) await nextTurn();
    parser.write(text.slice(at, at + CHUNK_CHARACTERS));
  }
  if (!isOver()) parser.close();
  return judge({ problem, state, faults, faultsMax, isBlank: pending.trim() === "", depth: path.length });
};

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
