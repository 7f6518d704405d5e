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
 * out. What follows a final `;` is a part only if it is not white space. White space is space, tab, CR and LF.
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

const isRecordSpace = (text: string, offset: number): boolean => " \t\r\n".includes(text.charAt(offset));

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
