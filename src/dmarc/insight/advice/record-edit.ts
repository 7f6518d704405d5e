import { parseRecord } from "../../records/record/record.ts";
import { trimRecordSpace, type RecordTag } from "../../records/record/record-tags.ts";
import type { RecordValues } from "../../records/record/record-values.ts";

/** The tags of a policy that an edit may set. */
export type PolicyTag = "p" | "sp" | "np" | "t";

export const POLICY_STRENGTH = { none: 0, quarantine: 1, reject: 2 } as const;
const POLICY_TAGS = ["p", "sp", "np"] as const;
const POLICY_PROBLEMS: ReadonlySet<string> = new Set(["p_missing", "p_invalid", "policy_void"]);

/**
 * Sets one tag in the text of a DMARC record. Everything else stays byte for byte: where the tag is present, only its value is
 * replaced; otherwise `; name=value` is inserted after `p` (`p` itself, and all without a `p`, after `v`). Of a repeated tag the first
 * one is set, because it is the one that counts. A text whose tag has the value already, and a text that is no DMARC record, are
 * returned unchanged.
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

/** The range of a tag's value without white space around it; an empty one is right behind the `=`. */
const valueRange = (text: string, { valueStart, valueEnd, value }: RecordTag) => {
  const whole = text.slice(valueStart, valueEnd);
  const start = value === "" ? valueStart : valueStart + whole.indexOf(trimRecordSpace(whole));
  return { start, end: start + value.length };
};

/** A record whose policy was corrected. */
interface CorrectedPolicy {
  readonly text: string;
  /** What was wrong, in sentences. */
  readonly problem: string;
  /** The same, and what receivers apply with the new text. */
  readonly why: string;
}

/**
 * Corrects a record without `p`, or with a `p`, `sp` or `np` that receivers do not know and that makes all of them `none`. Such a tag
 * becomes `none`, which is what they apply today; the others stay, and are effective again. Null when there is nothing to correct.
 */
export const correctedPolicy = (text: string): CorrectedPolicy | null => {
  const { warnings, tags } = parseRecord(text);
  const problem = warnings.flatMap(({ code, message }) => (POLICY_PROBLEMS.has(code) ? [message] : [])).join(" ");
  const invalid = POLICY_TAGS.filter((name) => {
    const value = tags.find((tag) => tag.name === name)?.value.toLowerCase();
    return value === undefined ? name === "p" : !Object.hasOwn(POLICY_STRENGTH, value);
  });
  const corrected = strengthened(
    text,
    invalid.map((name) => [name, "none"]),
  );
  const values = corrected === null ? null : parseRecord(corrected).values;
  if (corrected === null || corrected === text || values === null) return null;
  const { p, sp, np } = values;
  return { text: corrected, problem, why: `${problem} With this text they apply p=${p}, sp=${sp}, np=${np}.` };
};

/** Whether the text has the tag itself. */
export const hasTag = (text: string, name: PolicyTag): boolean =>
  parseRecord(text).tags.some((tag) => tag.name === name);

/**
 * Removes every tag of a name, each with the `;` before it. Everything else stays byte for byte. A text that is no DMARC record is
 * returned unchanged.
 */
export const removeTag = (text: string, name: string): string => {
  const { valid, tags } = parseRecord(text);
  if (!valid) return text;
  return tags
    .filter((tag) => tag.name === name)
    .toReversed()
    .reduce(
      (rest, { valueStart, valueEnd }) => rest.slice(0, rest.lastIndexOf(";", valueStart)) + rest.slice(valueEnd),
      text,
    );
};

/**
 * The text of a record with tags set in order; null removes a tag. A text that changes loses `pct`, which only older receivers know and
 * which weakens the policy there, and `t=n`, which is the default. Null when the new text would protect less in any respect: it is
 * never advised.
 */
export const strengthened = (
  text: string,
  tags: ReadonlyArray<readonly [PolicyTag | "pct", string | null]>,
): string | null => {
  const changed = tags.reduce(
    (record, [name, value]) =>
      value === null || name === "pct" ? removeTag(record, name) : setTag(record, name, value),
    text,
  );
  if (changed === text) return text;
  const current = removeTag(changed, "pct");
  const edited = parseRecord(current).values?.t === "n" ? removeTag(current, "t") : current;
  const [before, after] = [parseRecord(text).values, parseRecord(edited).values];
  return before === null || after === null || isWeakerRecord(before, after) ? null : edited;
};

/** Whether `after` protects less than `before`: by a policy, a relaxed alignment, or a test mode over an enforced policy. */
const isWeakerRecord = (before: RecordValues, after: RecordValues): boolean =>
  POLICY_TAGS.some(
    (tag) =>
      POLICY_STRENGTH[after[tag]] < POLICY_STRENGTH[before[tag]] ||
      (before.t === "n" && after.t === "y" && POLICY_STRENGTH[before[tag]] > POLICY_STRENGTH.none),
  ) ||
  (before.adkim === "s" && after.adkim === "r") ||
  (before.aspf === "s" && after.aspf === "r");
