import { z } from "zod";

/** A JSON Schema, as far as the page shows it. */
export interface SchemaNode {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly format?: string;
  readonly pattern?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly anyOf?: readonly SchemaNode[];
  readonly items?: SchemaNode;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | SchemaNode;
}

const schemaNode = z.custom<SchemaNode>((value) => typeof value === "object" && value !== null);

const mediaSchema = z.object({ schema: schemaNode.optional(), example: z.unknown().optional() });
const contentSchema = z.record(z.string(), mediaSchema);

const parameterSchema = z.object({
  name: z.string(),
  in: z.enum(["path", "query", "header"]),
  description: z.string().optional(),
  required: z.boolean().optional(),
  schema: schemaNode.default({}),
});

const responseSchema = z.object({
  description: z.string(),
  headers: z.record(z.string(), z.object({ description: z.string() })).default({}),
  content: contentSchema.default({}),
});

const operationSchema = z.object({
  operationId: z.string(),
  tags: z.tuple([z.string()]),
  summary: z.string(),
  description: z.string().optional(),
  /** Empty where no key is needed. */
  security: z.array(z.record(z.string(), z.array(z.string()))).default([{ apiKey: [] }]),
  /** The scope that the key needs; undefined where any key will do. */
  "x-scope": z.string().optional(),
  parameters: z.array(parameterSchema).default([]),
  requestBody: z.object({ required: z.boolean().default(false), content: contentSchema }).optional(),
  responses: z.record(z.string(), responseSchema),
});

/** The parts of our OpenAPI document that the page shows. */
export const apiDocumentSchema = z.object({
  info: z.object({ title: z.string(), version: z.string(), description: z.string() }),
  servers: z.tuple([z.object({ url: z.string() })]),
  tags: z.array(z.object({ name: z.string(), description: z.string().optional() })),
  paths: z.record(z.string(), z.record(z.string(), operationSchema)),
  webhooks: z.record(z.string(), z.object({ post: operationSchema })),
  components: z.object({ schemas: z.record(z.string(), schemaNode) }),
});

export type ApiDocument = z.output<typeof apiDocumentSchema>;
export type ApiOperation = z.output<typeof operationSchema>;
export type ApiParameter = z.output<typeof parameterSchema>;
export type ApiResponse = z.output<typeof responseSchema>;

/** An operation with its method (upper case) and path. */
export interface DocumentedOperation extends ApiOperation {
  readonly method: string;
  readonly path: string;
}

/** Every operation, in the order of the document. */
export const operationsOf = ({ paths }: ApiDocument): DocumentedOperation[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
  );

/** The named schema that a node refers to, with its name; the node itself without a name when it does not refer. */
export const resolveSchema = (
  { components }: ApiDocument,
  node: SchemaNode,
): { readonly name: string | null; readonly schema: SchemaNode } => {
  const name = node.$ref?.split("/").at(-1);
  return name === undefined ? { name: null, schema: node } : { name, schema: components.schemas[name] ?? {} };
};
