import { z } from "zod";
import type { UrlPolicy } from "../net/fetch-url.ts";
import { DELIVERY_FORMATS } from "./formats.ts";
import { DELIVERY_STATUSES } from "./delivery-store.ts";
import { webhookUrlSchema } from "./webhook-urls.ts";

const URL_CHARACTERS_MAX = 2_048;

/** Every type of event that is sent. */
export const EVENT_TYPES = [
  ...["bulk.completed", "bulk.cancelled", "bulk.failed"],
  ...["blacklist.listed", "blacklist.delisted", "blacklist.list_unusable", "blacklist.list_usable"],
  ...["dmarc.status_changed", "dmarc.record_changed", "dmarc.policy_weakened", "dmarc.new_source"],
  ...[
    "dmarc.new_subdomain",
    "dmarc.failure_spike",
    "dmarc.spoofing_campaign",
    "dmarc.reports_stopped",
    "dmarc.tls_failures",
  ],
];

/** What a test call sends when nobody says which type. */
export const TEST_TYPE = "webhook.test";

/** Body of `POST /v1/webhooks/test`. */
export const testSchema = (rules: UrlPolicy) =>
  z
    .strictObject({
      url: webhookUrlSchema(rules),
      type: z
        .enum([TEST_TYPE, ...EVENT_TYPES])
        .optional()
        .meta({
          description: "The type of event to send, with the data of its example; `webhook.test` unless told.",
        }),
    })
    .meta({ title: "WebhookTest" });

const SUBJECT_CHARACTERS_MAX = 100;
const subject = z
  .string()
  .max(SUBJECT_CHARACTERS_MAX)
  .meta({ description: "What it is about: `target:<id>`, `domain:<id>`, `job:<id>` or `list:<id>`." });
const moment = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));
const CURSOR_CHARACTERS_MAX = 200;

/** The filters of the list of deliveries. */
export const deliveryFiltersSchema = z.strictObject({
  status: z.enum(DELIVERY_STATUSES).optional(),
  type: z.enum(EVENT_TYPES).optional(),
  url: z.string().max(URL_CHARACTERS_MAX).optional(),
  subject: subject.optional(),
  since: moment.optional(),
  until: moment.optional(),
});

const manyFields = {
  type: z.enum(EVENT_TYPES).optional(),
  url: z.string().max(URL_CHARACTERS_MAX).optional(),
  subject: subject.optional(),
  since: z.iso.datetime({ offset: true }).optional().meta({ description: "Events from this moment on." }),
  until: z.iso.datetime({ offset: true }).optional().meta({ description: "Events before this moment." }),
  cursor: z
    .string()
    .max(CURSOR_CHARACTERS_MAX)
    .optional()
    .meta({ description: "`next_cursor` of the call before, to go on with the rest." }),
};

/** Body of `POST /v1/webhooks/deliveries/redeliver`. */
export const redeliverSchema = z
  .strictObject({
    status: z.enum(DELIVERY_STATUSES).optional().meta({ description: "`rejected` and `failed` ones unless told." }),
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
      .meta({ description: "Set where a call ended early, after 10,000: there are more." }),
  })
  .meta({ title: "WebhookManyResult" });

/** The filters of the feed of events. */
export const eventFiltersSchema = z.strictObject({
  since: moment.optional(),
  type: z.enum(EVENT_TYPES).optional(),
  subject: subject.optional(),
  after: z.uuid().optional(),
});

const time = z.iso.datetime({ precision: 3 });

export const deliverySchema = z
  .object({
    id: z.uuid(),
    event_id: z.uuid().meta({
      description: "The header `webhook-id`: the same at every attempt, and for every URL that the event goes to.",
    }),
    type: z.string(),
    subject: subject.nullable(),
    url: z.string(),
    format: z.enum(DELIVERY_FORMATS).meta({
      description: "How it is sent: as it is, or as a message for Slack or Teams, by the host of the URL.",
    }),
    status: z.enum(DELIVERY_STATUSES).meta({
      description:
        "`rejected`: the receiver refused it three times with a 4xx other than 408, 409, 410, 425 and 429. `failed`: given up after ten attempts, or the receiver answered 410. `cancelled`: by a call, or its URL was removed.",
    }),
    attempts: z.int().meta({ description: "Since the event, or since it was last sent again by hand." }),
    created_at: time,
    next_attempt_at: time
      .nullable()
      .meta({ description: "Null while an earlier event about the same subject is waiting for the URL." }),
    finished_at: time.nullable(),
    last_attempt: z
      .object({
        at: time.nullable(),
        http_status: z.int().nullable(),
        problem: z.string().nullable(),
        response_body: z
          .string()
          .nullable()
          .meta({ description: "The first kB of what the receiver answered to a failed attempt." }),
      })
      .nullable(),
    event: z
      .object({ type: z.string(), timestamp: time, data: z.unknown() })
      .meta({ description: "The body as it is sent where `format` is `standard`." }),
  })
  .meta({ title: "WebhookDelivery" });

export const deliveriesSchema = z
  .object({ deliveries: z.array(deliverySchema), next_cursor: z.string().nullable() })
  .meta({ title: "WebhookDeliveryList" });

/** What a `webhook.test` says. */
export const TEST_MESSAGE = "This is a test: the URL can be reached, and the signature can be tried out.";

export const testEventSchema = z
  .object({
    message: z.string(),
    test: z.literal(true).meta({ description: "In every event that a test call sends, of whatever type." }),
    mode: z.enum(["live", "test"]).meta({ description: "Of the key that asked for it." }),
  })
  .meta({ title: "WebhookTestEvent" });

export const testResultSchema = z
  .object({
    id: z.uuid(),
    url: z.string(),
    type: z.string(),
    delivered: z.boolean(),
    http_status: z.int().nullable(),
    problem: z.string().nullable(),
    elapsed_ms: z.int(),
  })
  .meta({ title: "WebhookTestResult" });

/** An event of the feed. */
export const eventSchema = z
  .object({
    id: z.uuid().meta({ description: "The header `webhook-id`." }),
    type: z.string(),
    subject: subject.nullable(),
    timestamp: time,
    data: z.unknown().meta({ description: "As `webhooks` describes it for each type." }),
  })
  .meta({ title: "Event" });

export const eventsSchema = z
  .object({ events: z.array(eventSchema), next_cursor: z.string().nullable() })
  .meta({ title: "EventList" });

export const secretsSchema = z
  .object({
    secrets: z.array(
      z.object({
        secret: z.string(),
        created_at: time,
        valid_until: time.nullable().meta({ description: "Set on the old one, for a day after a rotation." }),
      }),
    ),
  })
  .meta({ title: "WebhookSecrets" });
