import { z } from "zod";
import { parseAddress } from "../mail/address.ts";
import { resultSchema, SUB_STATUSES, VERDICTS } from "./result.ts";

const EMAIL_CHARACTERS_MAX = 320;
const SOURCE_CHARACTERS_MAX = 200;

const codePoints = (text: string): number => [...text].length;

/** Body of `POST /v1/email-verifications`. White space around the address is not part of it. */
export const orderSchema = z
  .strictObject({
    email: z
      .string()
      .trim()
      .min(1, "An address is needed")
      .refine((text) => codePoints(text) <= EMAIL_CHARACTERS_MAX, `At most ${EMAIL_CHARACTERS_MAX} characters`)
      .meta({
        description: "The address to verify, 1 to 320 characters.",
        maxLength: EMAIL_CHARACTERS_MAX,
        examples: ["someone@example.com"],
      }),
    source: z
      .string()
      .min(1, "Leave the field out rather than empty")
      .refine((text) => codePoints(text) <= SOURCE_CHARACTERS_MAX, `At most ${SOURCE_CHARACTERS_MAX} characters`)
      .optional()
      .meta({
        description: "Free-form label for the caller's own attribution.",
        maxLength: SOURCE_CHARACTERS_MAX,
        examples: ["signup-form"],
      }),
  })
  .meta({ title: "VerificationOrder" });

const moment = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

/** The filters of the list. */
export const filtersSchema = z.strictObject({
  status: z.enum(["pending", "completed"]).optional(),
  verdict: z.enum(VERDICTS).optional(),
  sub_status: z.enum(SUB_STATUSES).optional(),
  source: z.string().optional(),
  email: z
    .string()
    .transform((text) => {
      const address = parseAddress(text);
      return address.ok ? address.value.normalized : text.trim().toLowerCase();
    })
    .optional(),
  created_after: moment.optional(),
  created_before: moment.optional(),
});

const time = z.iso.datetime({ precision: 3 });

export const completedSchema = z
  .object({ id: z.uuid(), status: z.literal("completed"), result: resultSchema.meta({ title: "VerificationResult" }) })
  .meta({ title: "CompletedVerification" });

export const pendingSchema = z
  .object({
    id: z.uuid(),
    status: z.literal("pending"),
    poll_after_ms: z.int().min(500).meta({ description: "Minimum wait before polling again, in milliseconds." }),
    next_retry_at: time.meta({ description: "The same wait as an absolute time." }),
  })
  .meta({ title: "PendingVerification" });

const listed = { email: z.string(), source: z.string().nullable(), created_at: time };

const listedCompleted = completedSchema.extend(listed).meta({ title: "ListedCompletedVerification" });
const listedPending = pendingSchema.extend(listed).meta({ title: "ListedPendingVerification" });

export const listSchema = z
  .object({
    verifications: z.array(z.union([listedCompleted, listedPending])),
    next_cursor: z.string().nullable(),
  })
  .meta({ title: "VerificationList" });
