import { z } from "zod";
import { labelSchema } from "../http/label-schema.ts";
import { resultSchema, SUB_STATUSES, VERDICTS } from "../verify/result.ts";
import { PAUSED_REASONS } from "../probe/outages.ts";
import { HEADER_CHOICES } from "./columns-address.ts";
import { detectedFormatSchema } from "./detected-format.ts";

export const EMAILS_MAX = 100_000;
const COLUMN_CHARACTERS_MAX = 200;
const URL_CHARACTERS_MAX = 2_048;

/** What may be said of a list, however it is sent. */
const about = {
  name: labelSchema("Newsletter, spring", "Your name for the job.").optional(),
  source: labelSchema("crm-export", "Free-form label for the caller's own attribution.").optional(),
  webhook_url: z
    .string()
    .max(URL_CHARACTERS_MAX)
    .optional()
    .meta({
      description:
        "Where `bulk.completed`, `bulk.cancelled` or `bulk.failed` is to be sent: https on the public internet; other URLs only where the operator allows them.",
      format: "uri",
      examples: ["https://example.com/hooks/postwarden"],
    }),
};

/** Body of `POST /v1/bulk-verifications` as JSON. */
export const jsonListSchema = z
  .strictObject({
    emails: z
      .array(z.string())
      .min(1, "At least one address is needed")
      .max(EMAILS_MAX, `At most ${EMAILS_MAX} addresses; send more as CSV`)
      .meta({ description: "The addresses. What is no address is a row that ends `invalid_syntax`." }),
    ...about,
  })
  .meta({ title: "BulkOrder" });

const switchSchema = z.enum(["true", "false"]).optional();

/** The query of an order as JSON. */
export const jsonQuerySchema = z.strictObject({ dry_run: switchSchema });

/** What may go with a list that is uploaded: parameters of the query, or fields of the form. */
export const uploadOptionsSchema = z.strictObject({
  column: z.string().min(1).max(COLUMN_CHARACTERS_MAX).optional(),
  header: z.enum(HEADER_CHOICES).default("auto"),
  dry_run: switchSchema,
  ...about,
});
export type UploadOrder = z.output<typeof uploadOptionsSchema>;

export const JOB_STATUSES = ["queued", "running", "completed", "cancelled", "failed"] as const;

export const jobFiltersSchema = z.strictObject({ status: z.enum(JOB_STATUSES).optional() });
export type JobFilters = z.output<typeof jobFiltersSchema>;

export const itemFiltersSchema = z.strictObject({
  verdict: z.enum(VERDICTS).optional(),
  sub_status: z.enum(SUB_STATUSES).optional(),
});
/** The query of `results.csv`. */
export const exportOptionsSchema = itemFiltersSchema.extend({ bom: switchSchema, defuse: switchSchema });
export type ItemFilters = z.output<typeof itemFiltersSchema>;

const time = z.iso.datetime({ precision: 3 });
const count = z.int().min(0);

export const jobSchema = z
  .object({
    id: z.uuid(),
    name: z.string().nullable(),
    source: z.string().nullable(),
    status: z.enum(JOB_STATUSES),
    created_at: time,
    started_at: time.nullable(),
    completed_at: time.nullable(),
    format: detectedFormatSchema
      .nullable()
      .meta({ description: "How the file was read; null for a list that was given as JSON." }),
    rows: z.object({
      total: count,
      finished: count,
      empty: count.meta({
        description:
          "Rows without an address. Their result is `invalid_syntax`; they are free, and counted nowhere else but in `total` and `finished`.",
      }),
    }),
    addresses: z
      .object({ total: count, finished: count })
      .meta({ description: "Distinct addresses: what is charged." }),
    verdicts: z
      .object({ deliverable: count, risky: count, undeliverable: count })
      .meta({ description: "Finished rows with an address, by verdict." }),
    sub_statuses: z
      .partialRecord(z.enum(SUB_STATUSES), count)
      .meta({ description: "Finished rows with an address, by sub_status; those that do not occur are left out." }),
    credits: z.object({ held: count, charged: count, released: count }),
    estimated_seconds_left: z.int().nullable().meta({
      description:
        "An estimate: the rate of the last minute, and the latest retry that is planned. Null until a rate is known, and when the job has ended.",
    }),
    poll_after_ms: z
      .int()
      .nullable()
      .meta({ description: "Minimum wait before asking again; null when it has ended." }),
    paused_reason: z.enum(PAUSED_REASONS).nullable().meta({
      description:
        "Why the job stands still although it is `running`; null while it goes on. `dns_unavailable`: no DNS server answers. `smtp_unreachable`: no mail host takes a connection. `local_failure`: this service cannot open connections. Nothing is concluded meanwhile, and the job goes on by itself.",
    }),
    webhook_configured: z.boolean(),
  })
  .meta({ title: "BulkJob" });

export const jobListSchema = z
  .object({ bulk_verifications: z.array(jobSchema), next_cursor: z.string().nullable() })
  .meta({ title: "BulkJobList" });

export const itemSchema = z
  .object({
    row_index: count.meta({ description: "Zero-based position of the row in the job." }),
    submitted_email: z.string(),
    normalized_email: z.string(),
    result: resultSchema.meta({ title: "VerificationResult" }).nullable(),
  })
  .meta({ title: "BulkItem" });

export const itemPageSchema = z
  .object({ emails: z.array(itemSchema), next_cursor: z.string().nullable() })
  .meta({ title: "BulkItemPage" });
