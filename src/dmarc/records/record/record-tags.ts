import { parseAddress } from "../../../foundation/mail/address.ts";

/** One `name=value` of a record, with the offsets of its value, so that an edit can keep everything else. */
export interface RecordTag {
  /** Lower case. */
  readonly name: string;
  /** As written, without the white space around it. */
  readonly value: string;
  /** Offset in the text of what follows the `=`, white space included. */
  readonly valueStart: number;
  /** Offset of the `;` that ends the tag, or of the end of the text. */
  readonly valueEnd: number;
}

/** The text between two `;`: a tag, nothing, or something else. */
export type RecordPart =
  | { readonly kind: "tag"; readonly tag: RecordTag }
  | { readonly kind: "empty" }
  | { readonly kind: "other"; readonly text: string };

const TAG_NAME = /^[a-z][a-z\d_]*$/i;

/**
 * Splits the text of a record at its `;` (the tag-list of RFC 6376 §3.2, which RFC 9989 §4.7 builds on), in order, nothing left
 * out. Text behind a final `;` is a part only if it is not white space. White space is space, tab, CR and LF.
 */
export const splitRecord = (text: string): readonly RecordPart[] => {
  const parts: RecordPart[] = [];
  for (let start = 0; start <= text.length;) {
    const semicolon = text.indexOf(";", start);
    const end = semicolon === -1 ? text.length : semicolon;
    const part = readPart(text, start, end);
    if (part.kind !== "empty" || semicolon !== -1) parts.push(part);
    start = end + 1;
  }
  return parts;
};

/** Removes the white space of a record (space, tab, CR, LF) from both ends, and no other: a no-break space is a fault to be seen. */
export const trimRecordSpace = (text: string): string => {
  let start = 0;
  let end = text.length;
  while (start < end && isRecordSpace(text, start)) start += 1;
  while (end > start && isRecordSpace(text, end - 1)) end -= 1;
  return text.slice(start, end);
};

const isRecordSpace = (text: string, offset: number) => " \t\r\n".includes(text.charAt(offset));

const readPart = (text: string, start: number, end: number): RecordPart => {
  const whole = text.slice(start, end);
  const trimmed = trimRecordSpace(whole);
  if (trimmed === "") return { kind: "empty" };
  const equals = whole.indexOf("=");
  const name = equals === -1 ? "" : trimRecordSpace(whole.slice(0, equals));
  if (!TAG_NAME.test(name)) return { kind: "other", text: trimmed };
  const value = trimRecordSpace(whole.slice(equals + 1));
  return { kind: "tag", tag: { name: name.toLowerCase(), value, valueStart: start + equals + 1, valueEnd: end } };
};

/** A piece of two texts: in both, only in the one before, or only in the one after. */
interface RecordDiffPart {
  readonly kind: "same" | "removed" | "added";
  readonly text: string;
}

/** A tag that two records do not have in common; null where a record lacks it. */
interface TagDifference {
  readonly tag: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** Tags, values of a list, and what stands between them. */
const PIECES = /[;,]\s*|[^;,]+/g;
/** Longer middle parts are shown as replaced: comparing them costs the square of their number. */
const COMPARED_MAX = 200;

/**
 * How one text becomes the other, piece by piece: `same` and `removed` together are the text before, `same` and `added` the text
 * after. Never throws.
 */
export const diffRecords = (before: string, after: string): readonly RecordDiffPart[] => {
  const [was, is] = [before.match(PIECES) ?? [], after.match(PIECES) ?? []];
  const shortest = Math.min(was.length, is.length);
  let start = 0;
  while (start < shortest && was[start] === is[start]) start += 1;
  let end = 0;
  while (end < shortest - start && was[was.length - 1 - end] === is[is.length - 1 - end]) end += 1;
  return joined([
    ...partsOf("same", was.slice(0, start)),
    ...middleDiff(was.slice(start, was.length - end), is.slice(start, is.length - end)),
    ...partsOf("same", was.slice(was.length - end)),
  ]);
};

const partsOf = (kind: RecordDiffPart["kind"], texts: readonly string[]) => texts.map((text) => ({ kind, text }));

/** By the longest common subsequence. */
const middleDiff = (was: readonly string[], is: readonly string[]): RecordDiffPart[] => {
  if (was.length > COMPARED_MAX || is.length > COMPARED_MAX) {
    return [...partsOf("removed", was), ...partsOf("added", is)];
  }
  const lengths = commonLengths(was, is);
  const lengthAt = (i: number, j: number) => lengths[i]?.[j] ?? 0;
  const parts: RecordDiffPart[] = [];
  let i = 0;
  let j = 0;
  while (i < was.length && j < is.length) {
    const [old = "", new_ = ""] = [was[i], is[j]];
    if (old === new_) {
      parts.push({ kind: "same", text: old });
      i += 1;
      j += 1;
    } else if (lengthAt(i + 1, j) >= lengthAt(i, j + 1)) {
      parts.push({ kind: "removed", text: old });
      i += 1;
    } else {
      parts.push({ kind: "added", text: new_ });
      j += 1;
    }
  }
  return [...parts, ...partsOf("removed", was.slice(i)), ...partsOf("added", is.slice(j))];
};

/** Of the pieces from `i` and from `j` on: how many they have in common, in order. */
const commonLengths = (was: readonly string[], is: readonly string[]): readonly (readonly number[])[] => {
  const lengths: number[][] = Array.from({ length: was.length + 1 }, () => Array<number>(is.length + 1).fill(0));
  for (let i = was.length - 1; i >= 0; i--) {
    const [row, below] = [lengths[i], lengths[i + 1]];
    if (row === undefined || below === undefined) continue;
    for (let j = is.length - 1; j >= 0; j--) {
      row[j] = was[i] === is[j] ? (below[j + 1] ?? 0) + 1 : Math.max(below[j] ?? 0, row[j + 1] ?? 0);
    }
  }
  return lengths;
};

/** Neighbours of the same kind become one part; within a change, what is removed stands before what is added. */
const joined = (parts: readonly RecordDiffPart[]): readonly RecordDiffPart[] => {
  const found: RecordDiffPart[] = [];
  let removed = "";
  let added = "";
  const flush = () => {
    if (removed !== "") found.push({ kind: "removed", text: removed });
    if (added !== "") found.push({ kind: "added", text: added });
    removed = "";
    added = "";
  };
  for (const { kind, text } of parts) {
    if (kind === "removed") removed += text;
    else if (kind === "added") added += text;
    else {
      flush();
      const last = found.at(-1);
      if (last?.kind === "same") found.splice(-1, 1, { kind, text: last.text + text });
      else found.push({ kind, text });
    }
  }
  flush();
  return found;
};

/** The tags in which two records differ, in the order of the new one; of a repeated tag the first counts. */
export const differentTags = (before: string, after: string): readonly TagDifference[] => {
  const [was, is] = [tagValues(before), tagValues(after)];
  return [...new Set([...is.keys(), ...was.keys()])].flatMap((tag) => {
    const difference = { tag, before: was.get(tag) ?? null, after: is.get(tag) ?? null };
    return difference.before === difference.after ? [] : [difference];
  });
};

const tagValues = (text: string): ReadonlyMap<string, string> => {
  const values = new Map<string, string>();
  for (const part of splitRecord(text)) {
    if (part.kind === "tag" && !values.has(part.tag.name)) values.set(part.tag.name, part.tag.value);
  }
  return values;
};

/** Why receivers will not send a report to a destination. */
export type UriProblem = "uri_empty" | "uri_without_mailto" | "uri_not_mailto" | "uri_invalid";

/** One destination of `rua` or `ruf`, as written between two commas. */
export interface ReportUri {
  /** As written, without the white space around it. */
  readonly text: string;
  /** Offset in the tag's value after the last character of `text`. */
  readonly end: number;
  /** The mailbox in normal form, percent-encoding undone (RFC 6068 §2); null when there is a problem. */
  readonly address: string | null;
  /** The historic size limit of RFC 7489 §6.4 with its `!`: `!10m`. */
  readonly sizeSuffix: string | null;
  readonly problem: UriProblem | null;
}

const SIZE_SUFFIX = /!\d+[kmgt]?$/i;
const SCHEME = /^([a-z][a-z\d+.-]*):/i;
/** RFC 6068 §2 `some-delims` and `unreserved`, without the `!`, `,` and `;` that mean something else in a record (RFC 9989 §4.8). */
const UNENCODED = /[^\w.~$'*+@-]/gu;

/**
 * Reads the value of `rua` or `ruf`: URIs with commas between them (RFC 9989 §4.8), white space around them allowed. A value of
 * white space only has no URI; nothing between commas is a URI with the problem `uri_empty`.
 */
export const parseReportUris = (value: string): readonly ReportUri[] => {
  if (trimRecordSpace(value) === "") return [];
  const uris: ReportUri[] = [];
  let start = 0;
  for (const piece of value.split(",")) {
    const text = trimRecordSpace(piece);
    uris.push({ text, end: start + piece.indexOf(text) + text.length, ...readUri(text) });
    start += piece.length + 1;
  }
  return uris;
};

/** The normal form of a reporting address for comparison: case and percent-encoding do not matter. Null for an invalid one. */
export const reportAddress = (address: string): string | null => {
  const parsed = parseAddress(address);
  return parsed.ok ? parsed.value.normalized : null;
};

/** Writes an address as a `mailto:` URI that can stand in `rua`; what would end it there is percent-encoded as UTF-8 (RFC 6068 §2). */
export const mailtoUri = (address: string): string =>
  `mailto:${address
    .toWellFormed()
    .replace(UNENCODED, (character) =>
      [...new TextEncoder().encode(character)]
        .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`)
        .join(""),
    )}`;

type UriReading = Pick<ReportUri, "address" | "sizeSuffix" | "problem">;

const readUri = (text: string): UriReading => {
  const sizeSuffix = SIZE_SUFFIX.exec(text)?.[0] ?? null;
  const failed = (problem: UriProblem): UriReading => ({ address: null, sizeSuffix, problem });
  if (text === "") return failed("uri_empty");
  const uri = sizeSuffix === null ? text : text.slice(0, -sizeSuffix.length);
  const scheme = SCHEME.exec(uri)?.[1];
  if (scheme === undefined) return failed("uri_without_mailto");
  if (scheme.toLowerCase() !== "mailto") return failed("uri_not_mailto");
  const address = readMailto(uri.slice("mailto:".length));
  return address === null ? failed("uri_invalid") : { address, sizeSuffix, problem: null };
};

/** The mailbox of a `mailto:` URI. Header fields (`?subject=`) are dropped: reporters write their own. */
const readMailto = (rest: string): string | null => {
  const to = rest.split("?", 1)[0] ?? "";
  // Otherwise `mailto://` would be a local part that begins with slashes.
  if (/\s/u.test(to) || to.startsWith("//")) return null;
  const decoded = decodePercent(to);
  return decoded === null ? null : reportAddress(decoded);
};

const decodePercent = (text: string): string | null => {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
};
