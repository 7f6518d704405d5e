import { z } from "zod";
import type { Operation } from "../http/openapi.ts";
import { BODY_ERRORS, PAGE_ERRORS } from "../http/operation-errors.ts";
import { pathId, query } from "../http/parameters.ts";
import { concludeVerification } from "../verify/verdict.ts";
import { evidenceSchema } from "../verify/evidence.ts";
import { TEST_VERIFIED_AT, testEvidence } from "../verify/test-keys.ts";
import { previewSchema } from "./preview.ts";
import { SUB_STATUSES, UNSETTLED, VERDICTS } from "../verify/result.ts";
import { CANCELLED, QUEUED, RETRIED, RUNNING } from "./job-examples.ts";
import { RESULT_COLUMNS } from "./results-csv.ts";
import {
  itemPageSchema,
  JOB_STATUSES,
  jobListSchema,
  jobSchema,
  jsonListSchema,
  uploadOptionsSchema,
} from "./schemas.ts";
import { RESULT_EXAMPLE } from "../verify/result-example.ts";

const ITEM_FILTERS = [
  query("verdict", "Only finished rows of this verdict.", { enum: VERDICTS }),
  query("sub_status", "Only finished rows of this sub_status.", { enum: SUB_STATUSES }),
];

const PAGE = {
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

const PREVIEW = {
  dry_run: true,
  format: RUNNING.format,
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

const CSV_IN = "name,email\nAda,someone@example.com\n";
const CSV_OUT = `name,email,${RESULT_COLUMNS.join(",")}\r\n`;

const JOB_ID = pathId("Identifier of the job.", "jobId");
const LIMIT = query("limit", "Entries per page; above 1000 is treated as 1000.", {
  type: "integer",
  minimum: 1,
  default: 100,
});
const CURSOR = query("cursor", "`next_cursor` of the page before.", { type: "string" });

const TAG = "Bulk verification";
const PATH = "/v1/bulk-verifications";

const formSchema = uploadOptionsSchema.extend({
  file: z.string().meta({ description: "The list.", format: "binary" }),
});

const listText = z.string().meta({ description: "CSV; separated by comma, semicolon, tab or bar; UTF-8 or UTF-16." });

/** The bulk routes, as the OpenAPI document describes them. */
export const BULK_OPERATIONS: readonly Operation[] = [
  {
    method: "POST",
    path: PATH,
    tag: TAG,
    summary: "Verify a list",
    description:
      "Takes up to 100,000 addresses as JSON, or a CSV or Excel workbook (.xlsx, its first visible sheet) of up to 1,000,000 rows and 100 MiB as the body or as the part `file` of a form. Every distinct address is checked and charged once; one credit for each is held at once. A cell may have more than the address: a display name (`Ada <ada@example.com>`), `mailto:`, quotes, a comma at its end. Rows without an address are free. The parameters of the query belong to a CSV, except `dry_run`; a form may have them as fields.",
    parameters: [
      query("column", "Name or zero-based index of the column of addresses; else the one that looks like it.", {
        type: "string",
      }),
      query("header", "Whether the first row names the columns.", { enum: ["auto", "true", "false"], default: "auto" }),
      query("dry_run", "`true`: a preview; nothing is stored, held or verified. Also for a list as JSON.", {
        enum: ["true", "false"],
        default: "false",
      }),
      query("name", "Your name for the job.", { type: "string", maxLength: 200 }),
      query("source", "Free-form label.", { type: "string", maxLength: 200 }),
      query("webhook_url", "Where the job's events are to be sent; https.", { type: "string", format: "uri" }),
      {
        name: "Idempotency-Key",
        in: "header",
        description: "A repeat with the same key and list answers the same job, for 24 hours.",
        schema: { type: "string", minLength: 1, maxLength: 200 },
      },
    ],
    body: {
      schema: jsonListSchema,
      example: { emails: ["someone@example.com", "late@example.com"], name: "Newsletter, spring" },
      others: {
        "text/csv": { schema: listText, example: CSV_IN },
        "multipart/form-data": { schema: formSchema, example: { file: CSV_IN, column: "email" } },
      },
    },
    responses: {
      200: {
        description: "With `dry_run=true`: how the list is read, and what it would cost.",
        schema: previewSchema,
        example: PREVIEW,
      },
      202: {
        description: "The list is taken in and on the disk; the job goes on over restarts.",
        schema: jobSchema,
        example: QUEUED,
        headers: { Location: "Where to look at the job." },
      },
    },
    errors: [
      "insufficient_scope",
      ...BODY_ERRORS,
      "Invalid query",
      "Invalid idempotency key",
      "insufficient_credits",
      "conflict",
      "idempotency_key_reused",
    ],
  },
  {
    method: "GET",
    path: PATH,
    tag: TAG,
    summary: "List the account's jobs, newest first",
    parameters: [LIMIT, CURSOR, query("status", "Only jobs of this status.", { enum: JOB_STATUSES })],
    responses: {
      200: {
        description: "A page.",
        schema: jobListSchema,
        example: { bulk_verifications: [RUNNING], next_cursor: null },
      },
    },
    errors: ["insufficient_scope", ...PAGE_ERRORS],
  },
  {
    method: "GET",
    path: `${PATH}/:jobId`,
    tag: TAG,
    summary: "Look at a job",
    parameters: [JOB_ID],
    responses: { 200: { description: "Its state.", schema: jobSchema, example: RUNNING } },
    errors: ["insufficient_scope", "not_found"],
  },
  {
    method: "GET",
    path: `${PATH}/:jobId/items`,
    tag: TAG,
    summary: "The rows of a job with their results, page by page",
    description:
      "In the order of the rows. Works while the job runs: rows that are not finished have no result. A page ends before its limit when it has 4 MiB; `next_cursor` then names the next one. A cell of more than 320 characters is no address; `submitted_email` has its beginning and an ellipsis.",
    parameters: [JOB_ID, LIMIT, CURSOR, ...ITEM_FILTERS],
    responses: { 200: { description: "A page.", schema: itemPageSchema, example: PAGE } },
    errors: ["insufficient_scope", "not_found", ...PAGE_ERRORS],
  },
  {
    method: "GET",
    path: `${PATH}/:jobId/items/:row/evidence`,
    tag: TAG,
    summary: "Why a row of a job has its result",
    description:
      "DNS answers, the SMTP sessions, the rule that read each reply, retries, the address that was perhaps meant: what a single verification has. It is that of the row's address, and goes with the job.",
    parameters: [
      JOB_ID,
      { name: "row", in: "path", description: "`row_index` of the row.", schema: { type: "integer", minimum: 0 } },
    ],
    responses: {
      200: {
        description: "The evidence as far as it has come.",
        schema: evidenceSchema.meta({ title: "Evidence" }),
        example: () => concludeVerification(testEvidence("mailbox_exists@any.example"), TEST_VERIFIED_AT).evidence,
      },
    },
    errors: ["insufficient_scope", "not_found"],
  },
  {
    method: "GET",
    path: `${PATH}/:jobId/results.csv`,
    tag: TAG,
    summary: "The uploaded columns and the result columns as CSV",
    description:
      "Streamed. Works while the job runs. `did_you_mean` has the address that was perhaps meant, `reason` why a row holds no address. Rows above the header stay above it. The file is named after the job.",
    parameters: [
      JOB_ID,
      ...ITEM_FILTERS,
      query(
        "defuse",
        "Whether cells that a spreadsheet would run as a formula begin with an apostrophe; `false` for programs.",
        { enum: ["true", "false"], default: "true" },
      ),
      query(
        "bom",
        "Whether the file begins with a byte order mark; by default if the uploaded file had one or was not UTF-8.",
        { enum: ["true", "false"] },
      ),
    ],
    responses: {
      200: { description: "The list.", contentType: "text/csv", schema: z.string(), example: CSV_OUT },
    },
    errors: ["insufficient_scope", "not_found", "Invalid query"],
  },
  {
    method: "POST",
    path: `${PATH}/:jobId/cancel`,
    tag: TAG,
    summary: "Cancel a job",
    description: "What has not finished never will, and its credits go back; what is finished stays.",
    parameters: [JOB_ID],
    responses: { 200: { description: "It is cancelled.", schema: jobSchema, example: CANCELLED } },
    errors: ["insufficient_scope", "not_found", "conflict"],
  },
  {
    method: "POST",
    path: `${PATH}/:jobId/retry`,
    tag: TAG,
    summary: "Check again what a completed job left unsettled",
    description: `Queues the same job again for its addresses that ended ${UNSETTLED.map((one) => `\`${one}\``).join(", ")}. Their results are removed, \`rows.finished\` goes down, and one credit for each is held again. It is a new check: an address that was charged is charged again when a mail server answers. \`credits.charged\` and \`credits.released\` count all rounds. \`bulk.completed\` is sent again at the end.`,
    parameters: [
      JOB_ID,
      {
        name: "Idempotency-Key",
        in: "header",
        description: "A repeat with the same key starts nothing and answers the job, for 24 hours.",
        schema: { type: "string", minLength: 1, maxLength: 200 },
      },
    ],
    responses: { 202: { description: "The job is queued again.", schema: jobSchema, example: RETRIED } },
    errors: [
      "insufficient_scope",
      "Invalid idempotency key",
      "not_found",
      "insufficient_credits",
      "conflict",
      "idempotency_key_reused",
    ],
  },
  {
    method: "DELETE",
    path: `${PATH}/:jobId`,
    tag: TAG,
    summary: "Delete a job that has ended, with its results",
    parameters: [JOB_ID],
    responses: { 204: { description: "It is gone." } },
    errors: ["insufficient_scope", "not_found", "conflict"],
  },
];
