import { z } from "zod";

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
