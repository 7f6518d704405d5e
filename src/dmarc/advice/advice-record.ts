import { type PolicyTag, setTag } from "./advice-edit.ts";
import { parseRecord } from "../record/record.ts";
import type { RecordValues } from "../record/record-values.ts";

const STRENGTH = { none: 0, quarantine: 1, reject: 2 } as const;
const POLICY_TAGS = ["p", "sp", "np"] as const;

/** Whether the text is a record whose policies receivers can use: a bad `p`, `sp` or `np` makes all of them `none`. */
export const hasUsablePolicy = (text: string): boolean => {
  const { valid, warnings } = parseRecord(text);
  return valid && !warnings.some(({ code }) => code === "p_invalid" || code === "policy_void");
};

/** Whether the text names the tag itself. */
export const namesTag = (text: string, name: PolicyTag): boolean =>
  parseRecord(text).tags.some((tag) => tag.name === name);

/**
 * The text of a record with tags set, one after the other. Null when the new text would protect less than the old one in any
 * respect: such a record is never advised.
 */
export const strengthened = (text: string, tags: ReadonlyArray<readonly [PolicyTag, string]>): string | null => {
  const edited = tags.reduce((record, [name, value]) => setTag(record, name, value), text);
  const [before, after] = [parseRecord(text).values, parseRecord(edited).values];
  return before === null || after === null || isWeaker(before, after) ? null : edited;
};

/** Whether `after` protects less than `before`: by a policy, a softer alignment, or a test mode over a policy in force. */
const isWeaker = (before: RecordValues, after: RecordValues): boolean =>
  POLICY_TAGS.some(
    (tag) =>
      STRENGTH[after[tag]] < STRENGTH[before[tag]] ||
      (before.t === "n" && after.t === "y" && STRENGTH[before[tag]] > STRENGTH.none),
  ) ||
  (before.adkim === "s" && after.adkim === "r") ||
  (before.aspf === "s" && after.aspf === "r");
