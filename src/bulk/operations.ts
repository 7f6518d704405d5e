import evidenceExample from "../verify/evidence-example.json" with { type: "json" };
import { z } from "zod";
import { textField } from "../foundation/http/schema-fields.ts";
import { isId } from "../foundation/base/secrets.ts";
import { declareRoute } from "../foundation/http/route.ts";
import { idempotencyKeyHeader, idParameter, pageQuery } from "../foundation/http/route-input.ts";
import { evidenceSchema } from "../verify/evidence.ts";
import { UNSETTLED, RESULT_EXAMPLE } from "../verify/result.ts";
import { previewSchema } from "./arrival/preview.ts";
import { RESULT_COLUMNS } from "./results/results-csv.ts";
import { CHANGE_COLUMNS } from "./comparisons.ts";
import {
  comparisonCsvQuerySchema,
  comparisonQuerySchema,
  comparisonSchema,
  exportOptionsSchema,
  itemFilters,
  itemPageSchema,
  jobFilters,
  jobListSchema,
  jobSchema,
  jsonListSchema,
  uploadOptionsSchema,
} from "./results/schemas.ts";
import type { EventDoc } from "../foundation/http/openapi.ts";

/** A running job, as the OpenAPI document shows it. */
const RUNNING = {
  id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52",
  name: "Newsletter, spring",
  source: null,
  status: "running",
  created_at: "2026-01-01T00:00:00.000Z",
  started_at: "2026-01-01T00:00:00.100Z",
  completed_at: null,
  format: {
    type: "csv",
    sheet: null,
    encoding: "utf-8",
    encoding_assumed: false,
    delimiter: ",",
    header: true,
    title_rows: 0,
    column: { index: 1, name: "email", reason: "only_addresses", message: "It is the only column with addresses." },
  },
  rows: { total: 4, finished: 3, empty: 0 },
  addresses: { total: 3, finished: 2 },
  verdicts: { deliverable: 2, risky: 0, undeliverable: 1 },
  sub_statuses: { mailbox_exists: 2, mailbox_not_found: 1 },
  credits: { held: 1, charged: 2, released: 0 },
  estimated_seconds_left: 61,
  poll_after_ms: 12_200,
  paused_reason: null,
  webhook_configured: false,
  mail_configured: false,
};

const QUEUED = {
  ...RUNNING,
  status: "queued",
  started_at: null,
  rows: { total: 4, finished: 0, empty: 0 },
  addresses: { total: 3, finished: 0 },
  verdicts: { deliverable: 0, risky: 0, undeliverable: 0 },
  sub_statuses: {},
  credits: { held: 3, charged: 0, released: 0 },
  estimated_seconds_left: null,
  poll_after_ms: 1_000,
};

/** A job to retry: two rows of one address ended `dns_error`, free of charge. */
const RETRIED = {
  ...QUEUED,
  rows: { total: 4, finished: 2, empty: 0 },
  addresses: { total: 3, finished: 2 },
  verdicts: { deliverable: 1, risky: 0, undeliverable: 1 },
  sub_statuses: { mailbox_exists: 1, mailbox_not_found: 1 },
  credits: { held: 1, charged: 2, released: 1 },
};

const ENDED = { completed_at: "2026-01-01T00:01:00.000Z", estimated_seconds_left: null, poll_after_ms: null };

const CANCELLED = { ...RUNNING, ...ENDED, status: "cancelled", credits: { held: 0, charged: 2, released: 1 } };

const TAG = "Bulk verification";
const PATH = "/v1/bulk-verifications";

const PREVIEW = {
  dry_run: true,
  format: RUNNING.format,
  sheets: [],
  columns: ["name", "email"],
  candidates: [{ index: 1, name: "email", addresses: 3 }],
  sampled_rows: 4,
  first_rows: [
    {
      row_index: 0,
      cells: ["Ada", "Ada <someone@gmial.com>"],
      submitted_email: "Ada <someone@gmial.com>",
      normalized_email: "someone@gmial.com",
      did_you_mean: "someone@gmail.com",
      reason: null,
    },
  ],
  rows: { total: 4, empty: 1, duplicate: 0, invalid_syntax: 0 },
  addresses: { total: 3 },
  credits: { required: 3, available: 100 },
};

const ITEMS = {
  emails: [
    {
      row_index: 0,
      submitted_email: "Someone@Example.com",
      normalized_email: "someone@example.com",
      result: { ...RESULT_EXAMPLE, email: "Someone@Example.com" },
    },
    { row_index: 1, submitted_email: "late@example.com", normalized_email: "late@example.com", result: null },
  ],
  next_cursor: null,
};

const CSV_IN = "name,email\nAda,someone@example.com\n";

const params = z.object({ jobId: idParameter("bulk verification") });

const listText = textField(
  "CSV separated by comma, semicolon, tab or bar, in UTF-8, UTF-16 or the encoding that `encoding` names.",
);
const formSchema = uploadOptionsSchema.extend({
  file: z.string().meta({ description: "The list.", format: "binary" }),
});

export const CREATE_BULK_VERIFICATION = declareRoute({
  method: "POST",
  path: PATH,
  operationId: "createBulkVerification",
  tag: TAG,
  // A dry run, also one that a field of the form asks for, and a repeated request change nothing.
  recordedIfChanged: true,
  summary: "Verify a list",
  description:
    "Accepts up to 100,000 addresses as JSON, or a CSV file or Excel workbook (.xlsx; `sheet` names the sheet, by default the first with addresses) of up to 1,000,000 rows and 100 MiB as the body or as the part `file` of a form. Every distinct address is verified and charged once; one credit for each is held at the start. A cell may contain more than the address: a display name (`Ada <ada@example.com>`), `mailto:`, quotes, a trailing comma. Rows without an address are free. The query parameters except `dry_run` are for CSV and workbooks; a form may have them as fields.",
  scope: "bulk:write",
  query: uploadOptionsSchema.partial(),
  headers: idempotencyKeyHeader("A request repeated with the same key and list within 24 hours returns the same job."),
  uploads: {
    "application/json": {
      schema: jsonListSchema,
      example: { emails: ["someone@example.com", "late@example.com"], name: "Newsletter, spring" },
    },
    "text/csv": { schema: listText, example: CSV_IN },
    "multipart/form-data": { schema: formSchema, example: { file: CSV_IN, column: "email" } },
  },
  responses: {
    200: {
      description: "With `dry_run=true`: how the list is read and what it would cost.",
      schema: previewSchema,
      example: PREVIEW,
    },
    202: {
      description: "The list is stored on disk; the job survives restarts.",
      schema: jobSchema,
      example: QUEUED,
      headers: { Location: "The URL of the job." },
    },
  },
  errors: ["insufficient_credits", "conflict", "idempotency_key_reused"],
});

export const LIST_BULK_VERIFICATIONS = declareRoute({
  method: "GET",
  path: PATH,
  operationId: "listBulkVerifications",
  tag: TAG,
  summary: "List jobs",
  description: "Returns the jobs of the account and the key's mode, newest first.",
  scope: "bulk:read",
  query: pageQuery(isId, jobFilters),
  responses: {
    200: {
      description: "A page of jobs.",
      schema: jobListSchema,
      example: { bulk_verifications: [RUNNING], next_cursor: null },
    },
  },
});

export const GET_BULK_VERIFICATION = declareRoute({
  method: "GET",
  path: `${PATH}/:jobId`,
  operationId: "getBulkVerification",
  tag: TAG,
  summary: "Get a job",
  description: "Returns the progress, counts and credits of a job. Poll again after `poll_after_ms`.",
  scope: "bulk:read",
  params,
  responses: { 200: { description: "The job.", schema: jobSchema, example: RUNNING } },
});

export const isRowIndex = (text: string): boolean => /^\d{1,9}$/.test(text);

export const LIST_BULK_ITEMS = declareRoute({
  method: "GET",
  path: `${PATH}/:jobId/items`,
  operationId: "listBulkItems",
  tag: TAG,
  summary: "List the rows of a job",
  description:
    "Returns the rows with their results in the order of the list, also while the job runs: rows that are not finished have no result. A cell of more than 320 characters is not an address; `submitted_email` is its beginning with an ellipsis.",
  scope: "bulk:read",
  params,
  query: pageQuery(isRowIndex, itemFilters),
  responses: { 200: { description: "A page of rows.", schema: itemPageSchema, example: ITEMS } },
});

export const GET_BULK_ITEM_EVIDENCE = declareRoute({
  method: "GET",
  path: `${PATH}/:jobId/items/:row/evidence`,
  operationId: "getBulkItemEvidence",
  tag: TAG,
  summary: "Get the evidence of a row",
  description:
    "Everything that the verdict is based on, as for a single verification: DNS responses, the hosts contacted, the SMTP transcripts, the rule that matched each reply, retries and the suggested address. Rows with the same address share it; it is deleted with the job.",
  scope: "bulk:read",
  params: params.extend({
    row: z
      .string()
      .refine(isRowIndex, "The job has no such row.")
      .transform(Number)
      .meta({ description: "`row_index` of the row.", type: "integer", minimum: 0 }),
  }),
  responses: {
    200: {
      description: "The evidence collected so far.",
      schema: evidenceSchema.meta({ title: "Evidence" }),
      example: evidenceExample,
    },
  },
});

export const GET_BULK_RESULTS = declareRoute({
  method: "GET",
  path: `${PATH}/:jobId/results.csv`,
  operationId: "getBulkResults",
  tag: TAG,
  summary: "Download the results as CSV",
  description:
    "Streams the uploaded columns followed by the result columns, also while the job runs. UTF-8, except for a list whose encoding is assumed to be `windows-1252`: its bytes are returned unchanged. `did_you_mean` is the address that was probably meant, `reason` why a row does not hold an address. Rows above the header are kept there. The file is named after the job.",
  scope: "bulk:read",
  params,
  query: exportOptionsSchema,
  responses: {
    200: {
      description: "The list with its results.",
      contentType: "text/csv",
      schema: z.string(),
      example: `name,email,${RESULT_COLUMNS.join(",")}\r\n`,
    },
  },
});

export const COMPARE_BULK_VERIFICATIONS = declareRoute({
  method: "GET",
  path: `${PATH}/:jobId/comparison`,
  operationId: "compareBulkVerifications",
  tag: TAG,
  summary: "Compare a job with an earlier one",
  description:
    "Counts the distinct addresses of two jobs by what happened to them in between: for a list that is verified every month. Jobs of a million addresses take some seconds.",
  scope: "bulk:read",
  params,
  query: comparisonQuerySchema,
  responses: {
    200: {
      description: "The counts.",
      schema: comparisonSchema,
      example: {
        id: RUNNING.id,
        with: {
          id: "019a9e3c-1c2b-7d10-8a3e-5b1f0c9d7e21",
          name: RUNNING.name,
          created_at: "2025-12-01T00:00:00.000Z",
        },
        counts: { became_undeliverable: 1, recovered: 0, changed: 0, unchanged: 1, new: 1, gone: 2, unfinished: 0 },
      },
    },
  },
});

export const GET_BULK_CHANGES = declareRoute({
  method: "GET",
  path: `${PATH}/:jobId/comparison.csv`,
  operationId: "getBulkChanges",
  tag: TAG,
  summary: "Download the addresses of a change as CSV",
  description: "The distinct addresses of one change with both results, in the order of their list.",
  scope: "bulk:read",
  params,
  query: comparisonCsvQuerySchema,
  responses: {
    200: {
      description: "The addresses.",
      contentType: "text/csv",
      schema: z.string(),
      example: `${CHANGE_COLUMNS.join(",")}\r\nsomeone@example.com,gone,,,deliverable,mailbox_exists\r\n`,
    },
  },
});

export const CANCEL_BULK_VERIFICATION = declareRoute({
  method: "POST",
  path: `${PATH}/:jobId/cancel`,
  operationId: "cancelBulkVerification",
  tag: TAG,
  summary: "Cancel a job",
  description: "Finished addresses keep their results; the credits held for the others are released.",
  scope: "bulk:write",
  params,
  responses: { 200: { description: "The cancelled job.", schema: jobSchema, example: CANCELLED } },
  errors: ["conflict"],
});

export const RETRY_BULK_VERIFICATION = declareRoute({
  method: "POST",
  path: `${PATH}/:jobId/retry`,
  operationId: "retryBulkVerification",
  tag: TAG,
  summary: "Retry the unsettled addresses of a job",
  description: `Queues a completed job again for its addresses that ended ${UNSETTLED.map((one) => `\`${one}\``).join(", ")}. Their results are removed, \`rows.finished\` decreases, and one credit for each is held again. It is a new verification: an address that was charged is charged again when a mail server responds. \`credits.charged\` and \`credits.released\` count all rounds. \`bulk.completed\` is sent again at the end.`,
  scope: "bulk:write",
  params,
  headers: idempotencyKeyHeader(
    "A request repeated with the same key within 24 hours returns the job and retries nothing.",
  ),
  responses: { 202: { description: "The queued job.", schema: jobSchema, example: RETRIED } },
  errors: ["insufficient_credits", "conflict", "idempotency_key_reused"],
});

export const DELETE_BULK_VERIFICATION = declareRoute({
  method: "DELETE",
  path: `${PATH}/:jobId`,
  operationId: "deleteBulkVerification",
  tag: TAG,
  summary: "Delete a job",
  description: "Deletes a job that has ended, with its rows, results and evidence.",
  scope: "bulk:write",
  params,
  responses: { 204: { description: "The job is deleted." } },
  errors: ["conflict"],
});

export const BULK_ROUTES = [
  CREATE_BULK_VERIFICATION,
  LIST_BULK_VERIFICATIONS,
  GET_BULK_VERIFICATION,
  LIST_BULK_ITEMS,
  GET_BULK_ITEM_EVIDENCE,
  GET_BULK_RESULTS,
  COMPARE_BULK_VERIFICATIONS,
  GET_BULK_CHANGES,
  CANCEL_BULK_VERIFICATION,
  RETRY_BULK_VERIFICATION,
  DELETE_BULK_VERIFICATION,
] as const;

const COMPLETED = {
  ...RUNNING,
  ...ENDED,
  status: "completed",
  rows: { total: 4, finished: 4, empty: 0 },
  addresses: { total: 3, finished: 3 },
  verdicts: { deliverable: 3, risky: 0, undeliverable: 1 },
  sub_statuses: { mailbox_exists: 3, mailbox_not_found: 1 },
  credits: { held: 0, charged: 3, released: 0 },
};

const jobEventSchema = jobSchema
  .extend({ mode: z.enum(["live", "test"]).meta({ description: "The mode of the key that created the job." }) })
  .meta({ title: "BulkJobEvent" });

const eventOf = (status: string, summary: string, job: object): EventDoc => ({
  type: `bulk.${status}`,
  tag: "Bulk verification",
  summary,
  title: () => (status === "failed" ? "A list failed" : `A list was ${status}`),
  data: jobEventSchema,
  example: { ...job, webhook_configured: true, mode: "live" },
});

/** The events of bulk verification. Their `data` is the job. */
export const BULK_EVENTS: readonly EventDoc[] = [
  eventOf("completed", "Every address of a job is verified", COMPLETED),
  eventOf("cancelled", "A job was cancelled", CANCELLED),
  eventOf("failed", "A job could not continue", { ...CANCELLED, status: "failed" }),
];
