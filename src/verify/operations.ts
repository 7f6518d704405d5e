import { z } from "zod";
import type { Operation, Parameter } from "../http/openapi.ts";
import { BODY_ERRORS, PAGE_ERRORS } from "../http/operation-errors.ts";
import { pathId, query } from "../http/parameters.ts";
import { concludeVerification } from "./verdict.ts";
import { evidenceSchema } from "./evidence.ts";
import { SUB_STATUSES, VERDICTS } from "./result.ts";
import { RESULT_EXAMPLE } from "./result-example.ts";
import { completedSchema, listSchema, orderSchema, pendingSchema } from "./schemas.ts";
import { TEST_VERIFIED_AT, testEvidence } from "./test-keys.ts";

const COMPLETED = {
  id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52",
  status: "completed",
  result: RESULT_EXAMPLE,
};

const PENDING = {
  id: COMPLETED.id,
  status: "pending",
  poll_after_ms: 60_800,
  next_retry_at: "2026-01-01T00:01:00.800Z",
};

const TIMEOUT: Parameter = {
  name: "timeout",
  in: "query",
  description: "Seconds to hold the request open; above 90 is treated as 90. It never stops the check.",
  schema: { type: "integer", minimum: 1, default: 5 },
};

const ID = pathId("Identifier of the verification.");

const TAG = "Email verification";

/** The verification routes, as the OpenAPI document describes them. */
export const VERIFY_OPERATIONS: readonly Operation[] = [
  {
    method: "POST",
    path: "/v1/email-verifications",
    tag: TAG,
    summary: "Verify an address",
    description:
      "Answers 200 when the check ends within `timeout`, else 202; then poll. A repeat for an address whose check is pending joins that check. What is no address is a 200 with the sub_status `invalid_syntax`.",
    parameters: [
      TIMEOUT,
      {
        name: "Idempotency-Key",
        in: "header",
        description: "A repeat with the same key answers the same verification, for 24 hours.",
        schema: { type: "string", minLength: 1, maxLength: 200 },
      },
    ],
    rateLimited: true,
    body: { schema: orderSchema, example: { email: "someone@example.com", source: "signup-form" } },
    responses: {
      200: {
        description: "The check is finished.",
        schema: completedSchema,
        example: COMPLETED,
      },
      202: {
        description: "Not finished yet; the check goes on.",
        schema: pendingSchema,
        example: PENDING,
        headers: { Location: "Where to poll." },
      },
    },
    errors: [
      "insufficient_scope",
      "rate_limited",
      "Invalid timeout",
      ...BODY_ERRORS,
      "Invalid idempotency key",
      "insufficient_credits",
      "idempotency_key_reused",
    ],
  },
  {
    method: "GET",
    path: "/v1/email-verifications",
    tag: TAG,
    summary: "List the checks made with the calling key, newest first",
    parameters: [
      query("limit", "Rows per page; above 1000 is treated as 1000.", { type: "integer", minimum: 1, default: 100 }),
      query("cursor", "`next_cursor` of the page before.", { type: "string" }),
      query("status", "Only these.", { enum: ["pending", "completed"] }),
      query("verdict", "Only these.", { enum: VERDICTS }),
      query("sub_status", "Only these.", { enum: SUB_STATUSES }),
      query("source", "Only those of this label.", { type: "string" }),
      query("email", "Only those of this address.", { type: "string" }),
      query("created_after", "Ordered at this time or later.", { type: "string", format: "date-time" }),
      query("created_before", "Ordered before this time.", { type: "string", format: "date-time" }),
    ],
    responses: {
      200: {
        description: "A page.",
        schema: listSchema,
        example: {
          verifications: [
            { ...COMPLETED, email: "someone@example.com", source: null, created_at: "2026-01-01T00:00:00.000Z" },
          ],
          next_cursor: null,
        },
      },
    },
    errors: ["insufficient_scope", ...PAGE_ERRORS],
  },
  {
    method: "GET",
    path: "/v1/email-verifications/:id",
    tag: TAG,
    summary: "Poll a verification",
    description: "200 in both states. ReplyReading is free.",
    parameters: [ID, TIMEOUT],
    responses: {
      200: { description: "Its state.", schema: z.union([completedSchema, pendingSchema]), example: COMPLETED },
    },
    errors: ["insufficient_scope", "Invalid timeout", "not_found"],
  },
  {
    method: "GET",
    path: "/v1/email-verifications/:id/evidence",
    tag: TAG,
    summary: "Why: DNS answers, hosts tried, SMTP transcripts, readings, retries",
    parameters: [ID],
    responses: {
      200: {
        description: "The evidence as far as it has come.",
        schema: evidenceSchema.meta({ title: "Evidence" }),
        example: () => concludeVerification(testEvidence("mailbox_exists@any.example"), TEST_VERIFIED_AT).evidence,
      },
    },
    errors: ["insufficient_scope", "not_found"],
  },
];
