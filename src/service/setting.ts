import type { z } from "zod";

export const PREFIX = "POSTWARDEN_";

/** A value as `postwarden config` shows it; null when the setting is not set. */
export type Shown = string | number | readonly (string | number)[] | null;

/** A setting: its name without the prefix, how its text is read, and how the value is shown, without any secret. */
interface Setting<Schema extends z.ZodType> {
  readonly name: string;
  /** What it does, as Markdown. */
  readonly description: string;
  readonly schema: Schema;
  readonly show: (value: z.output<Schema>) => Shown;
  /** The default in words, where its value depends on the machine or is not set. */
  readonly defaultWords?: string;
}

/** A setting whose value is shown as it is. */
export const setting = <Schema extends z.ZodType<Shown>>(
  name: string,
  description: string,
  schema: Schema,
  defaultWords?: string,
): Setting<Schema> => formattedSetting(name, description, schema, (value) => value, defaultWords);

/** A setting whose value `show` formats. */
export const formattedSetting = <Schema extends z.ZodType>(
  name: string,
  description: string,
  schema: Schema,
  show: (value: z.output<Schema>) => Shown,
  defaultWords?: string,
): Setting<Schema> => ({
  name,
  description,
  schema,
  show,
  ...(defaultWords === undefined ? {} : { defaultWords }),
});

export const optional = <Schema extends z.ZodType>(schema: Schema) =>
  schema.optional().transform((value) => value ?? null);
