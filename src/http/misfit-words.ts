import { z } from "zod";

type RawIssue = Parameters<z.core.$ZodErrorMap>[0];

const NEEDED: Readonly<Record<string, string>> = {
  string: "A text is needed",
  array: "A list is needed",
  boolean: "true or false is needed",
  object: "A JSON object is needed",
  record: "A JSON object is needed",
  null: "null is needed",
};

const FORMATS: Readonly<Record<string, string>> = {
  datetime: "A time is needed, as 2026-01-02T03:04:05Z",
  date: "A day is needed, as 2026-01-02",
  uuid: "An id is needed",
  url: "A URL is needed",
  email: "An email address is needed",
};

const NOT_POSSIBLE = "This value is not possible here";

/**
 * What is said of a misfit where the schema has no words of its own: a plain sentence, for people who know JSON and not zod.
 * A query parameter that is given twice comes as a list.
 */
export const wordsOfMisfit = (issue: RawIssue, isQuery: boolean): string | undefined => {
  if (isQuery && Array.isArray(issue.input) && issue.path?.length === 1) return "It may be given once only";
  switch (issue.code) {
    case "invalid_type":
      return neededType(issue.expected, issue.inst);
    case "invalid_value":
      return issue.input === undefined ? "Required" : neededChoice(issue.values.map(String));
    case "too_small":
      return limitWords("At least", Number(issue.minimum), issue);
    case "too_big":
      return limitWords("At most", Number(issue.maximum), issue);
    case "invalid_format":
      return FORMATS[issue.format] ?? "It does not have the form that is needed";
    case "not_multiple_of":
      return `A multiple of ${issue.divisor} is needed`;
    case "custom":
      return issue.message ?? NOT_POSSIBLE;
    default:
      return NOT_POSSIBLE;
  }
};

const neededChoice = (choices: readonly string[]): string =>
  choices.length === 1 ? `${choices[0]} is needed` : `One of these is needed: ${choices.join(", ")}`;

/** Of numbers with the range, where the schema has one. */
const neededType = (expected: string, inst: RawIssue["inst"]): string => {
  if (!(inst instanceof z.ZodNumber)) return NEEDED[expected] ?? NOT_POSSIBLE;
  const { isInt, minValue: min, maxValue: max } = inst;
  const needed = isInt ? "A whole number" : "A number";
  if (!isRangeEnd(min) || !isRangeEnd(max)) return `${needed} is needed`;
  return `${needed} from ${min} to ${max} is needed`;
};

/** The ends of what a number can hold at all are no range that anybody set. */
const isRangeEnd = (end: unknown): end is number => typeof end === "number" && Math.abs(end) < Number.MAX_SAFE_INTEGER;

const UNITS: Readonly<Record<string, readonly [one: string, many: string]>> = {
  string: ["character", "characters"],
  array: ["entry", "entries"],
};

const limitWords = (how: "At least" | "At most", limit: number, { origin, inclusive }: RawLimit): string => {
  const unit = UNITS[origin];
  if (unit !== undefined) return `${how} ${limit} ${unit[limit === 1 ? 0 : 1]}`;
  if (inclusive !== false) return `${how} ${limit} is needed`;
  return `${how === "At least" ? "More" : "Less"} than ${limit} is needed`;
};

interface RawLimit {
  readonly origin: string;
  readonly inclusive?: boolean | undefined;
}
