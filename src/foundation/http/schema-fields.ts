import { z } from "zod";

const described =
  <Schema extends z.ZodType>(schema: Schema) =>
  (description: string) =>
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

/** Of every label: characters, not UTF-16 units. */
const LABEL_CHARACTERS_MAX = 200;
const DESCRIPTION = "Free text of your own.";

/** Said of an empty label where leaving the field out means that it stays. */
export const REMOVE_WITH_NULL = "Not empty: null removes it";

/** A label that users give to what is theirs. `whenEmpty` says what to do instead of giving an empty one. */
export const labelSchema = (
  example: string,
  description = DESCRIPTION,
  whenEmpty = "Leave the field out rather than empty",
) =>
  z
    .string(`Text of at most ${LABEL_CHARACTERS_MAX} characters is needed`)
    .min(1, whenEmpty)
    .refine((text) => [...text].length <= LABEL_CHARACTERS_MAX, `At most ${LABEL_CHARACTERS_MAX} characters`)
    .meta({ description, maxLength: LABEL_CHARACTERS_MAX, examples: [example] });
export const idField = described(z.uuid());
export const nullableId = described(z.uuid().nullable());
export const textsField = described(z.array(z.string()));
export const nullableInteger = described(z.int().nullable());
export const optionalFlag = described(z.boolean().optional());

/** One of some words. */
export const enumField = <const Words extends readonly string[]>(words: Words, description: string) =>
  z.enum(words).meta({ description });
export const nullableEnum = <const Words extends readonly string[]>(words: Words, description: string) =>
  z.enum(words).nullable().meta({ description });
export const optionalEnum = <const Words extends readonly string[]>(words: Words, description: string) =>
  z.enum(words).optional().meta({ description });

export const listField = <Item extends z.ZodType>(item: Item, description: string) =>
  z.array(item).meta({ description });

/** A response, and a request body, which has no other fields; the document of the API names them. */
export const namedResponse = <Shape extends z.ZodRawShape>(title: string, shape: Shape) =>
  z.object(shape).meta({ title });
export const namedBody = <Shape extends z.ZodRawShape>(title: string, shape: Shape) =>
  z.strictObject(shape).meta({ title });

/** A response of an operation. */
export const okResponse = <Schema extends z.ZodType>(description: string, schema: Schema, example: unknown) => ({
  description,
  schema,
  example,
});
