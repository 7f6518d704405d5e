import { z } from "zod";
import { timeField, textField } from "./schema-fields.ts";
import { backgroundTurn } from "../base/fair-queue.ts";
import { type ErrorCode, type ErrorDetails, ERROR_STATUS } from "../base/errors.ts";
import { errorResponse } from "./error-response.ts";
import type { AnyRoute, RouteResponse } from "./route.ts";
import type { Severity } from "../base/severity.ts";
import { OWN_CODE } from "./route-input.ts";

/** What PagerDuty and Opsgenie keep as one incident. */
export interface EventIncident {
  /** What the problem is: equal in all events about it. */
  readonly about: readonly string[];
  readonly ends: boolean;
  /** Where the event has none. */
  readonly severity: Severity;
}

/** A webhook event in the OpenAPI document. */
export interface EventDoc {
  readonly type: string;
  readonly tag: string;
  readonly summary: string;
  /** The title of a chat message; `text` is a field of `data` in one line. */
  readonly title: (text: (field: string) => string) => string;
  /** The problem that the event begins or ends; null, or none at all, when it is neither. */
  readonly incident?: (
    text: (field: string) => string,
    data: Readonly<Record<string, unknown>>,
  ) => EventIncident | null;
  /** The schema of `data`. */
  readonly data: z.ZodType;
  readonly example: unknown;
}

/** Moves every schema with a title to `components`, and refers to it there. */
const hoist = (value: unknown, components: Map<string, unknown>): unknown => {
  if (Array.isArray(value)) return value.map((item) => hoist(item, components));
  if (typeof value !== "object" || value === null) return value;
  const object = Object.fromEntries(Object.entries(value).map(([key, item]) => [key, hoist(item, components)]));
  if (typeof object.title !== "string" || object.type === undefined) return object;
  components.set(object.title, object);
  return { $ref: `#/components/schemas/${object.title}` };
};

const responseOf = (response: RouteResponse, isRateLimited: boolean): JsonObject => {
  const { description, schema, contentType = "application/json", example, headers = {}, alternatives = {} } = response;
  const others = Object.entries(alternatives).map(([type, other]) => [
    type,
    { schema: jsonSchema(other.schema, "output"), example: other.example },
  ]);
  const media = schema && {
    schema: jsonSchema(schema, "output"),
    ...(example === undefined ? {} : { example: typeof example === "function" ? example() : example }),
  };
  return {
    description,
    headers: headerDocs({ ...REQUEST_ID_HEADER, ...(isRateLimited ? RATE_HEADERS : {}), ...headers }),
    ...(media === undefined ? {} : { content: { [contentType]: media, ...Object.fromEntries(others) } }),
  };
};

const PATH_PARAMETER = /:([A-Za-z]+)/g;

/** Errors of a route with a body. */
const BODY_ERRORS: readonly ErrorCode[] = [
  "Request body must be valid JSON",
  "Invalid request body",
  "payload_too_large",
  "unsupported_media_type",
];

/** Errors of every route. */
const EVERYWHERE: readonly ErrorCode[] = ["Invalid host", "Invalid query"];

/** The parameters that a schema declares, in one place of the request. */
const parametersIn = (place: "path" | "query" | "header", schema: z.ZodObject | undefined): JsonObject[] => {
  if (schema === undefined) return [];
  const { properties = {} } = jsonSchema(schema, "input") as { properties?: Record<string, JsonObject> };
  return Object.entries(schema.shape).map(([name, field]) => {
    // A field that is transformed states the JSON Schema of its text itself.
    const stated = (field as z.ZodType).meta() ?? {};
    const { description, ...rest } = stated.type === undefined ? (properties[name] ?? {}) : stated;
    return {
      name: place === "header" ? headerName(name) : name,
      in: place,
      description,
      required: place === "path",
      schema: rest,
    };
  });
};

/** `idempotency-key` → `Idempotency-Key`. */
const headerName = (name: string) => name.replace(/(^|-)[a-z]/g, (start) => start.toUpperCase());

/** The error codes of a route: those that follow from its declaration, then its own. */
const errorsOf = ({
  scope,
  params,
  query,
  headers,
  body,
  uploads,
  rateLimited,
  forForms,
  errors = [],
}: AnyRoute): ErrorCode[] => {
  const named = [...Object.keys(query?.shape ?? {}), ...Object.keys(headers?.shape ?? {})];
  return [
    ...EVERYWHERE,
    ...(scope === "open" ? [] : (["unauthorized", "unavailable"] as const)),
    ...(scope === "open" || scope === null ? [] : (["insufficient_scope"] as const)),
    ...(forForms === true ? (["origin_not_allowed"] as const) : []),
    ...(rateLimited === true || forForms === true ? (["rate_limited"] as const) : []),
    ...named.flatMap((name) => OWN_CODE[name] ?? []),
    ...(params === undefined ? [] : (["not_found"] as const)),
    ...(body === undefined && uploads === undefined ? [] : BODY_ERRORS),
    ...errors,
    "internal_error",
  ];
};

const requestBodyOf = ({ body, uploads = {} }: AnyRoute): JsonObject => {
  const media = { ...(body === undefined ? {} : { "application/json": body }), ...uploads };
  if (Object.keys(media).length === 0) return {};
  const content = Object.entries(media).map(([type, { schema, example }]) => [
    type,
    { schema: jsonSchema(schema, "input"), example },
  ]);
  return { requestBody: { required: body?.isOptional !== true, content: Object.fromEntries(content) } };
};

/** A declared route as an operation of the document. */
const operationOf = (route: AnyRoute): JsonObject => {
  const { operationId, tag, summary, description, scope, responses, rateLimited = false } = route;
  const parameters = [
    ...parametersIn("path", route.params),
    ...parametersIn("query", route.query),
    ...parametersIn("header", route.headers),
  ];
  const documented = Object.entries(responses).map(([status, response]) => [status, responseOf(response, rateLimited)]);
  return {
    operationId,
    tags: [tag],
    summary,
    description,
    // An extension: only OAuth and OpenID schemes have scopes of their own.
    ...(scope === "open" ? { security: [] } : scope === null ? {} : { "x-scope": scope }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...requestBodyOf(route),
    responses: { ...Object.fromEntries(documented), ...errorResponses(errorsOf(route), rateLimited) },
  };
};

/** The headers of Standard Webhooks 1.0. */
const EVENT_HEADERS: HeaderDescriptions = {
  "webhook-id": "The same in every attempt: ignore an id that you have already processed.",
  "webhook-timestamp": "The time of the attempt, in seconds since 1970.",
  "webhook-signature":
    "One or more `v1,` and base64, separated by spaces: HMAC-SHA-256 of `webhook-id.webhook-timestamp.body`.",
};

const eventOf = ({ type, tag, summary, data, example }: EventDoc): JsonObject => {
  const schema = z.object({
    type: z.literal(type).meta({ description: "The type of the event." }),
    timestamp: timeField("When it happened."),
    data,
  });
  const body = { type, timestamp: "2026-01-01T00:01:00.000Z", data: example };
  return {
    post: {
      operationId: type.replace(".", "_"),
      tags: [tag],
      summary,
      security: [],
      parameters: Object.entries(EVENT_HEADERS).map(([name, description]) => ({
        name,
        in: "header",
        description,
        required: true,
        schema: { type: "string" },
      })),
      requestBody: {
        required: true,
        content: { "application/json": { schema: jsonSchema(schema, "output"), example: body } },
      },
      responses: {
        "2XX": { description: "Received. Respond within 15 seconds; anything else is a failure and is repeated." },
        410: { description: "The endpoint is gone: the URL is disabled until it is set again." },
      },
    },
  };
};

export interface DocumentInfo {
  readonly version: string;
  readonly baseUrl: string;
  readonly description: string;
  /** Tag → description. */
  readonly tags: Readonly<Record<string, string>>;
  /** Events that are sent to webhooks. */
  readonly events: readonly EventDoc[];
}

/** The OpenAPI 3.1 document of the given operations, made in small steps: it is the work of a tenth of a second or more. */
export const openApiDocument = async (operations: readonly AnyRoute[], info: DocumentInfo) => {
  const components = new Map<string, unknown>();
  hoist(jsonSchema(errorSchema, "output"), components);
  const paths: Record<string, JsonObject> = {};
  for (const operation of operations) {
    await backgroundTurn(null);
    const path = operation.path.replace(PATH_PARAMETER, "{$1}");
    paths[path] = {
      ...paths[path],
      [operation.method.toLowerCase()]: hoist(operationOf(operation), components),
    };
  }
  const webhooks: Record<string, unknown> = {};
  for (const event of info.events) {
    await backgroundTurn(null);
    webhooks[event.type] = hoist(eventOf(event), components);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Postwarden",
      version: info.version,
      description: info.description,
      contact: { name: "Postwarden" },
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: info.baseUrl }],
    security: [{ apiKey: [] }],
    tags: [...new Set(operations.map(({ tag }) => tag))].map((name) => ({ name, description: info.tags[name] })),
    paths,
    webhooks,
    components: {
      securitySchemes: { apiKey: { type: "http", scheme: "bearer", description: "Authorization: Bearer <API_KEY>" } },
      schemas: Object.fromEntries(components),
    },
  };
};

const keysSchema = z.object({
  propertyNames: z.object({ enum: z.array(z.string()) }),
  additionalProperties: z.unknown(),
});

/** A record whose keys are an enum becomes an object with these properties. */
const withNamedProperties = (made: JsonObject) => {
  const record = keysSchema.safeParse(made);
  if (!record.success) return;
  const { propertyNames, additionalProperties } = record.data;
  made.properties = Object.fromEntries(propertyNames.enum.map((key) => [key, additionalProperties]));
  delete made.propertyNames;
  delete made.additionalProperties;
};

const branchSchema = z.looseObject({ type: z.string().optional(), description: z.string().optional() });

/** `{ anyOf: [A, null] }` takes the description of A: zod leaves it where it was given. */
const withDescription = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withDescription);
  if (typeof value !== "object" || value === null) return value;
  const made: JsonObject = Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withDescription(item)]));
  if (made.description !== undefined || !Array.isArray(made.anyOf)) return made;
  const branches = made.anyOf.map((branch) => branchSchema.parse(branch)).filter(({ type }) => type !== "null");
  const [only] = branches;
  return branches.length === 1 && only?.description !== undefined ? { ...made, description: only.description } : made;
};

/** The JSON Schema 2020-12 of a zod schema: of what it accepts ("input") or of what it gives ("output"). */
const jsonSchema = (schema: z.ZodType, io: "input" | "output"): JsonObject => {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io,
    unrepresentable: "any",
    override({ jsonSchema: made }) {
      // The format is enough; the pattern beside it is zod's own.
      if (made.format !== undefined) delete made.pattern;
      withNamedProperties(made);
    },
  });
  return z.looseObject({}).parse(withDescription(rest));
};

type JsonObject = Record<string, unknown>;
/** Header name → description. */
type HeaderDescriptions = Readonly<Record<string, string>>;

/** The body of every error. */
const errorSchema = z
  .looseObject({
    error: z.enum(Object.keys(ERROR_STATUS) as [ErrorCode, ...ErrorCode[]]).meta({ description: "The error code." }),
    message: z.string().meta({ description: "What is wrong, and what to do." }),
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

const REQUEST_ID_HEADER: HeaderDescriptions = { "X-Request-Id": "Identifies the request in the log." };
const RATE_HEADERS: HeaderDescriptions = {
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
  "origin_not_allowed",
]);

const headerDocs = (headers: HeaderDescriptions): JsonObject =>
  Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { description, schema: { type: "string" } }]),
  );

const EXAMPLES: Partial<Record<ErrorCode, ErrorDetails>> = {
  rate_limited: { message: "Too many requests. Try again in 1 s.", body: { retry_after: 1 } },
  insufficient_credits: {
    message: "Insufficient credits: 1 required, 0 available.",
    body: { required: 1, available: 0 },
  },
  insufficient_scope: {
    message: "The API key does not have the scope verifications:write.",
    body: { required: "verifications:write" },
  },
  "Invalid request body": { issues: [{ path: "email", message: "Required" }] },
  "Invalid query": { issues: [{ path: "page", message: "Unknown parameter" }] },
  unauthorized: { message: "Missing or invalid API key. Send it as: Authorization: Bearer <API_KEY>" },
};

const exampleOf = (code: ErrorCode): unknown => errorResponse(code, EXAMPLES[code]).body;

/** Errors of one status as one response, with an example for each code. */
const errorResponses = (codes: readonly ErrorCode[], isRateLimited: boolean): JsonObject => {
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
