import { z } from "zod";

type RawIssue = Parameters<z.core.$ZodErrorMap>[0];

const TYPES: Readonly<Record<string, string>> = {
  string: "Must be a string",
  array: "Must be an array",
  boolean: "Must be true or false",
  object: "Must be an object",
  record: "Must be an object",
  null: "Must be null",
};

const FORMATS: Readonly<Record<string, string>> = {
  datetime: "Must be a time such as 2026-01-02T03:04:05Z",
  date: "Must be a date such as 2026-01-02",
  uuid: "Must be an id",
  url: "Must be a URL",
  email: "Must be an email address",
};

const INVALID = "Invalid value";

/**
 * The message of a validation error for which the schema has none of its own, for readers who know JSON but not zod.
 * A query parameter that is repeated arrives as an array.
 */
export const validationMessage = (issue: RawIssue, isQuery: boolean): string | undefined => {
  if (isQuery && Array.isArray(issue.input) && issue.path?.length === 1) return "Must not be repeated";
  switch (issue.code) {
    case "invalid_type":
      return typeMessage(issue.expected, issue.inst);
    case "invalid_value":
      return issue.input === undefined ? "Required" : choiceMessage(issue.values.map(String));
    case "too_small":
      return limitMessage("at least", Number(issue.minimum), issue);
    case "too_big":
      return limitMessage("at most", Number(issue.maximum), issue);
    case "invalid_format":
      return FORMATS[issue.format] ?? "Invalid format";
    case "not_multiple_of":
      return `Must be a multiple of ${issue.divisor}`;
    case "custom":
      return issue.message ?? INVALID;
    default:
      return INVALID;
  }
};

const choiceMessage = (choices: readonly string[]) =>
  choices.length === 1 ? `Must be ${choices[0]}` : `Must be one of: ${choices.join(", ")}`;

/** Names the range of a number, if its schema has one. */
const typeMessage = (expected: string, inst: RawIssue["inst"]) => {
  if (!(inst instanceof z.ZodNumber)) return TYPES[expected] ?? INVALID;
  const { isInt, minValue: min, maxValue: max } = inst;
  const type = isInt ? "Must be an integer" : "Must be a number";
  return isRangeEnd(min) && isRangeEnd(max) ? `${type} from ${min} to ${max}` : type;
};

/** zod reports the limits of the number type itself as a range, too. */
const isRangeEnd = (end: unknown): end is number => typeof end === "number" && Math.abs(end) < Number.MAX_SAFE_INTEGER;

const UNITS: Readonly<Record<string, readonly [one: string, many: string]>> = {
  string: ["character", "characters"],
  array: ["entry", "entries"],
};

const limitMessage = (how: "at least" | "at most", limit: number, { origin, inclusive }: RawLimit) => {
  const unit = UNITS[origin];
  if (unit !== undefined) return `Must have ${how} ${limit} ${unit[limit === 1 ? 0 : 1]}`;
  if (inclusive !== false) return `Must be ${how} ${limit}`;
  return `Must be ${how === "at least" ? "greater" : "less"} than ${limit}`;
};

interface RawLimit {
  readonly origin: string;
  readonly inclusive?: boolean | undefined;
}
