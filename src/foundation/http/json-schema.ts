import { z } from "zod";
import type { JsonObject } from "./openapi-errors.ts";

const keysSchema = z.object({
  propertyNames: z.object({ enum: z.array(z.string()) }),
  additionalProperties: z.unknown(),
});

/** A record whose keys are an enum becomes an object with these properties. */
const withNamedProperties = (made: JsonObject): void => {
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
export const jsonSchema = (schema: z.ZodType, io: "input" | "output"): JsonObject => {
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
