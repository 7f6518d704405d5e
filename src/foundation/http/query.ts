import type { z } from "zod";
import { checked } from "./body.ts";

/** The query parameters of a request. */
export const parametersOf = (request: Request): URLSearchParams => {
  const at = request.url.indexOf("?");
  return new URLSearchParams(at === -1 ? "" : request.url.slice(at + 1));
};

/** Query parameters as an object. One that is repeated becomes an array, which no schema accepts. */
export const queryOf = (request: Request): Readonly<Record<string, unknown>> => {
  const parameters = parametersOf(request);
  // Not by assignment: a parameter called __proto__ is an unknown one like any other.
  return Object.fromEntries(
    [...new Set(parameters.keys())].map((name) => {
      const values = parameters.getAll(name);
      return [name, values.length === 1 ? values[0] : values];
    }),
  );
};

/** The query of a route whose parameters depend on its body; 400 `Invalid query` with the issues. */
export const readQuery = <S extends z.ZodType>(request: Request, schema: S): z.output<S> =>
  checked(schema, queryOf(request), "Invalid query");
