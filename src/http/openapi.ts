import { z } from "zod";
import { ERROR_STATUS, type ErrorCode } from "../base/errors.ts";

/** One parameter of an operation. `schema` is JSON Schema 2020-12, as everywhere in OpenAPI 3.1. */
export interface Parameter {
  readonly name: string;
  readonly in: "query" | "path" | "header";
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
}

export interface ResponseDoc {
  readonly description: string;
  /** Absent for an empty body. */
  readonly schema?: z.ZodType;
  readonly contentType?: string;
  readonly example?: unknown;
  /** Header name → what it means. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** What the OpenAPI document says about one route. */
export interface Operation {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** As in the router: `/v1/things/:id`. */
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly body?: { readonly schema: z.ZodType; readonly example: unknown };
  readonly responses: Readonly<Record<number, ResponseDoc>>;
  /** Error codes that this route may answer, beside those that every route with a key may. */
  readonly errors?: readonly ErrorCode[];
  /** True where no key is needed. */
  readonly open?: boolean;
}

const errorSchema = z
  .looseObject({
    error: z.enum(Object.keys(ERROR_STATUS) as [ErrorCode, ...ErrorCode[]]),
    message: z.string().optional(),
    issues: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
  })
  .meta({ title: "Error" });

const jsonSchema = (schema: z.ZodType, io: "input" | "output"): Record<string, unknown> => {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  return rest;
};

const RATE_LIMITED_EXAMPLE = { error: "rate_limited", retry_after: 1 };

const exampleOf = (code: ErrorCode): unknown => {
  switch (code) {
    case "rate_limited":
      return RATE_LIMITED_EXAMPLE;
    case "insufficient_credits":
      return { error: code, required: 1, available: 0 };
    case "insufficient_scope":
      return { error: code, required: "verifications:write" };
    case "Invalid request body":
    case "Invalid query":
      return { error: code, issues: [{ path: "email", message: "An address is needed" }] };
    default:
      return { error: code };
  }
};

/** Errors of one status as one response, with an example for each code. */
const errorResponses = (codes: readonly ErrorCode[]): Record<string, unknown> => {
  const byStatus = Map.groupBy(new Set(codes), (code) => ERROR_STATUS[code]);
  const responses: Record<string, unknown> = {};
  for (const [status, same] of [...byStatus].toSorted(([a], [b]) => a - b)) {
    const examples = Object.fromEntries(same.map((code) => [code.replaceAll(" ", "_"), { value: exampleOf(code) }]));
    const schema = { $ref: "#/components/schemas/Error" };
    responses[status] = { description: same.join(", "), content: { "application/json": { schema, examples } } };
  }
  return responses;
};

const responseOf = ({ description, schema, contentType = "application/json", example, headers }: ResponseDoc) => ({
  description,
  ...(headers === undefined
    ? {}
    : {
        headers: Object.fromEntries(
          Object.entries(headers).map(([name, meaning]) => [
            name,
            { description: meaning, schema: { type: "string" } },
          ]),
        ),
      }),
  ...(schema === undefined
    ? {}
    : {
        content: {
          [contentType]: { schema: jsonSchema(schema, "output"), ...(example === undefined ? {} : { example }) },
        },
      }),
});

const PATH_PARAMETER = /:([A-Za-z]+)/g;

const operationOf = (operation: Operation) => {
  const {
    method,
    path,
    tag,
    summary,
    description,
    parameters = [],
    body,
    responses,
    errors = [],
    open = false,
  } = operation;
  const codes: ErrorCode[] = open
    ? [...errors, "internal_error"]
    : ["unauthorized", ...errors, "internal_error", "unavailable"];
  const documented = Object.entries(responses).map(([status, response]) => [status, responseOf(response)]);
  return {
    operationId: `${method.toLowerCase()}_${path
      .replace(/^\/(v1\/)?/, "")
      .replace(PATH_PARAMETER, "by_$1")
      .replace(/[^A-Za-z]+/g, "_")}`,
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    ...(open ? { security: [] } : {}),
    ...(parameters.length === 0
      ? {}
      : { parameters: parameters.map((parameter) => ({ ...parameter, required: parameter.in === "path" })) }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { "application/json": { schema: jsonSchema(body.schema, "input"), example: body.example } },
          },
        }),
    responses: { ...Object.fromEntries(documented), ...errorResponses(codes) },
  };
};

export interface DocumentInfo {
  readonly version: string;
  readonly baseUrl: string;
  readonly description: string;
}

/** The OpenAPI 3.1 document of the given operations. */
export const openApiDocument = (operations: readonly Operation[], info: DocumentInfo) => {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const operation of operations) {
    const path = operation.path.replace(PATH_PARAMETER, "{$1}");
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: operationOf(operation) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Postwarden",
      version: info.version,
      description: info.description,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: info.baseUrl }],
    security: [{ apiKey: [] }],
    tags: [...new Set(operations.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: { apiKey: { type: "http", scheme: "bearer", description: "Authorization: Bearer <API_KEY>" } },
      schemas: { Error: jsonSchema(errorSchema, "output") },
    },
  };
};
