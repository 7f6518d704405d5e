import type { EventDoc, Operation } from "../http/openapi.ts";
import { BODY_ERRORS, PAGE_ERRORS } from "../http/operation-errors.ts";
import { PAGE, pathId, query } from "../http/parameters.ts";
import { createUrlPolicy } from "../net/fetch-url.ts";
import {
  cancelSchema,
  deliveriesSchema,
  deliverySchema,
  EVENT_TYPES,
  eventsSchema,
  manySchema,
  redeliverSchema,
  secretsSchema,
  TEST_MESSAGE,
  testEventSchema,
  testResultSchema,
  testSchema,
} from "./schemas.ts";
import { DELIVERY_STATUSES } from "./delivery-store.ts";

const TAG = "Webhooks";
const TIME = { type: "string", format: "date-time" } as const;
const SUBJECT = { type: "string", examples: ["target:019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a40"] } as const;

const DELIVERY = {
  id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52",
  event_id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52",
  type: "blacklist.listed",
  subject: "target:019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a40",
  url: "https://example.com/hook",
  format: "standard",
  status: "pending",
  attempts: 1,
  created_at: "2026-01-01T00:00:00.000Z",
  next_attempt_at: "2026-01-01T00:00:05.200Z",
  finished_at: null,
  last_attempt: {
    at: "2026-01-01T00:00:00.200Z",
    http_status: 503,
    problem: "The receiver responded 503: busy.",
    response_body: "busy",
  },
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
      "Signed as Standard Webhooks 1.0 says. At least once; the events about one subject in their order. A failure is repeated after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h, and not before a `Retry-After` (24 hours at most); with 429 and 503 nothing else is sent to the URL before. An event that the receiver refuses three times with a 4xx other than 408, 409, 410, 425 and 429 is `rejected`, and what is behind it goes on; 410 turns the URL off until it is set again. Finished deliveries are kept for 30 days.",
    parameters: [
      ...PAGE,
      query("status", "Only those.", { type: "string", enum: [...DELIVERY_STATUSES] }),
      query("type", "Only events of this type.", { type: "string", enum: EVENT_TYPES }),
      query("url", "Only those for this URL.", { type: "string" }),
      query("subject", "Only events about this.", SUBJECT),
      query("since", "Only events from this moment on.", TIME),
      query("until", "Only events before this moment.", TIME),
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
    path: "/v1/webhooks/deliveries/:id/cancel",
    tag: TAG,
    summary: "Give up an event that waits; what is behind it goes on",
    description: "A request that is on its way may still arrive; the delivery is then `delivered`.",
    parameters: [pathId("Identifier of the delivery.")],
    responses: {
      200: {
        description: "It is cancelled.",
        schema: deliverySchema,
        example: { ...DELIVERY, status: "cancelled", next_attempt_at: null, finished_at: "2026-01-01T00:01:00.000Z" },
      },
    },
    errors: ["insufficient_scope", "not_found", "conflict"],
  },
  {
    method: "POST",
    path: "/v1/webhooks/deliveries/redeliver",
    tag: TAG,
    summary: "Send many events again, the oldest first",
    description:
      "All that pass the filters; without `status` those that are `rejected` or `failed`. A call changes 10,000 at most; then `next_cursor` is set, and the same call with it as `cursor` goes on.",
    body: {
      schema: redeliverSchema,
      example: { status: "rejected", url: "https://example.com/hook", since: "2026-01-01T00:00:00Z" },
    },
    responses: {
      202: { description: "They will be sent.", schema: manySchema, example: { count: 12, next_cursor: null } },
    },
    errors: ["insufficient_scope", "Invalid cursor", ...BODY_ERRORS],
  },
  {
    method: "POST",
    path: "/v1/webhooks/deliveries/cancel",
    tag: TAG,
    summary: "Give up many events that wait",
    description: "All pending ones that pass the filters; without filters all. `next_cursor` as with redelivery.",
    body: { schema: cancelSchema, example: { type: "blacklist.listed", until: "2026-01-01T00:00:00Z" } },
    responses: {
      200: { description: "They are cancelled.", schema: manySchema, example: { count: 12, next_cursor: null } },
    },
    errors: ["insufficient_scope", "Invalid cursor", ...BODY_ERRORS],
  },
  {
    method: "GET",
    path: "/v1/events",
    tag: TAG,
    summary: "Every event of the account and the key's mode, oldest first",
    description:
      "Also those that went to no webhook. Kept for 30 days, and of an account and mode the newest 100,000. To go on where you were, pass the last `id` as `after`.",
    parameters: [
      ...PAGE,
      query("since", "Only events from this moment on.", TIME),
      query("type", "Only events of this type.", { type: "string", enum: EVENT_TYPES }),
      query("subject", "Only events about this.", SUBJECT),
      query("after", "Only events behind the one with this `id`.", { type: "string", format: "uuid" }),
    ],
    responses: {
      200: {
        description: "A page.",
        schema: eventsSchema,
        example: {
          events: [
            {
              id: DELIVERY.event_id,
              type: DELIVERY.type,
              subject: DELIVERY.subject,
              timestamp: DELIVERY.event.timestamp,
              data: { ...DELIVERY.event.data, mode: "live" },
            },
          ],
          next_cursor: null,
        },
      },
    },
    errors: ["insufficient_scope", ...PAGE_ERRORS],
  },
  {
    method: "POST",
    path: "/v1/webhooks/test",
    tag: TAG,
    summary: "Send a signed test event to a URL, and see how that goes",
    description:
      "`webhook.test`, or the `type` that you name with the data of its example below. Every test event has `data.test: true`, and the mode of the key. Takes up to 15 seconds. What the receiver does wrong is told in a 200 with `delivered: false`.",
    body: {
      schema: testSchema(createUrlPolicy([])),
      example: { url: "https://example.com/hook", type: "blacklist.listed" },
    },
    responses: {
      200: {
        description: "How it went.",
        schema: testResultSchema,
        example: {
          id: DELIVERY.id,
          url: "https://example.com/hook",
          type: "blacklist.listed",
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
    example: { message: TEST_MESSAGE, test: true, mode: "live" },
  },
];
