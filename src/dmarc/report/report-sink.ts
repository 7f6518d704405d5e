import type { ReportProblem } from "./outcome.ts";

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
