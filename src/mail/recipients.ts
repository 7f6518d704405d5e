import { z } from "zod";
import { parseAddress } from "./address.ts";

export interface RecipientsForm {
  /** How many there may be, before those that are the same become one. */
  readonly most: number;
  readonly description: string;
}

/** A list of addresses that mail goes to: in their normal form, each once. */
export const recipientsSchema = ({ most, description }: RecipientsForm) =>
  z
    .array(
      z.string().transform((text, context) => {
        const parsed = parseAddress(text.trim());
        if (parsed.ok) return parsed.value.normalized;
        context.addIssue({ code: "custom", message: "An email address is needed" });
        return z.NEVER;
      }),
    )
    .max(most)
    .transform((addresses) => [...new Set(addresses)])
    .meta({ description, examples: [["ops@example.com"]] });
