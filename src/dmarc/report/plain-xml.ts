import { nextTurn } from "../../base/clock.ts";
import { err, ok, type Result } from "../../base/errors.ts";
import { copiedText } from "./copied-text.ts";
import type { ReportProblem } from "./outcome.ts";
import { type ReportSink, XML_LIMITS } from "./report-sink.ts";
import { localName } from "./text-pre-pass.ts";

/** The document is not plain: only a complete parser can tell what it says. */
export const NOT_PLAIN = "not_plain";

/** Of a tag with its attributes. */
const TAG_CHARACTERS_MAX = 1024;
/** Without a whole tag. */
const UNREAD_CHARACTERS_MAX = TAG_CHARACTERS_MAX + XML_LIMITS.textCharactersMax;
/** XML 1.0 only: 1.1 has other line ends. */
const XML_DECLARATION =
  /^<\?xml\s+version\s*=\s*(?:"1\.0"|'1\.0')(?:\s+encoding\s*=\s*(?:"[A-Za-z][\w.-]*"|'[A-Za-z][\w.-]*'))?(?:\s+standalone\s*=\s*(?:"(?:yes|no)"|'(?:yes|no)'))?\s*\?>/;
/** What XML forbids, and characters in two halves, which a piece may split. */
const UNUSUAL = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd]/;
const BLANK = /^[ \t\r\n]*$/;
const NAME = /^[A-Za-z_][\w.:-]*$/;
const ATTRIBUTE = /[ \t\r\n]+([A-Za-z_][\w.:-]*)[ \t\r\n]*=[ \t\r\n]*(?:"[^"<&]*"|'[^'<&]*')/g;
const ENTITY = /&(amp|lt|gt|quot|apos);/g;
const SIGNS: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };
const SLASH = 47;

/**
 * Passes the elements of `feedback` to a sink, as `walkReport` does, if the document is plain: well-formed XML 1.0 whose root is
 * `feedback`, without comments, sections, instructions, a document type and numeric entities, and with text only where there are no
 * elements. That is what reporters write, and it is read several times faster than by the complete parser. `NOT_PLAIN` for
 * everything else, of which nothing follows; the sink is to be thrown away then.
 */
export const walkPlainReport = async (
  pieces: Iterable<string>,
  sink: ReportSink,
): Promise<Result<null, ReportProblem | typeof NOT_PLAIN>> => {
  const walk = new PlainWalk(sink);
  let rest = "";
  let isFirst = true;
  for (const piece of pieces) {
    if (!isFirst) await nextTurn();
    isFirst = false;
    if (UNUSUAL.test(piece)) return err(NOT_PLAIN);
    const text = rest + piece;
    const readTo = walk.read(text);
    if (typeof readTo !== "number") return err(readTo.problem);
    rest = text.slice(readTo);
  }
  return walk.isOver ? ok(null) : err(NOT_PLAIN);
};

interface Stop {
  readonly problem: ReportProblem | typeof NOT_PLAIN;
}

const UNCLEAR: Stop = { problem: NOT_PLAIN };

/** An open tag that was seen before. */
interface KnownTag {
  /** With its attributes. */
  readonly text: string;
  readonly name: string;
  readonly local: string;
  readonly isEmpty: boolean;
  /** The one that followed it last: as a rule the same follows it again. */
  next: KnownTag | null;
}

/** Goes from tag to tag. */
class PlainWalk {
  readonly #sink: ReportSink;
  /** Open elements as they were written, `feedback` first. */
  readonly #open: string[] = [];
  /** The same without `feedback`, as the sink gets them. */
  readonly #path: string[] = [];
  /** The tag that began last. */
  #tag: KnownTag | null = null;
  #hasBegun: boolean = false;
  /** Whether an element has ended since the last one began: the open one has elements in it then. */
  #hasChild: boolean = false;
  isOver: boolean = false;

  constructor(sink: ReportSink) {
    this.#sink = sink;
  }

  /** Reads what is whole in a text; returns how far that is. The rest is to be given again, with more behind it. */
  read(text: string): number | Stop {
    if (text.includes("<!")) return UNCLEAR;
    let at = 0;
    if (!this.#hasBegun) {
      at = XML_DECLARATION.exec(text)?.[0].length ?? 0;
      this.#hasBegun = true;
    }
    for (;;) {
      if (this.isOver) return BLANK.test(text.slice(at)) ? text.length : UNCLEAR;
      const start = text.indexOf("<", at);
      const end = text.indexOf(">", at);
      if (start === -1 || end === -1) return text.length - at > UNREAD_CHARACTERS_MAX ? UNCLEAR : at;
      if (end < start || end - start > TAG_CHARACTERS_MAX || start - at > XML_LIMITS.textCharactersMax) return UNCLEAR;
      const stop =
        text.charCodeAt(start + 1) === SLASH
          ? this.#readEnd(text, { at, start, end })
          : this.#readStart(text, { at, start, end });
      if (stop !== null) return stop;
      at = end + 1;
    }
  }

  /** `at`: where the text before the tag begins; the tag is from `start` to `end`. */
  #readStart(text: string, { at, start, end }: Place): Stop | null {
    if (start > at && !BLANK.test(text.slice(at, start))) return UNCLEAR;
    const tag = this.#tagAt(text, start + 1, end);
    if (tag === null) return UNCLEAR;
    const depth = this.#open.length;
    if (depth === 0) {
      if (tag.isEmpty || tag.local !== "feedback") return UNCLEAR;
      this.#open.push(tag.name);
      return null;
    }
    if (depth > XML_LIMITS.depthMax) return UNCLEAR;
    this.#path.push(tag.local);
    const problem = this.#sink.open(this.#path);
    if (problem !== null) return { problem: problem === "truncated" ? NOT_PLAIN : problem };
    this.#hasChild = tag.isEmpty;
    if (!tag.isEmpty) this.#open.push(tag.name);
    else {
      this.#sink.close(this.#path, "");
      this.#path.pop();
    }
    return null;
  }

  #tagAt(text: string, start: number, end: number): KnownTag | null {
    const next = this.#tag?.next ?? null;
    const isNext = next !== null && next.text.length === end - start && text.startsWith(next.text, start);
    const tag = isNext ? next : tagOf(text.slice(start, end));
    // A longer one is not kept, and would keep the text in memory that it is a part of.
    if (this.#tag !== null && tag !== null && tag.text.length <= KNOWN_CHARACTERS_MAX) this.#tag.next = tag;
    this.#tag = tag;
    return tag;
  }

  #readEnd(text: string, { at, start, end }: Place): Stop | null {
    const name = this.#open.pop();
    if (name === undefined || end - start - 2 !== name.length || !text.startsWith(name, start + 2)) return UNCLEAR;
    const content = start === at ? "" : contentOf(text.slice(at, start));
    if (content === null || (content !== "" && (this.#hasChild || this.#open.length === 0))) return UNCLEAR;
    if (this.#open.length === 0) this.isOver = true;
    else {
      this.#sink.close(this.#path, content);
      this.#path.pop();
    }
    this.#hasChild = true;
    return null;
  }
}

interface Place {
  readonly at: number;
  readonly start: number;
  readonly end: number;
}

/** The text of an element, trimmed; null for one that needs the complete parser. */
const contentOf = (raw: string): string | null => {
  const text = raw.trim();
  if (text.includes("\r")) return null;
  if (!text.includes("&")) return text;
  const isKnown = text.split("&").length - 1 === (text.match(ENTITY)?.length ?? 0);
  return isKnown ? text.replace(ENTITY, (_, name: string) => SIGNS[name] ?? "") : null;
};

/** A start tag without its brackets; null for one that needs the complete parser. */
const tagOf = (text: string): KnownTag | null => {
  const known = knownTags.get(text);
  if (known !== undefined) return known;
  const tag = parsedTag(text);
  if (tag === null || text.length > KNOWN_CHARACTERS_MAX) return tag;
  if (knownTags.size >= KNOWN_MAX) knownTags.clear();
  const kept = { ...tag, text: copiedText(text), name: copiedText(tag.name), local: copiedText(tag.local) };
  knownTags.set(kept.text, kept);
  return kept;
};

/** The same forty tags are in every report. */
const knownTags = new Map<string, KnownTag>();
const KNOWN_MAX = 1_000;
const KNOWN_CHARACTERS_MAX = 64;

const parsedTag = (text: string): KnownTag | null => {
  const isEmpty = text.endsWith("/");
  const inner = isEmpty ? text.slice(0, -1) : text;
  const nameEnd = inner.search(/[ \t\r\n]/);
  const name = nameEnd === -1 ? inner : inner.slice(0, nameEnd);
  if (!NAME.test(name)) return null;
  const attributes = nameEnd === -1 ? "" : inner.slice(nameEnd);
  const names = Array.from(attributes.matchAll(ATTRIBUTE), ([, attribute]) => attribute);
  if (new Set(names).size < names.length || !BLANK.test(attributes.replace(ATTRIBUTE, ""))) return null;
  return { text, name, local: localName(name), isEmpty, next: null };
};
