import { z } from "zod";
import { AppError, type ErrorCode } from "../base/errors.ts";
import { isId } from "../base/secrets.ts";
import { issuesOf, queryOf } from "./body.ts";
import { validationMessage } from "./validation-messages.ts";

const DEFAULT_LIMIT = 100;
const LIMIT_MAX = 1000;
const DEFAULT_TIMEOUT_S = 5;
const TIMEOUT_S_MAX = 90;
const IDEMPOTENCY_KEY_CHARACTERS_MAX = 200;

const positiveWhole = (message: string) =>
  z
    .string(message)
    .refine((text) => /^[0-9]+$/.test(text) && Number(text) > 0, message)
    .transform(Number);

/** `timeout`: how long the server holds the request open, in whole seconds; above 90 counts as 90. 400 `Invalid timeout`. */
export const timeoutParameter = (defaultS = DEFAULT_TIMEOUT_S) =>
  positiveWhole("timeout must be a positive whole number of seconds.")
    .transform((seconds) => Math.min(seconds, TIMEOUT_S_MAX))
    .default(defaultS)
    .meta({
      description: `Seconds to hold the request open, at most ${TIMEOUT_S_MAX}. The work continues after that; poll for its result.`,
      type: "integer",
      minimum: 1,
      default: defaultS,
    });

/** A cursor is the id of the row before the next page, in base64url: opaque, but not a secret. */
export const encodeCursor = (after: string): string => Buffer.from(after, "utf8").toString("base64url");

/** The text of a cursor; anything that is not a cursor decodes to something else. */
export const decodeCursor = (text: string): string => Buffer.from(text, "base64url").toString("utf8");

/** A page of a list, as its query parameters ask for it. */
export interface PageQuery {
  readonly limit: number;
  /** The row after which the page begins; null: the first page. */
  readonly cursor: string | null;
}

/** `limit` and `cursor` of a list, and its filters. `isCursor` decides whether a decoded cursor can be one of this list. */
export const pageQuery = <S extends z.ZodRawShape>(isCursor: (after: string) => boolean, filters: S) =>
  z.strictObject({
    limit: positiveWhole("limit must be a positive whole number.")
      .transform((limit) => Math.min(limit, LIMIT_MAX))
      .default(DEFAULT_LIMIT)
      .meta({
        description: `Rows per page; above ${LIMIT_MAX} counts as ${LIMIT_MAX}. A page can be shorter (4 MiB, or few rows pass the filters): \`next_cursor\` says whether there are more.`,
        type: "integer",
        minimum: 1,
        default: DEFAULT_LIMIT,
      }),
    cursor: z
      .string()
      .refine((text) => text !== "" && encodeCursor(decodeCursor(text)) === text && isCursor(decodeCursor(text)))
      .transform(decodeCursor)
      .nullable()
      .default(null)
      .meta({ description: "`next_cursor` of the previous page.", type: "string" }),
    ...filters,
  });

/** An id in the path. A text that is no id is a 404, as an id that does not exist. */
export const idParameter = (noun: string) =>
  z
    .string()
    .refine(isId, `There is no such ${noun}.`)
    .meta({ description: `The id of the ${noun}.`, format: "uuid" });

/** The `Idempotency-Key` header (1 to 200 characters) and what it does; null when it is absent. 400 `Invalid idempotency key`. */
export const idempotencyKeyHeader = (description: string) =>
  z.object({
    "idempotency-key": z
      .string()
      .refine(isIdempotencyKey, `An Idempotency-Key must have 1 to ${IDEMPOTENCY_KEY_CHARACTERS_MAX} characters.`)
      .nullable()
      .default(null)
      .meta({
        description,
        type: "string",
        minLength: 1,
        maxLength: IDEMPOTENCY_KEY_CHARACTERS_MAX,
      }),
  });

const isIdempotencyKey = (text: string) => {
  const characters = [...text].length;
  return characters >= 1 && characters <= IDEMPOTENCY_KEY_CHARACTERS_MAX;
};

/** Parameters and headers with an error code of their own. */
export const OWN_CODE: Readonly<Record<string, ErrorCode>> = {
  timeout: "Invalid timeout",
  limit: "Invalid limit",
  cursor: "Invalid cursor",
  "idempotency-key": "Invalid idempotency key",
};

const NO_PARAMETERS = z.strictObject({});

/** An unknown parameter comes first, then one with an error code of its own, then all the others together. */
const queryError = (error: z.ZodError): AppError => {
  const issues = issuesOf(error, "parameter");
  const hasUnknown = error.issues.some(({ code }) => code === "unrecognized_keys");
  const own = hasUnknown ? undefined : error.issues.find(({ path }) => String(path[0]) in OWN_CODE);
  if (hasUnknown)
    return new AppError("Invalid query", { issues: issues.filter(({ message }) => message === "Unknown parameter") });
  if (own === undefined) return new AppError("Invalid query", { issues });
  const code = OWN_CODE[String(own.path[0])] ?? "Invalid query";
  return new AppError(code, code === "Invalid cursor" ? {} : { message: own.message });
};

/** Reads the query of requests by a strict schema; 400 as `queryError` says. A request without a query costs nothing. */
export const createQueryReader = <Q extends z.ZodObject>(schema: Q | undefined) => {
  const declared = schema ?? NO_PARAMETERS;
  const read = (given: unknown): z.output<Q> => {
    const result = declared.safeParse(given, { reportInput: true, error: (issue) => validationMessage(issue, true) });
    if (!result.success) throw queryError(result.error);
    // Without a declared query, Q has no fields.
    return result.data as z.output<Q>;
  };
  let withoutQuery: z.output<Q> | undefined;
  return (request: Request): z.output<Q> => {
    if (request.url.includes("?")) return read(queryOf(request));
    withoutQuery ??= read({});
    return withoutQuery;
  };
};

/** Reads the parameters of the path; 404 for a value that does not fit. */
export const readParams = <P extends z.ZodObject>(schema: P | undefined, params: unknown): z.output<P> => {
  // Without declared parameters, P has no fields.
  if (schema === undefined) return {} as z.output<P>;
  const result = schema.safeParse(params);
  if (result.success) return result.data;
  throw new AppError("not_found", { message: result.error.issues[0]?.message ?? "No such path." });
};

/** Reads the headers that a route declares; 400 for a value that does not fit. */
export const readHeaders = <H extends z.ZodObject>(schema: H | undefined, { headers }: Request): z.output<H> => {
  // Without declared headers, H has no fields.
  if (schema === undefined) return {} as z.output<H>;
  const names = Object.keys(schema.shape).filter((name) => headers.has(name));
  const result = schema.safeParse(Object.fromEntries(names.map((name) => [name, headers.get(name)])));
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new AppError(OWN_CODE[String(issue?.path[0])] ?? "Invalid request body", { message: issue?.message ?? "" });
};

/** What a request is about, for the audit log: the value of the first parameter in the path of its route. */
export const subjectOf = (path: string, params: Readonly<Record<string, unknown>>): string | null => {
  const name = /:(\w+)/.exec(path)?.[1];
  const value = name === undefined ? undefined : params[name];
  return value === undefined ? null : String(value);
};
