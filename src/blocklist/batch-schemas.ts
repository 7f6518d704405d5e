import { z } from "zod";
import { SEVERITIES } from "../dnsbl/blocklist.ts";
import { labelSchema } from "../http/label-schema.ts";
import { recipientsSchema } from "../mail/recipients.ts";

/** Targets of one request. */
export const BATCH_TARGETS_MAX = 10_000;
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
export const targetBatchSchema = (webhookUrl: z.ZodType<string, string>) =>
  z
    .strictObject({
      targets: z.array(z.unknown()).min(1).max(BATCH_TARGETS_MAX).meta({
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

/** Body of `POST /v1/blacklist/targets/discover`. */
export const discoverRequestSchema = (webhookUrl: z.ZodType<string, string>) =>
  z
    .strictObject({
      domain: z.string().trim().min(1).max(TARGET_CHARACTERS_MAX).optional().meta({
        description: "Its mail hosts' addresses, and the addresses that its SPF record names, are added with it.",
      }),
      egress: z.boolean().optional().meta({ description: "The addresses that this service sends from." }),
      dry_run: z.boolean().optional().meta({ description: "Only tell what is found." }),
      label: label.nullable().optional(),
      webhook_url: webhookUrl.nullable().optional(),
      alert_severity_min: severity.nullable().optional(),
    })
    .refine(({ domain, egress }) => domain !== undefined || egress === true, "Give a domain, or egress: true")
    .meta({ title: "BlacklistDiscovery" });

export const discoveredSchema = z
  .object({
    found: z.array(
      z.object({
        target: z.string(),
        source: z.string().meta({ description: "Where it was found, such as `MX mx1.example.com`." }),
        status: z.enum(["found", "created", "exists", "invalid"]).meta({ description: "`found` with `dry_run`." }),
        id: z.uuid().nullable(),
        problem: z.string().nullable(),
      }),
    ),
    unknown: z.array(z.string()).meta({ description: "What could not be found out, in sentences." }),
  })
  .meta({ title: "BlacklistDiscovered" });

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
