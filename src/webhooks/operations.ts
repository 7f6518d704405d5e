import type { EventDoc, Operation } from "../http/openapi.ts";
import { BODY_ERRORS, PAGE_ERRORS } from "../http/operation-errors.ts";
import { PAGE, pathId, query } from "../http/parameters.ts";
import { createOutgoingRules } from "../net/fetch-url.ts";
import {
  deliveriesSchema,
  deliverySchema,
  EVENT_TYPES,
  secretsSchema,
  TEST_MESSAGE,
  testEventSchema,
  testResultSchema,
  testSchema,
} from "./schemas.ts";
import { DELIVERY_STATUSES } from "./store.ts";

const TAG = "Webhooks";

const DELIVERY = {
  id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52",
  type: "blacklist.listed",
  url: "https://example.com/hook",
  status: "pending",
  attempts: 1,
  created_at: "2026-01-01T00:00:00.000Z",
  next_attempt_at: "2026-01-01T00:00:05.200Z",
  finished_at: null,
  last_attempt: { at: "2026-01-01T00:00:00.200Z", http_status: 503, problem: "The receiver answered 503." },
  event: {
    type: "blacklist.listed",
    timestamp: "2026-01-01T00:00:00.000Z",
    data: { target: "192.0.2.1", listing: "spamhaus-sbl" },
  },
};

const SECRETS = {
  secrets: [
    {
      secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=",
      created_at: "2026-01-01T00:00:00.000Z",
      valid_until: null,
    },
  ],
};

/** The webhook routes, as the OpenAPI document describes them. */
export const WEBHOOK_OPERATIONS: readonly Operation[] = [
  {
    method: "GET",
    path: "/v1/webhooks/deliveries",
    tag: TAG,
    summary: "Events and how their delivery goes, newest first",
    description:
      "Signed as Standard Webhooks 1.0 says. At least once; the events for one URL in their order. A failure is repeated after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h; 410 turns the URL off until it is set again. Finished deliveries are kept for 30 days.",
    parameters: [
      ...PAGE,
      query("status", "Only those.", { type: "string", enum: [...DELIVERY_STATUSES] }),
      query("type", "Only events of this type.", { type: "string", enum: EVENT_TYPES }),
      query("url", "Only those for this URL.", { type: "string" }),
    ],
    responses: {
      200: {
        description: "A page.",
        schema: deliveriesSchema,
        example: { deliveries: [DELIVERY], next_cursor: null },
      },
    },
    errors: ["insufficient_scope", ...PAGE_ERRORS],
  },
  {
    method: "GET",
    path: "/v1/webhooks/deliveries/:id",
    tag: TAG,
    summary: "One event and how its delivery goes",
    parameters: [pathId("Identifier of the delivery.")],
    responses: { 200: { description: "Its state.", schema: deliverySchema, example: DELIVERY } },
    errors: ["insufficient_scope", "not_found"],
  },
  {
    method: "POST",
    path: "/v1/webhooks/deliveries/:id/redeliver",
    tag: TAG,
    summary: "Send an event again, under the same `webhook-id`",
    parameters: [
      {
        name: "id",
        in: "path",
        description: "Identifier of the delivery.",
        schema: { type: "string", format: "uuid" },
      },
    ],
    responses: { 202: { description: "It will be sent.", schema: deliverySchema, example: DELIVERY } },
    errors: ["insufficient_scope", "not_found"],
  },
  {
    method: "POST",
    path: "/v1/webhooks/test",
    tag: TAG,
    summary: "Send a signed `webhook.test` to a URL, and see how that goes",
    description: "Takes up to 15 seconds. What the receiver does wrong is told in a 200 with `delivered: false`.",
    body: { schema: testSchema(createOutgoingRules([])), example: { url: "https://example.com/hook" } },
    responses: {
      200: {
        description: "How it went.",
        schema: testResultSchema,
        example: {
          id: DELIVERY.id,
          url: "https://example.com/hook",
          delivered: true,
          http_status: 204,
          problem: null,
          elapsed_ms: 87,
        },
      },
    },
    errors: ["insufficient_scope", ...BODY_ERRORS],
  },
  {
    method: "GET",
    path: "/v1/webhooks/secret",
    tag: TAG,
    summary: "The signing secret of the key's mode; two for a day after a rotation",
    description:
      "Live and test events are signed with different secrets. A test key reads the secret of test events only.",
    responses: { 200: { description: "The newest first.", schema: secretsSchema, example: SECRETS } },
    errors: ["insufficient_scope"],
  },
  {
    method: "POST",
    path: "/v1/webhooks/secret/rotate",
    tag: TAG,
    summary: "A new signing secret; the old one signs as well for 24 hours",
    description: "Rotates the secret of the key's mode; the other mode keeps its own.",
    responses: { 200: { description: "The newest first.", schema: secretsSchema, example: SECRETS } },
    errors: ["insufficient_scope"],
  },
];

/** The event of a test call, as the OpenAPI document describes it. */
export const WEBHOOK_EVENTS: readonly EventDoc[] = [
  {
    type: "webhook.test",
    tag: TAG,
    summary: "You asked for it with `POST /v1/webhooks/test`",
    data: testEventSchema,
    example: { message: TEST_MESSAGE, mode: "live" },
  },
];
