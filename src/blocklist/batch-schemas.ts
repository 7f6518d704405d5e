import { z } from "zod";
import { SEVERITIES } from "../foundation/base/severity.ts";
import { labelSchema } from "../foundation/http/label-schema.ts";
import { recipientsSchema } from "../foundation/mail/recipients.ts";

/** Targets of one request. */
export const BATCH_TARGETS_MAX = 10_000;
const TARGET_CHARACTERS_MAX = 320;
const RECIPIENTS_MAX = 10;

const label = labelSchema("outbound 1");
const severity = z.enum(SEVERITIES);
const SEVERITY_MIN = { description: "Listings of a lower severity are not sent." };

/** The settings that all rows of a batch share. */
const sharedFields = (webhookUrl: z.ZodType<string, string>) => ({
  label: label.nullable().optional(),
  webhook_url: webhookUrl.nullable().optional().meta({ description: "Receives the events of these targets." }),
  alert_severity_min: severity.nullable().optional().meta(SEVERITY_MIN),
});

const MONITORING = { description: "Whether scheduled checks run. Default: true." };

/** One row of a batch. Missing fields are those of the batch; recipients are always those of the batch. */
export const batchRowSchema = (webhookUrl: z.ZodType<string, string>) =>
  z.strictObject({
    target: z.string().trim().min(1, "A domain or an IP address is needed").max(TARGET_CHARACTERS_MAX).optional(),
    monitoring_enabled: z.boolean().optional(),
    recipients: z.array(z.string()).max(0, "Set recipients for the whole batch").optional(),
    ...sharedFields(webhookUrl),
  });

/** Body of `POST /v1/blacklist/targets/batch` as JSON. Rows are validated one by one: an invalid row affects no other. */
export const targetBatchSchema = (webhookUrl: z.ZodType<string, string>) =>
  z
    .strictObject({
      targets: z.array(z.unknown()).min(1).max(BATCH_TARGETS_MAX).meta({
        description:
          "Domains, addresses and ranges, as texts, or as objects with `target` and the settings that differ from the batch (`label`, `monitoring_enabled`, `webhook_url`, `alert_severity_min`).",
      }),
      monitoring_enabled: z.boolean().optional().meta(MONITORING),
      recipients: recipientsSchema({ most: RECIPIENTS_MAX, description: "Recipients of alert mail." }).optional(),
      ...sharedFields(webhookUrl),
    })
    .meta({ title: "BlacklistBatch" });

/** Query of a batch as CSV: the settings of all rows. */
export const batchQuerySchema = (webhookUrl: z.ZodType<string, string>) =>
  z.strictObject({
    label: label.optional().meta({ description: "CSV only: the label of rows without one." }),
    webhook_url: webhookUrl.optional().meta({ description: "CSV only: the webhook of rows without one." }),
    alert_severity_min: severity.optional().meta({ description: "CSV only: the threshold of rows without one." }),
  });

const problem = z.string().nullable().meta({ description: "Why the target is invalid, as a sentence." });
const id = z.uuid().nullable().meta({ description: "The id of the target." });
const count = (description: string) => z.int().meta({ description });

export const batchResultSchema = z
  .object({
    created: count("How many targets were added."),
    exists: count("How many targets existed; they are unchanged."),
    invalid: count("How many rows are invalid."),
    results: z
      .array(
        z.object({
          row: count("The number of the row, from 1, without the header."),
          given: z.string().meta({ description: "The target as given." }),
          status: z.enum(["created", "exists", "invalid"]).meta({ description: "What happened." }),
          id,
          value: z.string().nullable().meta({ description: "The normalized target." }),
          problem,
        }),
      )
      .meta({ description: "One result per row." }),
  })
  .meta({ title: "BlacklistBatchResult" });

/** Body of `POST /v1/blacklist/targets/discover`. */
export const discoverRequestSchema = (webhookUrl: z.ZodType<string, string>) =>
  z
    .strictObject({
      domain: z.string().trim().min(1).max(TARGET_CHARACTERS_MAX).optional().meta({
        description: "Add this domain, the addresses of its mail hosts and those in its SPF record.",
      }),
      egress: z.boolean().optional().meta({ description: "Add the addresses from which this service sends." }),
      dry_run: z.boolean().optional().meta({ description: "Only return what was found; add nothing." }),
      ...sharedFields(webhookUrl),
    })
    .refine(({ domain, egress }) => domain !== undefined || egress === true, "Give a domain, or egress: true")
    .meta({ title: "BlacklistDiscovery" });

export const discoveredSchema = z
  .object({
    found: z
      .array(
        z.object({
          target: z.string().meta({ description: "The normalized target." }),
          source: z.string().meta({ description: "Where it was found, such as `MX mx1.example.com`." }),
          status: z
            .enum(["found", "created", "exists", "invalid"])
            .meta({ description: "What happened; `found` with `dry_run`." }),
          id,
          problem,
        }),
      )
      .meta({ description: "What was found." }),
    unknown: z.array(z.string()).meta({ description: "What could not be found out, as sentences." }),
  })
  .meta({ title: "BlacklistDiscovered" });
