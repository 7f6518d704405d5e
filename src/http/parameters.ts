import type { Parameter } from "./openapi.ts";

/** A query parameter as the OpenAPI document describes it; `schema` is JSON Schema 2020-12. */
export const query = (name: string, description: string, schema: Readonly<Record<string, unknown>>): Parameter => ({
  name,
  in: "query",
  description,
  schema,
});

/** An id in a path, as `:id` in the router. */
export const pathId = (description: string, name = "id"): Parameter => ({
  name,
  in: "path",
  description,
  schema: { type: "string", format: "uuid" },
});

/** The parameters of lists that are read in pages. */
export const PAGE: readonly Parameter[] = [
  query(
    "limit",
    "Rows a page; above 1000 is 1000. A page may end earlier, at 4 MiB or where a filter passes few rows: `next_cursor` says whether there are more.",
    { type: "integer", minimum: 1, default: 100 },
  ),
  query("cursor", "`next_cursor` of the page before.", { type: "string" }),
];
