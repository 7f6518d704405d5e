import { z } from "zod";

const described =
  <Schema extends z.ZodType>(schema: Schema) =>
  (description: string): Schema =>
    schema.meta({ description });

const time = z.iso.datetime({ precision: 3 });

/** The fields that most responses consist of, each with its description. */
export const textField = described(z.string());
export const nullableText = described(z.string().nullable());
export const integerField = described(z.int());
export const countField = described(z.int().nonnegative());
export const flagField = described(z.boolean());
export const dayField = described(z.iso.date());
export const timeField = described(time);
export const nullableTime = described(time.nullable());
export const nextCursorField = nullableText("The cursor of the next page; null on the last page.");

/** A query parameter that is `true` or `false`. */
export const booleanParameter = (description: string) =>
  z
    .string()
    .refine((text) => text === "true" || text === "false", "Must be one of: true, false")
    .transform((text) => text === "true")
    .optional()
    .meta({ description, type: "boolean" });
