import { z } from "zod";
import type { OutgoingRules } from "../net/fetch-url.ts";
import { DELIVERY_STATUSES } from "./store.ts";

const URL_CHARACTERS_MAX = 2_048;

/** Every type of event that is sent. */
export const EVENT_TYPES = [
  ...["bulk.completed", "bulk.cancelled", "bulk.failed"],
  ...["blacklist.listed", "blacklist.delisted"],
  ...["dmarc.status_changed", "dmarc.record_changed", "dmarc.policy_weakened", "dmarc.new_source"],
  ...["dmarc.new_subdomain", "dmarc.failure_spike", "dmarc.reports_stopped"],
];

/** A URL that events may be sent to, in the form in which it is kept. */
export const webhookUrlSchema = (rules: OutgoingRules) =>
  z
    .string()
    .transform((text, context) => {
      const parsed = rules.parse(text.trim());
      if (parsed.ok) return parsed.value.href;
      context.addIssue({ code: "custom", message: parsed.error.problem });
      return z.NEVER;
    })
    .meta({
      description: "An https URL on the public internet; http and other addresses only where the operator allows them.",
      maxLength: URL_CHARACTERS_MAX,
      examples: ["https://example.com/hook"],
    });

/** Body of `POST /v1/webhooks/test`. */
export const testSchema = (rules: OutgoingRules) =>
  z.strictObject({ url: webhookUrlSchema(rules) }).meta({ title: "WebhookTest" });

/** The filters of the list of deliveries. */
export const deliveryFiltersSchema = z.strictObject({
  status: z.enum(DELIVERY_STATUSES).optional(),
  type: z.enum(EVENT_TYPES).optional(),
  url: z.string().max(URL_CHARACTERS_MAX).optional(),
});

const time = z.iso.datetime({ precision: 3 });

export const deliverySchema = z
  .object({
    id: z.uuid().meta({ description: "The header `webhook-id`: the same at every attempt." }),
    type: z.string(),
    url: z.string(),
    status: z.enum(DELIVERY_STATUSES),
    attempts: z.int().meta({ description: "Since the event, or since it was last sent again by hand." }),
    created_at: time,
    next_attempt_at: time.nullable().meta({ description: "Null while an earlier event for the same URL is waiting." }),
    finished_at: time.nullable(),
    last_attempt: z
      .object({ at: time.nullable(), http_status: z.int().nullable(), problem: z.string().nullable() })
      .nullable(),
    event: z
      .object({ type: z.string(), timestamp: time, data: z.unknown() })
      .meta({ description: "The body as it is sent." }),
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
    mode: z.enum(["live", "test"]).meta({ description: "Of the key that asked for it." }),
  })
  .meta({ title: "WebhookTestEvent" });

export const testResultSchema = z
  .object({
    id: z.uuid(),
    url: z.string(),
    delivered: z.boolean(),
    http_status: z.int().nullable(),
    problem: z.string().nullable(),
    elapsed_ms: z.int(),
  })
  .meta({ title: "WebhookTestResult" });

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
