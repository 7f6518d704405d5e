import { parseRecord } from "../record/record.ts";
import { type RecordTag, trimRecordSpace } from "../record/record-tags.ts";

/** The tags of a policy that an edit may set. */
export type PolicyTag = "p" | "sp" | "np" | "t";

/**
 * Sets one tag in the text of a DMARC record. Everything else stays byte for byte: where the tag stands, only its value is
 * replaced; where it does not, `; name=value` is put behind `p` (`p` itself, and all where there is no `p`, behind `v`). Of a tag
 * that stands twice the first one is set, for that is the one that counts. A text whose tag has the value already, and a text that
 * is no DMARC record, come back as they are, so that setting twice is setting once.
 */
export const setTag = (text: string, name: PolicyTag, value: string): string => {
  const { valid, tags } = parseRecord(text);
  if (!valid) return text;
  const tag = tags.find((candidate) => candidate.name === name);
  if (tag !== undefined) {
    const { start, end } = valueRange(text, tag);
    return tag.value.toLowerCase() === value ? text : text.slice(0, start) + value + text.slice(end);
  }
  const before = tags.find((candidate) => candidate.name === "p" && name !== "p") ?? tags[0];
  if (before === undefined) return text;
  const { end } = valueRange(text, before);
  return `${text.slice(0, end)}; ${name}=${value}${text.slice(end)}`;
};

/** Where the value of a tag stands without the white space around it; an empty one stands right behind the `=`. */
const valueRange = (text: string, { valueStart, valueEnd, value }: RecordTag) => {
  const whole = text.slice(valueStart, valueEnd);
  const start = value === "" ? valueStart : valueStart + whole.indexOf(trimRecordSpace(whole));
  return { start, end: start + value.length };
};
