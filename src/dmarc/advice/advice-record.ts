import { type PolicyTag, setTag } from "./advice-edit.ts";
import { parseRecord } from "../record/record.ts";
import type { RecordValues } from "../record/record-values.ts";

const STRENGTH = { none: 0, quarantine: 1, reject: 2 } as const;
const POLICY_TAGS = ["p", "sp", "np"] as const;

const PROBLEMS: ReadonlySet<string> = new Set(["p_missing", "p_invalid", "policy_void"]);

/** A record whose policy was mended. */
export interface MendedPolicy {
  readonly text: string;
  /** What was wrong, in sentences. */
  readonly problem: string;
  /** The same, and what receivers apply by the new text. */
  readonly why: string;
}

/**
 * Mends a record without `p`, or with a `p`, `sp` or `np` that receivers do not know and that makes all of them `none`. Such a tag
 * becomes `none`, which is what they apply today; the others stay, and are in force again. Null when there is nothing to mend.
 */
export const mendedPolicy = (text: string): MendedPolicy | null => {
  const { warnings, tags } = parseRecord(text);
  const problem = warnings.flatMap(({ code, message }) => (PROBLEMS.has(code) ? [message] : [])).join(" ");
  const bad = POLICY_TAGS.filter((name) => {
    const value = tags.find((tag) => tag.name === name)?.value.toLowerCase();
    return value === undefined ? name === "p" : !Object.hasOwn(STRENGTH, value);
  });
  const mended = strengthened(
    text,
    bad.map((name) => [name, "none"]),
  );
  const values = mended === null ? null : parseRecord(mended).values;
  if (mended === null || mended === text || values === null) return null;
  const { p, sp, np } = values;
  return { text: mended, problem, why: `${problem} With this text they apply p=${p}, sp=${sp}, np=${np}.` };
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
