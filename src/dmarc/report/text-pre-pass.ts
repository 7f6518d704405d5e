/** Open elements that the pass keeps in mind. Nothing that is a report comes near it. */
const OPEN_ELEMENTS_MAX = 64;

/** Elements of RFC 7489 App. C and RFC 9990, without prefix: a tag of such a name is a tag even when nothing closes it. */
const REPORT_ELEMENTS: ReadonlySet<string> = new Set(
  (
    "feedback version report_metadata org_name email extra_contact_info report_id date_range begin end error errors " +
    "generator policy_published domain p sp np adkim aspf pct fo testing discovery_method record row source_ip count " +
    "policy_evaluated disposition dkim spf reason type comment identifiers identities envelope_to envelope_from " +
    "header_from auth_results selector result human_result scope"
  ).split(" "),
);

/** `<name …>`, `</name>` or `<name/>` from the `<` on; attributes are not looked into. */
const TAG = /<(\/?)([A-Za-z_][\w.:-]*)(?=[\s/>])([^<>]*)>/y;
/** Skipped whole: nothing inside is markup. */
const OPAQUE = [
  ["<!--", "-->"],
  ["<![CDATA[", "]]>"],
  ["<?", "?>"],
] as const;

const BARE_AMPERSAND = /&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[\da-fA-F]{1,6});)/g;
const NOT_XML = /[^\t\n\r\u0020-\uFFFD]/g;

/** Ceilings of a repair. A text beyond them is not nearly XML, and repairing it would cost more than it is worth. */
export const REPAIR_LIMITS = { charactersMax: 16 * 1024 * 1024, changesMax: 100_000 } as const;

/**
 * Turns a text that is nearly XML into one that a parser takes: a bare `&`, a `<` that begins no tag, an address in
 * angle brackets (`<user@host>`), a tag that nothing closes (`<abc123>` in a report id, a stray `<xs:schema>`) and a
 * closing tag that nothing opened become text; characters that XML forbids become U+FFFD; what follows the closing tag
 * of `feedback` is left out.
 *
 * Elements of a report are kept as tags even when unclosed, so that a cut-off file still shows where it was cut. Linear
 * in the length of the text. Null when the text exceeds `REPAIR_LIMITS`.
 */
export const repairText = (text: string): string | null => {
  if (text.length > REPAIR_LIMITS.charactersMax) return null;
  const clean = text.replace(NOT_XML, "\uFFFD");
  const closed = closedNames(clean);
  const isMissing = OPAQUE.map(() => false);
  const open: string[] = [];
  const out = createRepairedText(clean);
  let at = clean.indexOf("<");
  while (at !== -1 && out.changes() <= REPAIR_LIMITS.changesMax) {
    const opaqueEnd = findOpaqueEnd(clean, at, isMissing);
    const tag = opaqueEnd === null ? tagAt(clean, at) : null;
    let end = at + 1;
    if (opaqueEnd !== null) {
      out.keepAsItIs(at, opaqueEnd);
      end = opaqueEnd;
    } else if (tag !== null && follow(tag, open, closed)) end = at + tag.length;
    else out.escape(at);
    if (tag?.isClosing === true && localName(tag.name) === "feedback") return out.finish(end);
    at = clean.indexOf("<", end);
  }
  return out.finish(clean.length);
};

/** Copies a text in runs as long as they go, so that the cost is that of the changes. */
const createRepairedText = (text: string) => {
  const pieces: string[] = [];
  let copied = 0;
  let changes = 0;
  const escapeAmpersand = (): string => {
    changes += 1;
    return changes > REPAIR_LIMITS.changesMax ? "&" : "&amp;";
  };
  const copyTo = (end: number): void => {
    if (end > copied) pieces.push(text.slice(copied, end).replace(BARE_AMPERSAND, escapeAmpersand));
    copied = Math.max(copied, end);
  };
  return {
    changes: () => changes,
    escape(at: number): void {
      copyTo(at);
      pieces.push("&lt;");
      copied = at + 1;
      changes += 1;
    },
    keepAsItIs(from: number, to: number): void {
      copyTo(from);
      pieces.push(text.slice(from, to));
      copied = to;
    },
    finish(end: number): string | null {
      copyTo(end);
      return changes > REPAIR_LIMITS.changesMax ? null : pieces.join("");
    },
  };
};

const closedNames = (text: string): ReadonlySet<string> => {
  const names = new Set<string>();
  for (const match of text.matchAll(/<\/([A-Za-z_][\w.:-]*)\s*>/g)) names.add(match[1] ?? "");
  return names;
};

/** The name without its namespace prefix, lower case. */
export const localName = (name: string): string => name.slice(name.lastIndexOf(":") + 1).toLowerCase();

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
  // Words behind the name that are no attributes: somebody's display name, not a tag.
  if (/^\s+[^\s=/]/.test(rest) && !rest.includes("=")) return null;
  return { name, length: whole.length, isClosing, isEmpty: rest.endsWith("/") };
};

/** Says whether a tag has its place among the open elements, and keeps them up to date. */
const follow = (tag: Tag, open: string[], closed: ReadonlySet<string>): boolean => {
  if (tag.isClosing) {
    const index = open.lastIndexOf(tag.name);
    if (index === -1) return false;
    open.length = index;
    return true;
  }
  if (tag.isEmpty) return true;
  if (!closed.has(tag.name) && !REPORT_ELEMENTS.has(localName(tag.name))) return false;
  if (open.length >= OPEN_ELEMENTS_MAX) return false;
  open.push(tag.name);
  return true;
};

/** Where a comment, CDATA section or instruction that begins here ends. An end once not found is not sought again. */
const findOpaqueEnd = (text: string, start: number, isMissing: boolean[]): number | null => {
  for (const [index, [opening, closing]] of OPAQUE.entries()) {
    if (isMissing[index] === true || !text.startsWith(opening, start)) continue;
    const end = text.indexOf(closing, start + opening.length);
    if (end !== -1) return end + closing.length;
    isMissing[index] = true;
  }
  return null;
};
