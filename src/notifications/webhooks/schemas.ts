import { z } from "zod";
import {
  flagField,
  integerField,
  nextCursorField,
  nullableText,
  nullableTime,
  textField,
  timeField,
  enumField,
  idField,
  listField,
  namedBody,
  namedResponse,
  nullableInteger,
  optionalEnum,
} from "../../foundation/http/schema-fields.ts";
import type { UrlPolicy } from "../../foundation/net/fetch-url.ts";
import { DELIVERY_STATUSES } from "./delivery-store.ts";
import { TEST_TYPE } from "./webhooks.ts";
import { DELIVERY_FORMATS } from "../channels/channels.ts";
import { webhookUrlSchema } from "./url-store.ts";

const URL_CHARACTERS_MAX = 2_048;
const SUBJECT_CHARACTERS_MAX = 100;
const CURSOR_CHARACTERS_MAX = 200;

/** Every type of event that is sent. */
export type EventTypes = readonly string[];

/** Body of `POST /v1/webhooks/test`. */
export const testSchema = (policy: UrlPolicy, types: EventTypes) =>
  namedBody("WebhookTest", {
    url: webhookUrlSchema(policy),
    type: optionalEnum(
      [TEST_TYPE, ...types],
      "The type of the event, sent with the data of its example. Default: `webhook.test`.",
    ),
  });

const SUBJECT = "What the event is about: `target:<id>`, `domain:<id>`, `job:<id>` or `list:<id>`.";
const subject = z.string().max(SUBJECT_CHARACTERS_MAX);
const moment = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));
const SINCE = "Only events at or after this time.";
const UNTIL = "Only events before this time.";
const typeFilter = (types: EventTypes) => optionalEnum(types, "Only events of this type.");

const url = z
  .string()
  .max(URL_CHARACTERS_MAX)
  .optional()
  .meta({ description: "Only deliveries to this URL, whole or as deliveries show it." });
const aboutSubject = subject.optional().meta({ description: "Only events about this subject, such as `target:<id>`." });
const since = moment.optional().meta({ description: SINCE, type: "string", format: "date-time" });

/** The query of the list of deliveries. */
export const deliveryFilters = (types: EventTypes) => ({
  status: optionalEnum(DELIVERY_STATUSES, "Only deliveries of this status."),
  type: typeFilter(types),
  url,
  subject: aboutSubject,
  since,
  until: moment.optional().meta({ description: UNTIL, type: "string", format: "date-time" }),
});

/** The query of the event feed. */
export const eventFilters = (types: EventTypes) => ({
  since,
  type: typeFilter(types),
  subject: aboutSubject,
  after: z.uuid().optional().meta({ description: "Only events after the one with this id." }),
});

const manyFields = (types: EventTypes) => ({
  type: typeFilter(types),
  url,
  subject: aboutSubject,
  since: z.iso.datetime({ offset: true }).optional().meta({ description: SINCE }),
  until: z.iso.datetime({ offset: true }).optional().meta({ description: UNTIL }),
  cursor: z
    .string()
    .max(CURSOR_CHARACTERS_MAX)
    .optional()
    .meta({ description: "`next_cursor` of the previous call, to continue." }),
});

/** Body of `POST /v1/webhooks/deliveries/redeliver`. */
export const redeliverSchema = (types: EventTypes) =>
  namedBody("WebhookRedelivery", {
    status: optionalEnum(DELIVERY_STATUSES, "Only deliveries of this status. Default: `rejected` and `failed`."),
    ...manyFields(types),
  });

/** Body of `POST /v1/webhooks/deliveries/cancel`. */
export const cancelSchema = (types: EventTypes) => namedBody("WebhookCancellation", manyFields(types));

export const manySchema = namedResponse("WebhookManyResult", {
  count: integerField("Deliveries that this call changed."),
  next_cursor: nullableText("Set when the call ended after 10,000 deliveries and there are more."),
});

const eventType = textField("The type of the event.");

const attemptSchema = z.object({
  at: nullableTime("When it was made; null if nothing was sent."),
  http_status: nullableInteger("The status of the response; null without one."),
  problem: nullableText("Why it failed, as a sentence; null if it did not."),
  response_body: nullableText("The first kB of the response to a failed attempt."),
});

export const deliverySchema = namedResponse("WebhookDelivery", {
  id: idField("The id of the delivery."),
  event_id: idField("The header `webhook-id`: the same in every attempt and for every URL that receives the event."),
  type: eventType,
  subject: subject.nullable().meta({ description: SUBJECT }),
  url: textField("Where the event is sent. Tokens of services are replaced by `…` and their last four characters."),
  format: enumField(
    DELIVERY_FORMATS,
    "`standard`: the event itself. The others: a message for the service of that name, recognized by the URL.",
  ),
  status: enumField(
    DELIVERY_STATUSES,
    "`summarized`: a message after a maintenance window is about it. `rejected`: the receiver refused it three times with a 4xx other than 408, 409, 410, 425 and 429. `failed`: ten attempts failed, or the receiver responded 410 or that the URL is gone. `cancelled`: by a request, or because its URL was removed.",
  ),
  attempts: integerField("Attempts since the event, or since the last redelivery."),
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
});

export const deliveriesSchema = namedResponse("WebhookDeliveryList", {
  deliveries: listField(deliverySchema, "Newest first."),
  next_cursor: nextCursorField,
});

export const testEventSchema = namedResponse("WebhookTestEvent", {
  message: textField("A text that says that this is a test."),
  test: z.literal(true).meta({ description: "In every event that a test call sends, of whatever type." }),
  mode: enumField(["live", "test"], "The mode of the key that requested the test."),
});

export const testResultSchema = namedResponse("WebhookTestResult", {
  id: idField("The header `webhook-id` of the request."),
  url: textField("Where the event was sent."),
  type: eventType,
  delivered: flagField("Whether the receiver responded 2xx."),
  http_status: nullableInteger("The status of the response; null without one."),
  problem: nullableText("Why it was not delivered, as a sentence."),
  elapsed_ms: integerField("Duration of the request in milliseconds."),
});

/** An event of the feed. */
const eventSchema = namedResponse("Event", {
  id: idField("The header `webhook-id`."),
  type: eventType,
  subject: subject.nullable().meta({ description: SUBJECT }),
  timestamp: timeField("When the event occurred."),
  data: z.unknown().meta({ description: "What happened; see the event types under `webhooks`." }),
});

export const eventsSchema = namedResponse("EventList", {
  events: listField(eventSchema, "Oldest first."),
  next_cursor: nextCursorField,
});

const secretSchema = z.object({
  secret: textField("The secret: `whsec_` and 32 bytes in base64."),
  created_at: timeField("When it was created."),
  valid_until: nullableTime("Set on the old secret for 24 hours after a rotation."),
});

export const secretsSchema = namedResponse("WebhookSecrets", { secrets: listField(secretSchema, "Newest first.") });
