import { z } from "zod";
import { isId } from "../../foundation/base/secrets.ts";
import type { EventDoc } from "../../foundation/http/openapi.ts";
import { type AnyRoute, declareRoute } from "../../foundation/http/route.ts";
import { idParameter, pageQuery } from "../../foundation/http/route-input.ts";
import type { UrlPolicy } from "../../foundation/net/fetch-url.ts";
import { TEST_MESSAGE } from "./webhooks.ts";
import {
  cancelSchema,
  deliveriesSchema,
  deliveryFilters,
  deliverySchema,
  eventFilters,
  type EventTypes,
  eventsSchema,
  manySchema,
  redeliverSchema,
  secretsSchema,
  testEventSchema,
  testResultSchema,
  testSchema,
} from "./schemas.ts";
import { okResponse } from "../../foundation/http/schema-fields.ts";

const TAG = "Webhooks";
const DELIVERIES = "/v1/webhooks/deliveries";

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

const EVENT = {
  id: DELIVERY.event_id,
  type: DELIVERY.type,
  subject: DELIVERY.subject,
  timestamp: DELIVERY.event.timestamp,
  data: { ...DELIVERY.event.data, mode: "live" },
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

const MANY = { count: 12, next_cursor: null };

const params = z.object({ id: idParameter("delivery") });

export const listDeliveries = (types: EventTypes) =>
  declareRoute({
    method: "GET",
    path: DELIVERIES,
    operationId: "listWebhookDeliveries",
    tag: TAG,
    summary: "List webhook deliveries",
    description:
      "Returns events and the state of their delivery, newest first. Deliveries are signed as specified by Standard Webhooks 1.0, are made at least once, and in order for each subject. A failed delivery is repeated after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h, and not before a `Retry-After` (at most 24 hours); with 429 and 503 nothing else is sent to the URL before. A delivery that the receiver refuses three times with a 4xx other than 408, 409, 410, 425 and 429 is `rejected`, and the next one is sent; 410 disables the URL until it is set again. Finished deliveries are kept for 30 days.",
    scope: "webhooks:read",
    query: pageQuery(isId, deliveryFilters(types)),
    responses: {
      200: okResponse("A page of deliveries.", deliveriesSchema, { deliveries: [DELIVERY], next_cursor: null }),
    },
  });

export const GET_DELIVERY = declareRoute({
  method: "GET",
  path: `${DELIVERIES}/:id`,
  operationId: "getWebhookDelivery",
  tag: TAG,
  summary: "Get a webhook delivery",
  description: "Returns an event and the state of its delivery to one URL.",
  scope: "webhooks:read",
  params,
  responses: { 200: okResponse("The delivery.", deliverySchema, DELIVERY) },
});

export const REDELIVER = declareRoute({
  method: "POST",
  path: `${DELIVERIES}/:id/redeliver`,
  operationId: "redeliverWebhook",
  tag: TAG,
  summary: "Redeliver an event",
  description: "Sends the event again with the same `webhook-id`. Enables the URL if it was disabled.",
  scope: "webhooks:write",
  params,
  responses: { 202: okResponse("The pending delivery.", deliverySchema, DELIVERY) },
});

export const CANCEL_DELIVERY = declareRoute({
  method: "POST",
  path: `${DELIVERIES}/:id/cancel`,
  operationId: "cancelWebhookDelivery",
  tag: TAG,
  summary: "Cancel a pending delivery",
  description:
    "The next event about the same subject is sent. A request that is already on its way may still arrive; the delivery is then `delivered`.",
  scope: "webhooks:write",
  params,
  responses: {
    200: okResponse("The cancelled delivery.", deliverySchema, {
      ...DELIVERY,
      status: "cancelled",
      next_attempt_at: null,
      finished_at: "2026-01-01T00:01:00.000Z",
    }),
  },
  errors: ["conflict"],
});

export const redeliverMany = (types: EventTypes) =>
  declareRoute({
    method: "POST",
    path: `${DELIVERIES}/redeliver`,
    operationId: "redeliverWebhooks",
    tag: TAG,
    summary: "Redeliver many events",
    description:
      "Sends again all that match the filters, oldest first; without `status` those that are `rejected` or `failed`. One call changes at most 10,000; if there are more, `next_cursor` is set: repeat the call with it as `cursor`.",
    scope: "webhooks:write",
    body: {
      schema: redeliverSchema(types),
      example: { status: "rejected", url: "https://example.com/hook", since: "2026-01-01T00:00:00Z" },
    },
    responses: { 202: okResponse("The number of pending deliveries.", manySchema, MANY) },
    errors: ["Invalid cursor"],
  });

export const cancelMany = (types: EventTypes) =>
  declareRoute({
    method: "POST",
    path: `${DELIVERIES}/cancel`,
    operationId: "cancelWebhookDeliveries",
    tag: TAG,
    summary: "Cancel many pending deliveries",
    description:
      "Cancels all pending deliveries that match the filters; without filters all. `next_cursor` as for redelivery.",
    scope: "webhooks:write",
    body: { schema: cancelSchema(types), example: { type: "blacklist.listed", until: "2026-01-01T00:00:00Z" } },
    responses: { 200: okResponse("The number of cancelled deliveries.", manySchema, MANY) },
    errors: ["Invalid cursor"],
  });

export const listEvents = (types: EventTypes) =>
  declareRoute({
    method: "GET",
    path: "/v1/events",
    operationId: "listEvents",
    tag: TAG,
    summary: "List events",
    description:
      "Returns every event of the account and the key's mode, oldest first, whether or not it was sent to a webhook. Events are kept for 30 days, at most the newest 100,000 of an account and mode. To continue where you stopped, pass the last `id` as `after`.",
    scope: "webhooks:read",
    query: pageQuery(isId, eventFilters(types)),
    responses: {
      200: okResponse("A page of events.", eventsSchema, { events: [EVENT], next_cursor: null }),
    },
  });

/** `policy`: which URLs are allowed. */
export const testWebhook = (policy: UrlPolicy, types: EventTypes) =>
  declareRoute({
    method: "POST",
    path: "/v1/webhooks/test",
    operationId: "testWebhook",
    tag: TAG,
    summary: "Send a test event",
    description:
      "Sends a signed event to a URL and returns the result: `webhook.test`, or another `type` with the data of its example. Test events have `data.test: true` and the mode of the key. Takes up to 15 seconds. A failed delivery is a 200 with `delivered: false`.",
    scope: "webhooks:write",
    body: { schema: testSchema(policy, types), example: { url: "https://example.com/hook", type: "blacklist.listed" } },
    responses: {
      200: okResponse("The result of the attempt.", testResultSchema, {
        id: DELIVERY.id,
        url: "https://example.com/hook",
        type: "blacklist.listed",
        delivered: true,
        http_status: 204,
        problem: null,
        elapsed_ms: 87,
      }),
    },
  });

const secretResponses = { 200: okResponse("Newest first.", secretsSchema, SECRETS) };

export const GET_SECRETS = declareRoute({
  method: "GET",
  path: "/v1/webhooks/secret",
  operationId: "getWebhookSecrets",
  tag: TAG,
  summary: "Get the signing secrets",
  description:
    "Returns the secret of the key's mode; for 24 hours after a rotation also the old one. Live and test events are signed with different secrets.",
  scope: "webhooks:write",
  responses: secretResponses,
});

export const ROTATE_SECRET = declareRoute({
  method: "POST",
  path: "/v1/webhooks/secret/rotate",
  operationId: "rotateWebhookSecret",
  tag: TAG,
  summary: "Rotate the signing secret",
  description: "Creates a new secret for the key's mode. The old one also signs for 24 hours.",
  scope: "webhooks:write",
  responses: secretResponses,
});

export const webhookRoutes = (policy: UrlPolicy, types: EventTypes): readonly AnyRoute[] => [
  listDeliveries(types),
  GET_DELIVERY,
  REDELIVER,
  CANCEL_DELIVERY,
  redeliverMany(types),
  cancelMany(types),
  listEvents(types),
  testWebhook(policy, types),
  GET_SECRETS,
  ROTATE_SECRET,
];

/** The event of a test call. */
export const WEBHOOK_EVENTS: readonly EventDoc[] = [
  {
    type: "webhook.test",
    tag: TAG,
    summary: "A test event was requested with `POST /v1/webhooks/test`",
    title: () => "Test message",
    data: testEventSchema,
    example: { message: TEST_MESSAGE, test: true, mode: "live" },
  },
];
