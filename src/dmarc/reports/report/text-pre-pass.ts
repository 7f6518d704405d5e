import { cached } from "../../../foundation/base/bounded-map.ts";
import { nextTurn } from "../../../foundation/base/clock.ts";

/** Open elements that are tracked. No report comes near it. */
const OPEN_ELEMENTS_MAX = 64;

/** Elements of RFC 7489 App. C and RFC 9990, without prefix: a tag with such a name is a tag even when nothing closes it. */
export const REPORT_ELEMENTS: ReadonlySet<string> = new Set(
  (
    "feedback version report_metadata org_name email extra_contact_info report_id date_range begin end error errors " +
    "generator policy_published domain p sp np adkim aspf pct fo testing discovery_method record row source_ip count " +
    "policy_evaluated disposition dkim spf reason type comment identifiers identities envelope_to envelope_from " +
    "header_from auth_results selector result human_result scope"
  ).split(" "),
);

/** `<name …>`, `</name>` or `<name/>` from the `<` on; attributes are not parsed. */
const TAG = /<(\/?)([A-Za-z_][\w.:-]{0,1023})(?=[\s/>])([^<>]{0,65535})>/y;
const CLOSING_TAG = /<\/([A-Za-z_][\w.:-]{0,1023})\s*>/y;
/** Skipped whole: nothing inside is markup. */
const OPAQUE = [
  ["<!--", "-->"],
  ["<![CDATA[", "]]>"],
  ["<?", "?>"],
] as const;

const ENTITY = /&(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[\da-fA-F]{1,6});/y;
const NOT_XML = /[^\t\n\r\u0020-\uFFFD]/g;

/** Limits of a repair. A text that exceeds them is not nearly XML. */
export const REPAIR_LIMITS = { charactersMax: 16 * 1024 * 1024, changesMax: 100_000, namesMax: 10_000 } as const;

/** Tags and signs handled, and characters cleaned, before others have their turn. */
const TURN = { steps: 8192, characters: 256 * 1024 } as const;

/**
 * Turns a text that is nearly XML into well-formed XML: a bare `&`, a `<` that begins no tag, an address in angle brackets
 * (`<user@host>`) and a tag that nothing closes (`<abc123>` in a report id, a stray `<xs:schema>`) become text; characters
 * that XML forbids become U+FFFD; whatever follows the closing tag of `feedback` is dropped. Line ends do not move.
 *
 * Elements of a report stay tags even when unclosed, and end tags even when nothing opened them, so that a missing part can
 * still be located. Half a tag in a record, or between the sections of a report where no text belongs, is not repaired: there
 * a part is missing. Linear in the length of the text; others have their turn in between. Null when the text exceeds
 * `REPAIR_LIMITS`.
 */
export const repairText = async (text: string): Promise<Repair | null> => {
  if (text.length > REPAIR_LIMITS.charactersMax) return null;
  const clean = await withoutForbidden(text);
  const closed = await closedNames(clean);
  if (closed === null) return null;
  const repair = createRepair(clean, closed);
  for (let steps = 1; repair.step(); steps += 1) if (steps % TURN.steps === 0) await nextTurn();
  return repair.result();
};

/** The result of a repair. */
export interface Repair {
  readonly text: string;
  /** The line of the text, from 1, at which half a tag shows that a part is missing; null for none. */
  readonly damagedLine: number | null;
}

const withoutForbidden = async (text: string): Promise<string> => {
  const pieces: string[] = [];
  for (let at = 0; at < text.length; at += TURN.characters) {
    if (at > 0) await nextTurn();
    pieces.push(text.slice(at, at + TURN.characters).replace(NOT_XML, "\uFFFD"));
  }
  return pieces.join("");
};

/** The names of all end tags; null for more than any report has. */
const closedNames = async (text: string): Promise<ReadonlySet<string> | null> => {
  const names = new Set<string>();
  let steps = 0;
  for (let at = text.indexOf("</"); at !== -1; at = text.indexOf("</", at + 2)) {
    steps += 1;
    if (steps % TURN.steps === 0) await nextTurn();
    CLOSING_TAG.lastIndex = at;
    const name = CLOSING_TAG.exec(text)?.[1];
    if (name !== undefined) names.add(name);
    if (names.size > REPAIR_LIMITS.namesMax) return null;
  }
  return names;
};

/** Goes from one `<` or `&` to the next, and copies the text between them. */
const createRepair = (text: string, closed: ReadonlySet<string>) => {
  const find = (sign: "<" | "&", from: number) => {
    const at = text.indexOf(sign, from);
    return at === -1 ? text.length : at;
  };
  const isMissing = OPAQUE.map(() => false);
  const open: string[] = [];
  const pieces: string[] = [];
  let bracket = find("<", 0);
  let ampersand = find("&", 0);
  let end = text.length;
  let copied = 0;
  let changes = 0;
  let damagedAt: number | null = null;

  const replaceSign = (at: number, by: string) => {
    pieces.push(text.slice(copied, at), by);
    copied = at + 1;
    changes += 1;
  };

  const stepAmpersand = () => {
    ENTITY.lastIndex = ampersand;
    if (!ENTITY.test(text)) replaceSign(ampersand, "&amp;");
    ampersand = find("&", ampersand + 1);
  };

  const stepBracket = () => {
    const at = bracket;
    const opaqueEnd = findOpaqueEnd(text, at, isMissing);
    if (opaqueEnd !== null) {
      bracket = find("<", opaqueEnd);
      if (ampersand < opaqueEnd) ampersand = find("&", opaqueEnd);
      return;
    }
    const tag = tagAt(text, at);
    const isTag = tag !== null && !isWord(text, at, { tag, around: open.at(-1) }) && follow(tag, open, closed);
    if (!isTag && isHalfTag(text, at, open)) damagedAt = at;
    if (!isTag) replaceSign(at, "&lt;");
    const next = isTag ? at + tag.length : at + 1;
    bracket = find("<", next);
    if (tag?.isClosing === true && localName(tag.name) === "feedback") end = next;
  };

  return {
    /** Handles the next sign. False when there is none, or when there were too many changes. */
    step(): boolean {
      const at = Math.min(bracket, ampersand);
      if (at >= end || damagedAt !== null || changes > REPAIR_LIMITS.changesMax) return false;
      if (at === ampersand) stepAmpersand();
      else stepBracket();
      return true;
    },
    result(): Repair | null {
      if (changes > REPAIR_LIMITS.changesMax) return null;
      pieces.push(text.slice(copied, end));
      return { text: pieces.join(""), damagedLine: damagedAt === null ? null : lineAt(text, damagedAt) };
    },
  };
};

/** An address in angle brackets. */
const ADDRESS_IN_BRACKETS = /<[^<>@\s]{1,320}@[^<>@\s]{1,320}>/y;

/** A text in angle brackets, or an address with the first of them only, up to the end tag of the element that it is in. */
const BRACKETED_TO_END =
  /<(?:[^<>]{0,320}>|[^<>@\s]{1,320}@[^<>@\s]{1,320})[^<>]{0,320}<\/([A-Za-z_][\w.:-]{0,1023})\s*>/y;

/** Elements of a record whose text is a name or an address, which some reporters write in angle brackets. */
const NAMES: ReadonlySet<string> = new Set(["envelope_to", "envelope_from", "header_from", "domain", "selector"]);

/** Elements of a record that contain sentences. */
const PROSE: ReadonlySet<string> = new Set(["comment", "human_result"]);

/** Elements with text only, each once in a report and outside of its records: what is between such a tag and its end tag counts nothing. */
const METADATA_TEXTS: ReadonlySet<string> = new Set([
  "org_name",
  "email",
  "extra_contact_info",
  "report_id",
  "generator",
]);

const METADATA_TEXT_CHARACTERS_MAX = 1024;
const NEXT_END_TAG = /<\/([A-Za-z_][\w.:-]{0,1023})\s*>/; // input ≤ 1024 characters

/** Whether the name of an element in angle brackets is part of a text: `<org_name>x <email></org_name>`. */
const isWord = (text: string, at: number, { tag, around }: { tag: Tag; around: string | undefined }) => {
  if (tag.isClosing || tag.isEmpty || around === undefined || tag.name === around) return false;
  if (!METADATA_TEXTS.has(localName(around))) return false;
  return NEXT_END_TAG.exec(text.slice(at, at + METADATA_TEXT_CHARACTERS_MAX))?.[1] === around;
};

/** Whether a `<` that begins no tag is the rest of one, by its position and what follows. */
const isHalfTag = (text: string, at: number, open: readonly string[]) => {
  const names = open.map(localName);
  const around = names.at(-1) ?? "";
  if (!names.includes("record") && around !== "feedback") return false;
  if (PROSE.has(around) && !/[A-Za-z_/!?]/.test(text.charAt(at + 1))) return false;
  ADDRESS_IN_BRACKETS.lastIndex = at;
  if (ADDRESS_IN_BRACKETS.test(text)) return false;
  // Nothing is missing in an element of text that ends with its own end tag, and whose text began here or is a sentence.
  if (!PROSE.has(around) && !(NAMES.has(around) && text[at - 1] === ">")) return true;
  BRACKETED_TO_END.lastIndex = at;
  return BRACKETED_TO_END.exec(text)?.[1] !== open.at(-1);
};

/** The line of a character, from 1. */
const lineAt = (text: string, at: number) => text.slice(0, at).split(/\r\n|\r|\n/).length;

const withoutPrefix = (name: string) => name.slice(name.lastIndexOf(":") + 1).toLowerCase();

/** The same thirty names are in every report. */
const knownLocalName = cached(1_000, withoutPrefix);
const LOCAL_NAME_KEPT_CHARACTERS = 64;

/** The name without its namespace prefix, lower case. */
export const localName = (name: string): string =>
  name.length <= LOCAL_NAME_KEPT_CHARACTERS ? knownLocalName(name) : withoutPrefix(name);

interface Tag {
  readonly name: string;
  readonly length: number;
  readonly isClosing: boolean;
  readonly isEmpty: boolean;
}

const tagAt = (text: string, start: number): Tag | null => {
  TAG.lastIndex = start;
  const match = TAG.exec(text);
  if (match === null) return null;
  const [whole, slash = "", name = "", rest = ""] = match;
  const isClosing = slash !== "";
  if (isClosing && rest.trim() !== "") return null;
  // Words after the name that are not attributes: a display name, not a tag.
  if (/^\s+[^\s=/]/.test(rest) && !rest.includes("=")) return null;
  return { name, length: whole.length, isClosing, isEmpty: rest.endsWith("/") };
};

/** Returns whether a tag stays a tag, and updates the open elements. */
const follow = (tag: Tag, open: string[], closed: ReadonlySet<string>) => {
  if (tag.isClosing) {
    const index = open.lastIndexOf(tag.name);
    if (index !== -1) open.length = index;
    return true;
  }
  if (tag.isEmpty) return true;
  if (!closed.has(tag.name) && !REPORT_ELEMENTS.has(localName(tag.name))) return false;
  if (open.length >= OPEN_ELEMENTS_MAX) return false;
  open.push(tag.name);
  return true;
};

/** Where a comment, CDATA section or instruction that begins here ends. An end that was not found once is not searched for again. */
const findOpaqueEnd = (text: string, start: number, isMissing: boolean[]): number | null => {
  for (const [index, [opening, closing]] of OPAQUE.entries()) {
    if (isMissing[index] === true || !text.startsWith(opening, start)) continue;
    const end = text.indexOf(closing, start + opening.length);
    if (end !== -1) return end + closing.length;
    isMissing[index] = true;
  }
  return null;
};
