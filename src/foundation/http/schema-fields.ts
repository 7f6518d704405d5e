import { z } from "zod";

/** The fields that most responses consist of, each with its description. */
export const textField = (description: string) => z.string().meta({ description });
export const nullableText = (description: string) => z.string().nullable().meta({ description });
export const countField = (description: string) => z.int().nonnegative().meta({ description });
export const flagField = (description: string) => z.boolean().meta({ description });
export const timeField = (description: string) => z.iso.datetime({ precision: 3 }).meta({ description });
export const nullableTime = (description: string) => z.iso.datetime({ precision: 3 }).nullable().meta({ description });
export const nextCursorField = nullableText("The cursor of the next page; null on the last page.");

/** A query parameter that is `true` or `false`. */
export const booleanParameter = (description: string) =>
  z
    .string()
    .refine((text) => text === "true" || text === "false", "Must be one of: true, false")
    .transform((text) => text === "true")
    .optional()
    .meta({ description, type: "boolean" });
