import { z } from "zod";
import { resultSchema } from "./result.ts";

const EMAIL_CHARACTERS_MAX = 320;
const SOURCE_CHARACTERS_MAX = 200;

const codePoints = (text: string): number => [...text].length;

/** Body of `POST /v1/email-verifications`. White space around the address is not part of it. */
export const orderSchema = z
  .strictObject({
    email: z
      .string()
      .trim()
      .min(1, "Must not be empty")
      .refine((text) => codePoints(text) <= EMAIL_CHARACTERS_MAX, `At most ${EMAIL_CHARACTERS_MAX} characters`)
      .meta({
        description: "The address to verify, 1 to 320 characters.",
        maxLength: EMAIL_CHARACTERS_MAX,
        examples: ["someone@example.com"],
      }),
    source: z
      .string()
      .min(1, "Omit the field instead of sending an empty string")
      .refine((text) => codePoints(text) <= SOURCE_CHARACTERS_MAX, `At most ${SOURCE_CHARACTERS_MAX} characters`)
      .optional()
      .meta({
        description: "Free-form label, for your own use.",
        maxLength: SOURCE_CHARACTERS_MAX,
        examples: ["signup-form"],
      }),
  })
  .meta({ title: "VerificationOrder" });

const time = z.iso.datetime({ precision: 3 });
const id = () => z.uuid().meta({ description: "The id of the verification." });

export const completedSchema = z
  .object({
    id: id(),
    status: z.literal("completed").meta({ description: "The verification is finished." }),
    result: resultSchema.meta({ title: "VerificationResult", description: "What was found out about the address." }),
  })
  .meta({ title: "CompletedVerification" });

export const pendingSchema = z
  .object({
    id: id(),
    status: z.literal("pending").meta({ description: "The verification is still running." }),
    poll_after_ms: z.int().min(500).meta({ description: "Minimum wait before polling again, in milliseconds." }),
    next_retry_at: time.meta({ description: "The same wait as an absolute time." }),
  })
  .meta({ title: "PendingVerification" });

const listed = {
  email: z.string().meta({ description: "The address as it was submitted." }),
  source: z.string().nullable().meta({ description: "The label given with the request." }),
  created_at: time.meta({ description: "When the verification was requested." }),
};

const listedCompleted = completedSchema.extend(listed).meta({ title: "ListedCompletedVerification" });
const listedPending = pendingSchema.extend(listed).meta({ title: "ListedPendingVerification" });

export const listSchema = z
  .object({
    verifications: z.array(z.union([listedCompleted, listedPending])).meta({ description: "Newest first." }),
    next_cursor: z
      .string()
      .nullable()
      .meta({ description: "Pass it as `cursor` for the next page; null on the last." }),
  })
  .meta({ title: "VerificationList" });
