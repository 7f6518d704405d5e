import type { Parameter } from "./openapi.ts";

/** A query parameter as the OpenAPI document describes it; `schema` is JSON Schema 2020-12. */
export const query = (name: string, description: string, schema: Readonly<Record<string, unknown>>): Parameter => ({
  name,
  in: "query",
  description,
  schema,
});

/** The id in a path, as `:id` in the router. */
export const pathId = (description: string): Parameter => ({
  name: "id",
  in: "path",
  description,
  schema: { type: "string", format: "uuid" },
});
