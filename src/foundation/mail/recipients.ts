import { z } from "zod";
import { parseAddress } from "./address.ts";

interface RecipientsForm {
  /** How many there may be, before those that are the same become one. */
  readonly most: number;
  readonly description: string;
}

/** An address that mail goes to, in its normal form. */
export const recipientSchema = z.string().transform((text, context) => {
  const parsed = parseAddress(text.trim());
  if (parsed.ok) return parsed.value.normalized;
  context.addIssue({ code: "custom", message: "Must be an email address" });
  return z.NEVER;
});

/** A list of addresses that mail goes to: in their normal form, each once. */
export const recipientsSchema = ({ most, description }: RecipientsForm) =>
  z
    .array(recipientSchema)
    .max(most)
    .transform((addresses) => [...new Set(addresses)])
    .meta({ description, examples: [["ops@example.com"]] });

/** Domains (lower-case A-labels) whose addresses may receive alert mail; an empty list allows every address. */
export type RecipientDomains = readonly string[];

/** Whether an address in its normal form may be sent alert mail. */
export const isAllowedRecipient = (address: string, domains: RecipientDomains): boolean =>
  domains.length === 0 || domains.includes(address.slice(address.lastIndexOf("@") + 1));

/** Why recipients are refused by a service that is not configured to send mail. */
export const NO_MAIL_PROBLEM = "This service does not send mail: POSTWARDEN_NOTIFY_SMTP_URL is not set.";

/** Why some recipients may not be, in a sentence; null when all may. */
export const recipientsProblem = (addresses: readonly string[], domains: RecipientDomains): string | null => {
  const refused = addresses.find((address) => !isAllowedRecipient(address, domains));
  if (refused === undefined) return null;
  return `${refused}: this service sends alert mail to addresses at ${domains.join(", ")} only`;
};
