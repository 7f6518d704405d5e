import evidenceExample from "./evidence-example.json" with { type: "json" };
import { z } from "zod";
import { nullableText, textField } from "../foundation/http/schema-fields.ts";
import { isId } from "../foundation/base/secrets.ts";
import { declareRoute } from "../foundation/http/route.ts";
import { idempotencyKeyHeader, idParameter, pageQuery, timeoutParameter } from "../foundation/http/route-input.ts";
import { parseAddress } from "../foundation/mail/address.ts";
import { evidenceSchema } from "./evidence.ts";
import { SUB_STATUSES, VERDICTS, RESULT_EXAMPLE, resultSchema } from "./result.ts";

const EMAIL_CHARACTERS_MAX = 320;
const SOURCE_CHARACTERS_MAX = 200;

const codePoints = (text: string): number => [...text].length;

/** Body of `POST /v1/email-verifications`. White space around the address is not part of it. */
const orderSchema = z
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

const completedSchema = z
  .object({
    id: id(),
    status: z.literal("completed").meta({ description: "The verification is finished." }),
    result: resultSchema.meta({ title: "VerificationResult", description: "What was found out about the address." }),
  })
  .meta({ title: "CompletedVerification" });

const pendingSchema = z
  .object({
    id: id(),
    status: z.literal("pending").meta({ description: "The verification is still running." }),
    poll_after_ms: z.int().min(500).meta({ description: "Minimum wait before polling again, in milliseconds." }),
    next_retry_at: time.meta({ description: "The same wait as an absolute time." }),
  })
  .meta({ title: "PendingVerification" });

const listed = {
  email: textField("The address as it was submitted."),
  source: nullableText("The label given with the request."),
  created_at: time.meta({ description: "When the verification was requested." }),
};

const listedCompleted = completedSchema.extend(listed).meta({ title: "ListedCompletedVerification" });
const listedPending = pendingSchema.extend(listed).meta({ title: "ListedPendingVerification" });

const listSchema = z
  .object({
    verifications: z.array(z.union([listedCompleted, listedPending])).meta({ description: "Newest first." }),
    next_cursor: nullableText("Pass it as `cursor` for the next page; null on the last."),
  })
  .meta({ title: "VerificationList" });

const TAG = "Email verification";
const PATH = "/v1/email-verifications";

const COMPLETED = { id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52", status: "completed", result: RESULT_EXAMPLE };

const PENDING = {
  id: COMPLETED.id,
  status: "pending",
  poll_after_ms: 60_800,
  next_retry_at: "2026-01-01T00:01:00.800Z",
};

const params = z.object({ id: idParameter("verification") });
const timeoutQuery = z.strictObject({ timeout: timeoutParameter() });

export const CREATE_VERIFICATION = declareRoute({
  method: "POST",
  path: PATH,
  operationId: "createVerification",
  tag: TAG,
  unrecorded: "the verification itself names its key",
  summary: "Verify an address",
  description:
    "Returns 200 if the verification finishes within `timeout`, otherwise 202: poll the URL in `Location`. If a verification of the same address is pending, the request joins it and is not charged again. A text that is not an address is a 200 with the sub_status `invalid_syntax`. A publishable key (`pw_pub_…`) may be used from pages of its origins only (CORS); its `result` has `verdict`, `sub_status` and `did_you_mean` and nothing else. Where the key asks no mail server, `id` is null, and so are `verdict` and `sub_status` when nothing speaks against the address.",
  scope: "verifications:write",
  rateLimited: true,
  forForms: true,
  query: timeoutQuery,
  headers: idempotencyKeyHeader("A request repeated with the same key within 24 hours returns the same verification."),
  body: { schema: orderSchema, example: { email: "someone@example.com", source: "signup-form" } },
  responses: {
    200: { description: "The verification is finished.", schema: completedSchema, example: COMPLETED },
    202: {
      description: "The verification is still running.",
      schema: pendingSchema,
      example: PENDING,
      headers: { Location: "The URL to poll." },
    },
  },
  errors: ["insufficient_credits", "idempotency_key_reused"],
});

const moment = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

const normalizedEmail = z.string().transform((text) => {
  const address = parseAddress(text);
  return address.ok ? address.value.normalized : text.trim().toLowerCase();
});

export const LIST_VERIFICATIONS = declareRoute({
  method: "GET",
  path: PATH,
  operationId: "listVerifications",
  tag: TAG,
  summary: "List verifications",
  description: "Returns the verifications requested with the calling key, newest first.",
  scope: "verifications:read",
  query: pageQuery(isId, {
    status: z.enum(["pending", "completed"]).optional().meta({ description: "Only verifications of this status." }),
    verdict: z.enum(VERDICTS).optional().meta({ description: "Only verifications of this verdict." }),
    sub_status: z.enum(SUB_STATUSES).optional().meta({ description: "Only verifications of this sub_status." }),
    source: z.string().optional().meta({ description: "Only verifications with this label." }),
    email: normalizedEmail.optional().meta({ description: "Only verifications of this address." }),
    created_after: moment.optional().meta({ description: "Only verifications requested at or after this time." }),
    created_before: moment.optional().meta({ description: "Only verifications requested before this time." }),
  }),
  responses: {
    200: {
      description: "A page of verifications.",
      schema: listSchema,
      example: {
        verifications: [
          { ...COMPLETED, email: "someone@example.com", source: null, created_at: "2026-01-01T00:00:00.000Z" },
        ],
        next_cursor: null,
      },
    },
  },
});

export const GET_VERIFICATION = declareRoute({
  method: "GET",
  path: `${PATH}/:id`,
  operationId: "getVerification",
  tag: TAG,
  summary: "Poll a verification",
  description:
    "Returns 200 whether the verification is finished or pending. Polling is free. A publishable key polls what it requested itself, from pages of its origins.",
  scope: "verifications:read",
  forForms: true,
  params,
  query: timeoutQuery,
  responses: {
    200: {
      description: "The verification.",
      schema: z.union([completedSchema, pendingSchema]),
      example: COMPLETED,
    },
  },
});

export const GET_VERIFICATION_EVIDENCE = declareRoute({
  method: "GET",
  path: `${PATH}/:id/evidence`,
  operationId: "getVerificationEvidence",
  tag: TAG,
  summary: "Get the evidence of a verification",
  description:
    "Everything that the verdict is based on: DNS responses, the hosts contacted, the SMTP transcripts, the rule that matched each reply, and retries.",
  scope: "verifications:read",
  params,
  responses: {
    200: {
      description: "The evidence collected so far.",
      schema: evidenceSchema.meta({ title: "Evidence" }),
      example: evidenceExample,
    },
  },
});

export const DELETE_VERIFICATION = declareRoute({
  method: "DELETE",
  path: `${PATH}/:id`,
  operationId: "deleteVerification",
  tag: TAG,
  summary: "Delete a verification",
  description: "Deletes a completed verification with its result and evidence. The credit stays spent.",
  scope: "verifications:write",
  params,
  responses: { 204: { description: "The verification is deleted." } },
  errors: ["conflict"],
});

export const GET_WIDGET = declareRoute({
  method: "GET",
  path: "/widget.js",
  operationId: "getWidget",
  tag: TAG,
  summary: "Load the form script",
  description:
    "A page includes it as a script with the attribute `data-key`, a publishable key. It checks the addresses of forms with the attribute `data-postwarden`.",
  scope: "open",
  responses: {
    200: {
      description: "The script.",
      contentType: "text/javascript",
      schema: z.string().meta({ description: "JavaScript without dependencies." }),
      example: '"use strict";',
    },
  },
  errors: ["unavailable"],
});

/** The verification routes. */
export const VERIFY_ROUTES = [
  CREATE_VERIFICATION,
  LIST_VERIFICATIONS,
  GET_VERIFICATION,
  GET_VERIFICATION_EVIDENCE,
  DELETE_VERIFICATION,
  GET_WIDGET,
] as const;
