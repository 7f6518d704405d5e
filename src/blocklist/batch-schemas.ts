import { z } from "zod";
import { SEVERITIES } from "../dnsbl/blocklist.ts";
import { labelSchema } from "../http/label.ts";
import { recipientsSchema } from "../mail/recipients.ts";

/** Targets of one request. */
const BATCH_ROWS_MAX = 10_000;
const TARGET_CHARACTERS_MAX = 320;
const RECIPIENTS_MAX = 10;

const label = labelSchema("outbound 1");
const severity = z.enum(SEVERITIES);

/** One target of a batch; what it leaves out is as the batch says. `recipients` are those of the batch. */
export const batchRowSchema = (webhookUrl: z.ZodType<string, string>) =>
  z.strictObject({
    target: z.string().trim().min(1, "A domain or an IP address is needed").max(TARGET_CHARACTERS_MAX).optional(),
    label: label.nullable().optional(),
    monitoring_enabled: z.boolean().optional(),
    webhook_url: webhookUrl.nullable().optional(),
    recipients: z.array(z.string()).max(0, "Give recipients for the whole batch").optional(),
    alert_severity_min: severity.nullable().optional(),
  });

/** Body of `POST /v1/blacklist/targets/batch` as JSON. What a target may be is said for each: one that does not fit stops no other. */
export const batchOrderSchema = (webhookUrl: z.ZodType<string, string>) =>
  z
    .strictObject({
      targets: z.array(z.unknown()).min(1).max(BATCH_ROWS_MAX).meta({
        description:
          "Domains, addresses and ranges: texts, or objects with `target` and what is to differ from the rest (`label`, `monitoring_enabled`, `webhook_url`, `alert_severity_min`).",
      }),
      label: label.nullable().optional(),
      monitoring_enabled: z.boolean().optional(),
      webhook_url: webhookUrl.nullable().optional(),
      recipients: recipientsSchema({ most: RECIPIENTS_MAX, description: "Of all of them." }).optional(),
      alert_severity_min: severity.nullable().optional(),
    })
    .meta({ title: "BlacklistBatch" });

/** Query of a batch as CSV: what its rows leave out. */
export const batchQuerySchema = (webhookUrl: z.ZodType<string, string>) =>
  z.strictObject({
    label: label.optional(),
    webhook_url: webhookUrl.optional(),
    alert_severity_min: severity.optional(),
  });

export const batchResultSchema = z
  .object({
    created: z.int(),
    exists: z.int(),
    invalid: z.int(),
    results: z.array(
      z.object({
        row: z.int().meta({ description: "From 1, a header not counted." }),
        given: z.string(),
        status: z.enum(["created", "exists", "invalid"]),
        id: z.uuid().nullable(),
        value: z.string().nullable(),
        problem: z.string().nullable(),
      }),
    ),
  })
  .meta({ title: "BlacklistBatchResult" });
