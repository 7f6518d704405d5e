import { z } from "zod";

const schemaSchema = z.looseObject({
  enum: z.array(z.unknown()).optional(),
  default: z.unknown().optional(),
  type: z.unknown().optional(),
  format: z.string().optional(),
});
const mediaSchema = z.looseObject({ example: z.unknown() });
const operationSchema = z.object({
  operationId: z.string(),
  parameters: z
    .array(z.object({ name: z.string(), in: z.enum(["path", "query", "header"]), schema: schemaSchema }))
    .default([]),
  requestBody: z.object({ content: z.record(z.string(), mediaSchema) }).optional(),
});
/** The parts of an OpenAPI document that a client program needs. */
export const documentSchema = z.object({
  paths: z.record(z.string(), z.record(z.string(), operationSchema)),
});
type ParameterSchema = z.output<typeof schemaSchema>;
type ClientOperation = z.output<typeof operationSchema>;

const sampleOf = ({ enum: choices, default: preset, type, format }: ParameterSchema): unknown => {
  if (choices !== undefined) return choices[0];
  if (preset !== undefined) return preset;
  if (format === "uuid") return "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52";
  if (type === "integer" || type === "number") return 1;
  if (type === "boolean") return true;
  if (type === "array") return [];
  return format === "date-time" ? "2026-01-01T00:00:00Z" : "text";
};

const optionsOf = ({ parameters, requestBody }: ClientOperation): string => {
  const params = Object.fromEntries(
    [...Map.groupBy(parameters, (parameter) => parameter.in)].map(([place, all]) => [
      place,
      Object.fromEntries(all.map(({ name, schema }) => [name, sampleOf(schema)])),
    ]),
  );
  const json = requestBody?.content["application/json"];
  return JSON.stringify({
    ...(parameters.length === 0 ? {} : { params }),
    ...(json === undefined ? {} : { body: json.example }),
  });
};

/** A program that calls every operation once with the generated types, and reads its response. */
export const clientProgram = ({ paths }: z.output<typeof documentSchema>): string => {
  const calls = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, operation]) => `/** ${operation.operationId} */
export const ${operation.operationId} = async (client: ReturnType<typeof createClient<paths>>) => {
  const { data, error, response } = await client.${method.toUpperCase()}(${JSON.stringify(path)}, ${optionsOf(operation)});
  if (error !== undefined) throw new Error(\`\${response.status} \${error.error}: \${error.message}\`);
  return data;
};`,
    ),
  );
  return `import createClient from "openapi-fetch";\nimport type { paths } from "./schema.d.ts";\n\n${calls.join("\n\n")}\n`;
};
