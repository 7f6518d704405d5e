import { z } from "zod";
import {
  countField,
  flagField,
  nextCursorField,
  nullableText,
  nullableTime,
  textField,
  timeField,
  labelSchema,
} from "../../foundation/http/schema-fields.ts";
import { recipientSchema } from "../../foundation/mail/recipients.ts";
import { resultSchema, SUB_STATUSES, VERDICTS } from "../../verify/result.ts";
import { PAUSED_REASONS } from "../../verify/smtp/outages.ts";
import { HEADER_CHOICES } from "../reading/columns-address.ts";
import { ENCODINGS } from "../reading/csv-records.ts";
import { EXPORT_COLUMNS, PRESETS } from "./results-csv.ts";
import { detectedFormatSchema } from "../reading/csv.ts";
import { SHEET_CHARACTERS_MAX } from "../reading/workbook.ts";

export const EMAILS_MAX = 100_000;
const COLUMN_CHARACTERS_MAX = 200;
const URL_CHARACTERS_MAX = 2_048;

/** Options of a list in every format. */
const about = {
  name: labelSchema("Newsletter, spring", "Your name for the job.").optional(),
  source: labelSchema("crm-export", "Free-form label, for your own use.").optional(),
  webhook_url: z
    .string()
    .max(URL_CHARACTERS_MAX)
    .optional()
    .meta({
      description:
        "Receives `bulk.completed`, `bulk.cancelled` or `bulk.failed`. An https URL on the public internet; other URLs only where the operator allows them.",
      format: "uri",
      examples: ["https://example.com/hooks/postwarden"],
    }),
  notify_email: recipientSchema.optional().meta({
    description:
      "Is mailed when the job has ended, whatever its status. Only where the service sends mail, to the domains that its operator allows; with a test key no mail is sent.",
    format: "email",
    examples: ["anna@example.com"],
  }),
};

/** Body of `POST /v1/bulk-verifications` as JSON. */
export const jsonListSchema = z
  .strictObject({
    emails: z
      .array(z.string())
      .min(1, "Must not be empty")
      .max(EMAILS_MAX, `At most ${EMAILS_MAX} addresses. Send longer lists as CSV.`)
      .meta({
        description: "The addresses, 1 to 100,000. A text that is not an address gets the sub_status `invalid_syntax`.",
      }),
    ...about,
  })
  .meta({ title: "BulkOrder" });

const switchSchema = z.enum(["true", "false"]).optional();

/** The query of a list as JSON. */
export const jsonQuerySchema = z.strictObject({ dry_run: switchSchema });

/** Options of an uploaded list: query parameters, or fields of the form. */
export const uploadOptionsSchema = z.strictObject({
  column: z
    .string()
    .min(1)
    .max(COLUMN_CHARACTERS_MAX)
    .optional()
    .meta({ description: "Name or zero-based index of the column of addresses; by default it is detected." }),
  header: z
    .enum(HEADER_CHOICES)
    .default("auto")
    .meta({ description: "Whether the first row names the columns; `auto` detects it." }),
  encoding: z.enum(ENCODINGS).optional().meta({
    description: "The character encoding of a CSV; by default it is detected, or assumed if it is not Unicode.",
  }),
  sheet: z.string().min(1).max(SHEET_CHARACTERS_MAX).optional().meta({
    description: "Name of a visible sheet of a workbook; by default the first with addresses.",
  }),
  dry_run: switchSchema.meta({
    description: "`true`: return a preview; nothing is stored, held or verified. Also for a list as JSON.",
    default: "false",
  }),
  ...about,
});
export type UploadOrder = z.output<typeof uploadOptionsSchema>;

export const JOB_STATUSES = ["queued", "running", "completed", "cancelled", "failed"] as const;

/** The query of the list of jobs. */
export const jobFilters = {
  status: z.enum(JOB_STATUSES).optional().meta({ description: "Only jobs of this status." }),
};
const jobFiltersSchema = z.strictObject(jobFilters);
export type JobFilters = z.output<typeof jobFiltersSchema>;

/** The query of the rows of a job. */
export const itemFilters = {
  verdict: z.enum(VERDICTS).optional().meta({ description: "Only finished rows of this verdict." }),
  sub_status: z.enum(SUB_STATUSES).optional().meta({ description: "Only finished rows of this sub_status." }),
};
const itemFiltersSchema = z.strictObject(itemFilters);
export type ItemFilters = z.output<typeof itemFiltersSchema>;

/** The query of `results.csv`. */
export const exportOptionsSchema = itemFiltersSchema.extend({
  columns: z.enum(EXPORT_COLUMNS).default("all").meta({
    description:
      "`all`: the uploaded columns, then those of the results; `uploaded`: without the results; `address`: the addresses alone.",
  }),
  clean: switchSchema.meta({
    description: "`true`: the column of addresses holds them without the name, `mailto:` or quotes of the cell.",
    default: "false",
  }),
  distinct: switchSchema.meta({
    description: "`true`: only the first row of each address, and no empty row. Default `true` with `preset`.",
  }),
  preset: z.enum(PRESETS).optional().meta({
    description:
      "Columns as the import of a newsletter tool names them, in place of `columns`: the clean address, names of people, then the other uploaded columns (as JSON in `attributes` for `listmonk`). UTF-8, separated by commas.",
  }),
  bom: switchSchema.meta({
    description:
      "Whether the file starts with a byte order mark; by default if the uploaded file had one or was in another known encoding than UTF-8. `true` gives UTF-8 also for a list whose encoding is assumed.",
  }),
  defuse: switchSchema.meta({
    description:
      "Whether cells that a spreadsheet would run as a formula are prefixed with an apostrophe; `false` for programs.",
    default: "true",
  }),
});

export const jobSchema = z
  .object({
    id: z.uuid().meta({ description: "The id of the job." }),
    name: nullableText("Your name for the job, or the name of the uploaded file."),
    source: nullableText("The label given with the request."),
    status: z.enum(JOB_STATUSES).meta({ description: "`failed`: an error of this service prevents its completion." }),
    created_at: timeField("When the list was submitted."),
    started_at: nullableTime("When verification started."),
    completed_at: nullableTime("When the job ended, whatever its status."),
    format: detectedFormatSchema
      .nullable()
      .meta({ description: "How the file was read; null for a list submitted as JSON." }),
    rows: z
      .object({
        total: countField("Rows of the list, without header and blank rows."),
        finished: countField("Rows with a result."),
        empty: countField(
          "Rows without an address. Their result is `invalid_syntax`; they are free, and counted only in `total` and `finished`.",
        ),
      })
      .meta({ description: "Rows of the list." }),
    addresses: z
      .object({ total: countField("All."), finished: countField("Those with a result.") })
      .meta({ description: "Distinct addresses, which are what is charged." }),
    verdicts: z
      .object({
        deliverable: countField("Rows that can be mailed."),
        risky: countField("Rows without a certain result."),
        undeliverable: countField("Rows that cannot be mailed."),
      })
      .meta({ description: "Finished rows with an address, by verdict." }),
    sub_statuses: z
      .partialRecord(z.enum(SUB_STATUSES), countField("Rows."))
      .meta({ description: "Finished rows with an address, by sub_status; those that do not occur are omitted." }),
    credits: z
      .object({
        held: countField("Held for addresses that are not finished."),
        charged: countField("Charged for finished addresses, in all rounds."),
        released: countField("Released: not charged, or not verified because the job ended early."),
      })
      .meta({ description: "Credits of the job; all 0 with a test key." }),
    estimated_seconds_left: z.int().nullable().meta({
      description:
        "Estimated from the throughput of the last minute and the latest planned retry. Null until the throughput is known, and after the end.",
    }),
    poll_after_ms: z
      .int()
      .nullable()
      .meta({ description: "Minimum wait before polling again, in milliseconds; null after the end." }),
    paused_reason: z.enum(PAUSED_REASONS).nullable().meta({
      description:
        "Why a running job is paused; null while it is not. `dns_unavailable`: no DNS server responds. `smtp_unreachable`: no mail host accepts a connection. `local_failure`: this service cannot open connections. No result is recorded meanwhile; the job resumes automatically.",
    }),
    webhook_configured: flagField("Whether the job has a webhook URL."),
    mail_configured: flagField("Whether somebody is mailed when the job has ended."),
  })
  .meta({ title: "BulkJob" });

/**
 * What happened to an address between two lists. `became_undeliverable`: it is, and was not; `recovered`: it is deliverable,
 * and was undeliverable; `changed`: any other change of its verdict; `new` and `gone`: it is in one of the lists only.
 */
export const CHANGES = ["became_undeliverable", "recovered", "changed", "new", "gone"] as const;
export type Change = (typeof CHANGES)[number];

/** The query of a comparison: `with` names the other job. */
export const comparisonQuerySchema = z.strictObject({
  with: z.uuid().optional().meta({
    description: "The id of the other job; by default the newest older one of the same name that has ended.",
  }),
});

const changeSchema = z.enum(CHANGES).meta({
  description:
    "`became_undeliverable`: undeliverable now, and not in the other job; `recovered`: deliverable now, undeliverable there; `changed`: any other change of the verdict; `new`, `gone`: in one of the jobs only.",
});

/** The query of `comparison.csv`. */
export const comparisonCsvQuerySchema = comparisonQuerySchema.extend({
  change: changeSchema.default("became_undeliverable"),
});

export const comparisonSchema = z
  .object({
    id: z.uuid().meta({ description: "The id of the job." }),
    with: z
      .object({
        id: z.uuid().meta({ description: "Its id." }),
        name: nullableText("Its name."),
        created_at: timeField("When it was submitted."),
      })
      .meta({ description: "The other job." }),
    counts: z
      .object({
        became_undeliverable: countField("Undeliverable now, and not in the other job."),
        recovered: countField("Deliverable now, undeliverable in the other job."),
        changed: countField("Any other change of the verdict."),
        unchanged: countField("The same verdict in both."),
        new: countField("Not in the other job."),
        gone: countField("Only in the other job."),
        unfinished: countField("In both, and one of them has no result for it."),
      })
      .meta({ description: "Distinct addresses by what happened to them." }),
  })
  .meta({ title: "BulkComparison" });

export const jobListSchema = z
  .object({
    bulk_verifications: z.array(jobSchema).meta({ description: "Newest first." }),
    next_cursor: nextCursorField,
  })
  .meta({ title: "BulkJobList" });

const itemSchema = z
  .object({
    row_index: countField("Zero-based index of the row; header and blank rows are not counted."),
    submitted_email: textField("The cell as submitted."),
    normalized_email: textField("The address that is verified; empty when there is none."),
    result: resultSchema
      .meta({ title: "VerificationResult", description: "What was found out about the address." })
      .nullable()
      .meta({ description: "The result; null until the address is finished." }),
  })
  .meta({ title: "BulkItem" });

export const itemPageSchema = z
  .object({
    emails: z.array(itemSchema).meta({ description: "In the order of the list." }),
    next_cursor: nextCursorField,
  })
  .meta({ title: "BulkItemPage" });
