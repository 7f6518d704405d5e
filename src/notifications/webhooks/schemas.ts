import { z } from "zod";
import { nextCursorField, nullableTime, timeField } from "../../foundation/http/schema-fields.ts";
import type { UrlPolicy } from "../../foundation/net/fetch-url.ts";
import { DELIVERY_STATUSES } from "./delivery-store.ts";
import { EVENT_TYPES, TEST_TYPE } from "./event-types.ts";
import { DELIVERY_FORMATS } from "./formats.ts";
import { webhookUrlSchema } from "./webhook-urls.ts";

const URL_CHARACTERS_MAX = 2_048;
const SUBJECT_CHARACTERS_MAX = 100;
const CURSOR_CHARACTERS_MAX = 200;

/** Body of `POST /v1/webhooks/test`. */
export const testSchema = (policy: UrlPolicy) =>
  z
    .strictObject({
      url: webhookUrlSchema(policy),
      type: z
        .enum([TEST_TYPE, ...EVENT_TYPES])
        .optional()
        .meta({ description: "The type of the event, sent with the data of its example. Default: `webhook.test`." }),
    })
    .meta({ title: "WebhookTest" });

const SUBJECT = "What the event is about: `target:<id>`, `domain:<id>`, `job:<id>` or `list:<id>`.";
const subject = z.string().max(SUBJECT_CHARACTERS_MAX);
const moment = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));
const SINCE = "Only events at or after this time.";
const UNTIL = "Only events before this time.";
const TYPE = "Only events of this type.";

/** The query of the list of deliveries. */
export const deliveryFilters = {
  status: z.enum(DELIVERY_STATUSES).optional().meta({ description: "Only deliveries of this status." }),
  type: z.enum(EVENT_TYPES).optional().meta({ description: TYPE }),
  url: z.string().max(URL_CHARACTERS_MAX).optional().meta({ description: "Only deliveries to this URL." }),
  subject: subject.optional().meta({ description: "Only events about this subject, such as `target:<id>`." }),
  since: moment.optional().meta({ description: SINCE, type: "string", format: "date-time" }),
  until: moment.optional().meta({ description: UNTIL, type: "string", format: "date-time" }),
};

/** The query of the event feed. */
export const eventFilters = {
  since: deliveryFilters.since,
  type: deliveryFilters.type,
  subject: deliveryFilters.subject,
  after: z.uuid().optional().meta({ description: "Only events after the one with this id." }),
};

const manyFields = {
  type: deliveryFilters.type,
  url: deliveryFilters.url,
  subject: deliveryFilters.subject,
  since: z.iso.datetime({ offset: true }).optional().meta({ description: SINCE }),
  until: z.iso.datetime({ offset: true }).optional().meta({ description: UNTIL }),
  cursor: z
    .string()
    .max(CURSOR_CHARACTERS_MAX)
    .optional()
    .meta({ description: "`next_cursor` of the previous call, to continue." }),
};

/** Body of `POST /v1/webhooks/deliveries/redeliver`. */
export const redeliverSchema = z
  .strictObject({
    status: z
      .enum(DELIVERY_STATUSES)
      .optional()
      .meta({ description: "Only deliveries of this status. Default: `rejected` and `failed`." }),
    ...manyFields,
  })
  .meta({ title: "WebhookRedelivery" });

/** Body of `POST /v1/webhooks/deliveries/cancel`. */
export const cancelSchema = z.strictObject(manyFields).meta({ title: "WebhookCancellation" });

export const manySchema = z
  .object({
    count: z.int().meta({ description: "Deliveries that this call changed." }),
    next_cursor: z
      .string()
      .nullable()
      .meta({ description: "Set when the call ended after 10,000 deliveries and there are more." }),
  })
  .meta({ title: "WebhookManyResult" });

const eventType = z.string().meta({ description: "The type of the event." });

const attemptSchema = z.object({
  at: nullableTime("When it was made; null if nothing was sent."),
  http_status: z.int().nullable().meta({ description: "The status of the response; null without one." }),
  problem: z.string().nullable().meta({ description: "Why it failed, as a sentence; null if it did not." }),
  response_body: z.string().nullable().meta({ description: "The first kB of the response to a failed attempt." }),
});

export const deliverySchema = z
  .object({
    id: z.uuid().meta({ description: "The id of the delivery." }),
    event_id: z.uuid().meta({
      description: "The header `webhook-id`: the same in every attempt and for every URL that receives the event.",
    }),
    type: eventType,
    subject: subject.nullable().meta({ description: SUBJECT }),
    url: z.string().meta({ description: "Where the event is sent." }),
    format: z.enum(DELIVERY_FORMATS).meta({
      description:
        "`standard`: the event itself. `slack`, `teams`: a message for people, chosen by the host of the URL.",
    }),
    status: z.enum(DELIVERY_STATUSES).meta({
      description:
        "`rejected`: the receiver refused it three times with a 4xx other than 408, 409, 410, 425 and 429. `failed`: ten attempts failed, or the receiver responded 410. `cancelled`: by a request, or because its URL was removed.",
    }),
    attempts: z.int().meta({ description: "Attempts since the event, or since the last redelivery." }),
    created_at: timeField("When the event occurred."),
    next_attempt_at: nullableTime(
      "When it is sent next; null when finished, or while an earlier event about the same subject is pending.",
    ),
    finished_at: nullableTime("When it was delivered, rejected, failed or cancelled."),
    last_attempt: attemptSchema.nullable().meta({ description: "The last attempt; null before the first." }),
    event: z
      .object({
        type: eventType,
        timestamp: timeField("When the event occurred."),
        data: z.unknown().meta({ description: "What happened; see the event types under `webhooks`." }),
      })
      .meta({ description: "The request body if `format` is `standard`." }),
  })
  .meta({ title: "WebhookDelivery" });

export const deliveriesSchema = z
  .object({ deliveries: z.array(deliverySchema).meta({ description: "Newest first." }), next_cursor: nextCursorField })
  .meta({ title: "WebhookDeliveryList" });

export const testEventSchema = z
  .object({
    message: z.string().meta({ description: "A text that says that this is a test." }),
    test: z.literal(true).meta({ description: "In every event that a test call sends, of whatever type." }),
    mode: z.enum(["live", "test"]).meta({ description: "The mode of the key that requested the test." }),
  })
  .meta({ title: "WebhookTestEvent" });

export const testResultSchema = z
  .object({
    id: z.uuid().meta({ description: "The header `webhook-id` of the request." }),
    url: z.string().meta({ description: "Where the event was sent." }),
    type: eventType,
    delivered: z.boolean().meta({ description: "Whether the receiver responded 2xx." }),
    http_status: z.int().nullable().meta({ description: "The status of the response; null without one." }),
    problem: z.string().nullable().meta({ description: "Why it was not delivered, as a sentence." }),
    elapsed_ms: z.int().meta({ description: "Duration of the request in milliseconds." }),
  })
  .meta({ title: "WebhookTestResult" });

/** An event of the feed. */
const eventSchema = z
  .object({
    id: z.uuid().meta({ description: "The header `webhook-id`." }),
    type: eventType,
    subject: subject.nullable().meta({ description: SUBJECT }),
    timestamp: timeField("When the event occurred."),
    data: z.unknown().meta({ description: "What happened; see the event types under `webhooks`." }),
  })
  .meta({ title: "Event" });

export const eventsSchema = z
  .object({ events: z.array(eventSchema).meta({ description: "Oldest first." }), next_cursor: nextCursorField })
  .meta({ title: "EventList" });

const secretSchema = z.object({
  secret: z.string().meta({ description: "The secret: `whsec_` and 32 bytes in base64." }),
  created_at: timeField("When it was created."),
  valid_until: nullableTime("Set on the old secret for 24 hours after a rotation."),
});

export const secretsSchema = z
  .object({ secrets: z.array(secretSchema).meta({ description: "Newest first." }) })
  .meta({ title: "WebhookSecrets" });
