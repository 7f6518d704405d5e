import type { z } from "zod";
import { AppError } from "../base/errors.ts";
import { checked, ISSUES_MAX, PATH_CHARACTERS_MAX } from "./body.ts";

/** The parameters of a request's query, as they stand. */
export const parametersOf = (request: Request): URLSearchParams => {
  const at = request.url.indexOf("?");
  return new URLSearchParams(at === -1 ? "" : request.url.slice(at + 1));
};

/** A cursor is the id after which the next page begins, in base64url: opaque, but never a secret. */
export const writeCursor = (after: string): string => Buffer.from(after, "utf8").toString("base64url");

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
