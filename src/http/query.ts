import type { z } from "zod";
import { AppError } from "../base/errors.ts";
import { checked, ISSUES_MAX, PATH_CHARACTERS_MAX } from "./body.ts";

const DEFAULT_TIMEOUT_S = 5;
const TIMEOUT_S_MAX = 90;
const DEFAULT_LIMIT = 100;
const LIMIT_MAX = 1000;

const positiveWhole = (text: string): number | null =>
  /^[0-9]+$/.test(text) && Number(text) > 0 ? Number(text) : null;

/** A parameter that may be given once; null when it is not given. A second time is as wrong as a wrong value. */
const only = (values: readonly string[]): string | null => (values.length > 1 ? "" : (values[0] ?? null));

/** The parameters of a request's query, as they stand. */
export const parametersOf = (request: Request): URLSearchParams => {
  const at = request.url.indexOf("?");
  return new URLSearchParams(at === -1 ? "" : request.url.slice(at + 1));
};

/** `timeout` in seconds: 1 to 90, more is 90, 5 when it is not given; 400 `Invalid timeout` for anything else. */
export const readTimeoutS = (request: Request, defaultS = DEFAULT_TIMEOUT_S): number => {
  if (!request.url.includes("?")) return defaultS;
  const text = only(parametersOf(request).getAll("timeout"));
  if (text === null) return defaultS;
  const seconds = positiveWhole(text);
  if (seconds === null)
    throw new AppError("Invalid timeout", { message: "timeout is a positive whole number of seconds." });
  return Math.min(seconds, TIMEOUT_S_MAX);
};

/** `limit` of a list: more than 1000 is 1000, 100 when it is not given; 400 `Invalid limit` for anything else. */
const readLimit = (parameters: URLSearchParams): number => {
  const text = only(parameters.getAll("limit"));
  if (text === null) return DEFAULT_LIMIT;
  const limit = positiveWhole(text);
  if (limit === null) throw new AppError("Invalid limit", { message: "limit is a positive whole number." });
  return Math.min(limit, LIMIT_MAX);
};

/** A cursor is the id after which the next page begins, in base64url: opaque, but never a secret. */
export const writeCursor = (after: string): string => Buffer.from(after, "utf8").toString("base64url");

const readCursor = (parameters: URLSearchParams, isValid: (after: string) => boolean): string | null => {
  const text = only(parameters.getAll("cursor"));
  if (text === null) return null;
  const after = Buffer.from(text, "base64url").toString("utf8");
  if (text === "" || writeCursor(after) !== text || !isValid(after)) throw new AppError("Invalid cursor");
  return after;
};

/** The parameters that `readPage` reads with the filters of a schema. */
export const pageParameters = (filters?: z.ZodObject): string[] => ["limit", "cursor", ...namesOf(filters)];

/** The parameters that a schema of a query reads. */
export const namesOf = (schema: z.ZodObject | undefined): string[] => Object.keys(schema?.shape ?? {});

/** 400 `Invalid query` for a parameter that a route does not read: a filter that is misspelt must not be ignored. */
export const refuseOtherParameters = (request: Request, known: readonly string[]): void => {
  if (!request.url.includes("?")) return;
  const unknown = [...new Set(parametersOf(request).keys())].filter((name) => !known.includes(name));
  if (unknown.length === 0) return;
  throw new AppError("Invalid query", {
    issues: unknown.slice(0, ISSUES_MAX).map((name) => ({
      path: name.slice(0, PATH_CHARACTERS_MAX),
      message: "Unknown parameter",
    })),
  });
};

export interface Page<F> {
  readonly limit: number;
  readonly after: string | null;
  readonly filters: F;
}

/** The query of a list: `limit`, `cursor` and the filters of `schema`; 400 `Invalid query` names what does not fit. */
export const readPage = <S extends z.ZodType>(
  request: Request,
  schema: S,
  isCursor: (after: string) => boolean,
): Page<z.output<S>> => {
  const parameters = parametersOf(request);
  const page = { limit: readLimit(parameters), after: readCursor(parameters, isCursor) };
  const filters = readParameters(parameters, schema, ["limit", "cursor"]);
  return { ...page, filters };
};

/** The parameters of a query but for those `read` elsewhere, checked; 400 `Invalid query` names what does not fit. */
export const readParameters = <S extends z.ZodType>(
  parameters: URLSearchParams,
  schema: S,
  read: readonly string[] = [],
): z.output<S> => {
  const names = [...new Set(parameters.keys())].filter((name) => !read.includes(name));
  // Not by assignment: a parameter called __proto__ is an unknown filter like any other.
  const given = Object.fromEntries(
    names.map((name) => {
      const values = parameters.getAll(name);
      return [name, values.length === 1 ? values[0] : values];
    }),
  );
  return checked(schema, given, "Invalid query");
};
