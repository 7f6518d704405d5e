import { z } from "zod";

/** A JSON Schema; documents of this service use these words only. */
export interface Schema {
  readonly $ref?: string | undefined;
  readonly type?: string | readonly string[] | undefined;
  readonly enum?: readonly unknown[] | undefined;
  readonly const?: unknown | undefined;
  readonly anyOf?: readonly Schema[] | undefined;
  readonly oneOf?: readonly Schema[] | undefined;
  readonly items?: Schema | undefined;
  readonly properties?: Readonly<Record<string, Schema>> | undefined;
  readonly required?: readonly string[] | undefined;
  readonly additionalProperties?: Schema | boolean | undefined;
  readonly propertyNames?: Schema | undefined;
  readonly description?: string | undefined;
}

const schemaSchema: z.ZodType<Schema> = z.lazy(() =>
  z.looseObject({
    $ref: z.string().optional(),
    type: z.union([z.string(), z.array(z.string())]).optional(),
    enum: z.array(z.unknown()).optional(),
    const: z.unknown().optional(),
    anyOf: z.array(schemaSchema).optional(),
    oneOf: z.array(schemaSchema).optional(),
    items: schemaSchema.optional(),
    properties: z.record(z.string(), schemaSchema).optional(),
    required: z.array(z.string()).optional(),
    additionalProperties: z.union([z.boolean(), schemaSchema]).optional(),
    propertyNames: schemaSchema.optional(),
    description: z.string().optional(),
  }),
);

const contentSchema = z.record(z.string(), z.object({ schema: schemaSchema }));

const operationSchema = z.object({
  operationId: z.string(),
  summary: z.string(),
  description: z.string(),
  parameters: z
    .array(
      z.object({
        name: z.string(),
        in: z.enum(["path", "query", "header"]),
        description: z.string(),
        required: z.boolean(),
        schema: schemaSchema,
      }),
    )
    .default([]),
  requestBody: z.object({ required: z.boolean(), content: contentSchema }).optional(),
  responses: z.record(z.string(), z.object({ content: contentSchema.default({}) })),
});

const documentSchema = z.object({
  info: z.object({ version: z.string() }),
  paths: z.record(z.string(), z.record(z.string(), operationSchema)),
  components: z.object({ schemas: z.record(z.string(), schemaSchema) }),
});

/** An argument of an operation. `field`: its name in the request. */
interface ClientArgument {
  readonly field: string;
  readonly place: "path" | "query" | "header";
  readonly description: string;
  readonly isRequired: boolean;
  readonly schema: Schema;
}

/** An operation of the API as a function of a client. */
export interface ClientOperation {
  /** In camel case. */
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly text: string;
  readonly args: readonly ClientArgument[];
  /** Null: it takes none. */
  readonly body: {
    readonly schema: Schema;
    readonly isRequired: boolean;
    /** The media types of files that may be sent instead of JSON. */
    readonly uploads: readonly string[];
  } | null;
  readonly accept: string;
  /** What it returns: JSON by these schemas, text, bytes or nothing. */
  readonly result: readonly Schema[] | "text" | "bytes" | "none";
  readonly isPaged: boolean;
}

/** What clients are generated from. */
export interface ClientModel {
  readonly version: string;
  readonly schemas: Readonly<Record<string, Schema>>;
  readonly operations: readonly ClientOperation[];
}

const JSON_TYPE = "application/json";

const bodyOf = ({ requestBody }: z.output<typeof operationSchema>): ClientOperation["body"] => {
  if (requestBody === undefined) return null;
  const { [JSON_TYPE]: json, ...files } = requestBody.content;
  // A form is the same file once more.
  const uploads = Object.keys(files).filter((type) => type !== "multipart/form-data");
  return { schema: json?.schema ?? {}, isRequired: requestBody.required, uploads };
};

const resultOf = (
  responses: z.output<typeof operationSchema>["responses"],
): Pick<ClientOperation, "accept" | "result"> => {
  const contents = Object.entries(responses).flatMap(([status, { content }]) => (status < "300" ? [content] : []));
  const schemas = contents.flatMap(({ [JSON_TYPE]: json }) => (json === undefined ? [] : [json.schema]));
  if (schemas.length > 0) return { accept: JSON_TYPE, result: schemas };
  const type = contents.flatMap((content) => Object.keys(content))[0];
  if (type === undefined) return { accept: "*/*", result: "none" };
  return { accept: "*/*", result: /^text\/|json$/.test(type) ? "text" : "bytes" };
};

const operationOf = (path: string, method: string, operation: z.output<typeof operationSchema>): ClientOperation => {
  const { operationId: name, summary, description, parameters, responses } = operation;
  const args = parameters.map(({ name: field, in: place, required: isRequired, ...rest }) => ({
    ...{ field, place, isRequired },
    ...rest,
  }));
  return {
    ...{ name, path, args, method: method.toUpperCase(), text: `${summary}. ${description}` },
    ...{ body: bodyOf(operation), isPaged: args.some(({ field }) => field === "cursor") },
    ...resultOf(responses),
  };
};

/** The API of an OpenAPI document, without pages, metrics and the Model Context Protocol. */
export const clientModel = (document: unknown): ClientModel => {
  const { info, paths, components } = documentSchema.parse(document);
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    path.startsWith("/v1/")
      ? Object.entries(methods).map(([method, operation]) => operationOf(path, method, operation))
      : [],
  );
  return { version: info.version, schemas: components.schemas, operations };
};

/** The name of an argument in camel case: `Idempotency-Key` → `idempotencyKey`; others stay as they are. */
export const argumentName = (field: string): string =>
  field.includes("-") ? field.toLowerCase().replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase()) : field;

/** The name of a type: `Error` is a class of both languages. */
export const typeName = (component: string): string => (component === "Error" ? "ErrorBody" : component);

/** The name of the type that a reference names. */
export const componentOf = (reference: string): string => typeName(reference.slice("#/components/schemas/".length));
