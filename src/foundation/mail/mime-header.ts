/** The fields of a header by their names in lower case; of several with one name the first. Folding is undone, nothing else. */
export type HeaderFields = ReadonlyMap<string, string>;

/** A field with parameters, such as Content-Type (RFC 2045 §5.1). Value and names are in lower case. */
interface ParameterField {
  readonly value: string;
  readonly parameters: ReadonlyMap<string, string>;
}

// A BOM at the beginning of a line is kept: taken off, it would turn another line into a field.
const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** Reads the lines of a header, which have no line ends. Only space and tab continue a field (RFC 5322 §2.2.3). */
export const readHeaderFields = (lines: readonly Uint8Array[]): HeaderFields => {
  const unfolded: string[][] = [];
  for (const line of lines) {
    const text = utf8.decode(line);
    if (/^[ \t]/.test(text)) unfolded.at(-1)?.push(text);
    if (unfolded.length === 0 || !/^[ \t]/.test(text)) unfolded.push([text]);
  }
  const fields = new Map<string, string>();
  for (const pieces of unfolded) {
    const field = pieces.join("");
    const colon = field.indexOf(":");
    const name = trimBlanks(colon === -1 ? field : field.slice(0, colon)).toLowerCase();
    if (fields.has(name)) continue;
    fields.set(name, colon === -1 ? "" : trimBlanks(field.slice(colon + 1).replace(/\r+/g, " ")));
  }
  return fields;
};

/** `String.trim` would also take away what makes a name another one, such as a no-break space. */
const trimBlanks = (text: string) => {
  const isBlank = (at: number) => text[at] === " " || text[at] === "\t";
  let [start, end] = [0, text.length];
  while (start < end && isBlank(start)) start++;
  while (end > start && isBlank(end - 1)) end--;
  return text.slice(start, end);
};

/** A parameter: `; name="quoted"` or `; name=token`; what stands behind a quoted value is ignored. */
const PARAMETER = /;[ \t]*([^;="]*)(?:=[ \t]*(?:"((?:[^"\\]|\\.)*)"[^;]*|([^;]*)))?/y;

/** Reads a field with parameters. Comments are ignored; of several parameters with one name the first counts. */
export const readParameterField = (field: string): ParameterField => {
  const end = field.indexOf(";");
  const value = (end === -1 ? field : field.slice(0, end))
    .replace(/\([^()]*\)|"/g, "")
    .trim()
    .toLowerCase();
  const raw = new Map<string, string>();
  if (end !== -1) {
    for (PARAMETER.lastIndex = end; ;) {
      const match = PARAMETER.exec(field);
      if (match === null) break;
      const [, name = "", quoted, token = ""] = match;
      const key = withoutComments(name).toLowerCase();
      const content = quoted?.replace(/\\(.)/g, "$1") ?? withoutComments(token).replace(/^"/, "");
      if (key !== "" && !raw.has(key)) raw.set(key, content);
    }
  }
  return { value, parameters: joinContinuations(raw) };
};

/** A parenthesis inside a word is part of it: `report(1).xml`. */
const withoutComments = (text: string) => text.replace(/[ \t]\([^()]*\)/g, " ").trim();

/** A part of a value: `name*1`, `name*1*` or `name*` (RFC 2231 §3 f.). */
const SECTION = /^(.+?)\*(?:(\d{1,4})(\*)?)?$/;

const joinContinuations = (raw: ReadonlyMap<string, string>): Map<string, string> => {
  const joined = new Map<string, string>();
  const sections = new Map<string, { readonly number: number; readonly text: string; readonly isEncoded: boolean }[]>();
  for (const [key, text] of raw) {
    const [, name, number, star] = SECTION.exec(key) ?? [];
    if (name === undefined) joined.set(key, text);
    else {
      const own = sections.get(name) ?? [];
      sections.set(name, own);
      own.push({ number: Number(number ?? 0), text, isEncoded: number === undefined || star !== undefined });
    }
  }
  for (const [name, parts] of sections) {
    const ordered = parts.toSorted((a, b) => a.number - b.number);
    // The first encoded part says in which character set all of them are: `utf-8'en'…`.
    const [, charset = "utf-8", first] = /^([^']*)'[^']*'([\s\S]*)$/.exec(ordered[0]?.text ?? "") ?? [];
    const isFirstEncoded = ordered[0]?.isEncoded === true && first !== undefined;
    const bytes = ordered.map(({ text, isEncoded }, index) => {
      const content = index === 0 && isFirstEncoded ? (first ?? "") : text;
      return isEncoded ? percentBytes(content, "%") : Buffer.from(content);
    });
    joined.set(name, decodeCharset(Buffer.concat(bytes), isFirstEncoded && charset !== "" ? charset : "utf-8"));
  }
  return joined;
};

const FROM_CHARACTERS_MAX = 2_000;

/** The address of the first mailbox of a From field, without its display name; null when there is none. */
export const firstAddress = (field: string): string | null => {
  // input ≤ 2,000 characters
  const text = decodeEncodedWords(field.slice(0, FROM_CHARACTERS_MAX)).replace(/"(?:[^"\\]|\\.)*"/g, " ");
  // input ≤ 2,000 characters
  const [, inBrackets, bare] = /<([^<>]*)>|([^\s,;:<>()]+@[^\s,;:<>()]+)/.exec(text) ?? [];
  return inBrackets?.trim() ?? bare ?? null;
};

/** `=?charset*language?encoding?text?=` (RFC 2047 §2, RFC 2231 §5), and the white space that separates it from the next one. */
const ENCODED_WORD = /=\?([^?\s*]+)(?:\*[^?\s]*)?\?([QqBb])\?([^?]*)\?=(?:[ \t]+(?==\?[^?\s]+\?[QqBb]\?[^?]*\?=))?/g;

/** Decodes the encoded words of a header field; the rest stays as it is. */
export const decodeEncodedWords = (text: string): string => {
  const decoded = decodeRuns(text, true);
  // A character that is split between two words needs their bytes together; words that should have stayed apart do not decode.
  return decoded.includes("\ufffd") ? decodeRuns(text, false) : decoded;
};

/** The text of bytes in a character set by its name in mail; windows-1252 for one that is not known. */
const decodeCharset = (bytes: Uint8Array, charset: string): string => {
  try {
    return new TextDecoder(charset.trim() as ConstructorParameters<typeof TextDecoder>[0]).decode(bytes);
  } catch (error) {
    if (error instanceof RangeError || error instanceof TypeError) return windows1252.decode(bytes);
    throw error;
  }
};

const windows1252 = new TextDecoder("windows-1252");

const decodeRuns = (text: string, joins: boolean) => {
  let result = "";
  let at = 0;
  let run: { readonly charset: string; readonly bytes: Uint8Array[] } | null = null;
  const endRun = () => {
    if (run !== null) result += decodeCharset(Buffer.concat(run.bytes), run.charset);
    run = null;
  };
  for (const match of text.matchAll(ENCODED_WORD)) {
    const [whole, charset = "", encoding = "", content = ""] = match;
    if (match.index > at) {
      endRun();
      result += text.slice(at, match.index);
    }
    if (run === null || !joins || run.charset !== charset) endRun();
    run ??= { charset, bytes: [] };
    run.bytes.push(bytesOf(encoding, content));
    at = match.index + whole.length;
  }
  endRun();
  return result + text.slice(at);
};

const bytesOf = (encoding: string, content: string): Uint8Array =>
  encoding.toUpperCase() === "B"
    ? Buffer.from(content, "base64")
    : percentBytes(content.replace(/=\s+(?=[\da-f])/gi, "=").replace(/[_\s]/g, " "), "=");

/** The bytes of a text in UTF-8 in which `sign` and two hexadecimal digits stand for one (`=C3`, `%C3`). */
const percentBytes = (text: string, sign: "=" | "%"): Uint8Array => {
  const parts = text.split(sign === "=" ? /(=[\da-f]{2})/i : /(%[\da-f]{2})/i);
  return Buffer.concat(
    parts.map((part, index) => (index % 2 === 0 ? Buffer.from(part) : Buffer.from(part.slice(1), "hex"))),
  );
};
