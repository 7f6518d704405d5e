import { z } from "zod";
import { textField } from "./schema-fields.ts";
import { ERROR_STATUS, type ErrorCode } from "../base/errors.ts";

export type JsonObject = Record<string, unknown>;
/** Header name → description. */
export type HeaderDescriptions = Readonly<Record<string, string>>;

/** The body of every error. */
export const errorSchema = z
  .looseObject({
    error: z.enum(Object.keys(ERROR_STATUS) as [ErrorCode, ...ErrorCode[]]).meta({ description: "The error code." }),
    message: z.string().optional().meta({ description: "What is wrong, and what to do." }),
    issues: z
      .array(
        z.object({
          path: textField("The field or parameter, as `a.b.0`."),
          message: textField("What is wrong with it."),
        }),
      )
      .optional()
      .meta({ description: "Invalid request body, Invalid query: each problem, at most 20." }),
    retry_after: z.int().optional().meta({ description: "rate_limited: whole seconds to wait." }),
    required: z.union([z.string(), z.int()]).optional().meta({
      description: "insufficient_scope: the scope that the key lacks. insufficient_credits: the credits required.",
    }),
    available: z.int().optional().meta({ description: "insufficient_credits: the credits available." }),
  })
  .meta({ title: "Error" });

export const REQUEST_ID_HEADER: HeaderDescriptions = { "X-Request-Id": "Identifies the request in the log." };
export const RATE_HEADERS: HeaderDescriptions = {
  "RateLimit-Limit": "The sustained rate of the account, requests per second.",
  "RateLimit-Remaining": "Requests that can be made right now.",
  "RateLimit-Reset": "Seconds until the full burst allowance is available again.",
};
const ERROR_HEADERS: Partial<Record<ErrorCode, HeaderDescriptions>> = {
  unauthorized: { "WWW-Authenticate": "How to authenticate." },
  rate_limited: { "Retry-After": "Whole seconds to wait, as `retry_after`." },
  unavailable: { "Retry-After": "Whole seconds to wait." },
};
/** Errors found before the rate limit is checked. */
const BEFORE_THE_RATE_LIMIT: ReadonlySet<ErrorCode> = new Set([
  "unauthorized",
  "account_disabled",
  "insufficient_scope",
]);

export const headerDocs = (headers: HeaderDescriptions): JsonObject =>
  Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { description, schema: { type: "string" } }]),
  );

const exampleOf = (code: ErrorCode): unknown => {
  switch (code) {
    case "rate_limited":
      return { error: code, retry_after: 1 };
    case "insufficient_credits":
      return { error: code, required: 1, available: 0 };
    case "insufficient_scope":
      return { error: code, required: "verifications:write" };
    case "Invalid request body":
      return { error: code, issues: [{ path: "email", message: "An address is needed" }] };
    case "Invalid query":
      return { error: code, issues: [{ path: "page", message: "Unknown parameter" }] };
    default:
      return { error: code };
  }
};

/** Errors of one status as one response, with an example for each code. */
export const errorResponses = (codes: readonly ErrorCode[], isRateLimited: boolean): JsonObject => {
  const byStatus = Map.groupBy(new Set(codes), (code) => ERROR_STATUS[code]);
  const responses: JsonObject = {};
  for (const [status, same] of [...byStatus].toSorted(([a], [b]) => a - b)) {
    const examples = Object.fromEntries(same.map((code) => [code.replaceAll(" ", "_"), { value: exampleOf(code) }]));
    const schema = { $ref: "#/components/schemas/Error" };
    const isAfterLimit = isRateLimited && !same.some((code) => BEFORE_THE_RATE_LIMIT.has(code));
    const own = Object.assign({}, ...same.map((code) => ERROR_HEADERS[code] ?? {})) as HeaderDescriptions;
    responses[status] = {
      description: same.join(", "),
      headers: headerDocs({ ...REQUEST_ID_HEADER, ...(isAfterLimit ? RATE_HEADERS : {}), ...own }),
      content: { "application/json": { schema, examples } },
    };
  }
  return responses;
};
