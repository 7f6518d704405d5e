import { z } from "zod";
import type { Operation } from "../../http/openapi.ts";
import { PAGE_ERRORS } from "../../http/operation-errors.ts";
import { PAGE, pathId, query } from "../../http/parameters.ts";
import {
  INGESTION_CHOICES,
  ingestionSchema,
  ingestionsSchema,
  retriedSchema,
  retrySchema,
  uploadedSchema,
} from "./ingestion-schemas.ts";

const TAG = "DMARC monitoring";
const REPORTS = "/v1/dmarc/reports";
const PATH = "/v1/dmarc/ingestions";

const FINDING = {
  outcome: "stored",
  reason: null,
  message: "The report is stored.",
  name: "google.com!example.com!1767225600!1767311999.xml",
  report_id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1b01",
  domain_id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a00",
  domain: "example.com",
  org_name: "google.com",
  authenticated_as: null,
  external_report_id: "14229384859438412345",
};

const INGESTION = {
  id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1b00",
  via: "http",
  status: "done",
  outcome: "stored",
  reason: null,
  name: "google.com!example.com!1767225600!1767311999.zip",
  bytes: 1482,
  received_at: "2026-01-02T03:04:05.006Z",
  finished_at: "2026-01-02T03:04:05.011Z",
  domain_id: null,
  client: null,
  mail_from: null,
  raw_available: true,
  accepted_at: null,
  findings: [FINDING],
};

const PENDING = {
  ...INGESTION,
  status: "pending",
  outcome: null,
  finished_at: null,
  findings: [],
};

const XML = "<feedback>…</feedback>";
const file = z.string().meta({ format: "binary" });
const anyFile = { schema: file, example: XML };

const ID = pathId("Identifier of the ingestion.");
const time = { type: "string", format: "date-time" };

/** The routes of what comes in, as the OpenAPI document describes them. */
export const INGESTION_OPERATIONS: readonly Operation[] = [
  {
    method: "POST",
    path: REPORTS,
    tag: TAG,
    summary: "Upload reports",
    description:
      "Aggregate reports and TLS reports, as the mails that brought them, as XML or JSON, or packed with gzip or zip; what it is, is found out from the bytes. The body is one file, or a form (multipart/form-data) with up to 1,000; fields of a form without a file are passed over. 64 MiB in all and 32 MiB a file, which may unpack to 512 MiB: files beyond are kept as `rejected` (`upload_too_large`) and can be tried again. A body that stands still for a minute, or takes more than five, is refused; an account may have four uploads at a time, others are answered 503 with `Retry-After`. The answer comes when all of it is stored. A report counts for the enrolled domain that it is about; one about another domain is kept as `quarantined`, and can be tried again after that domain is enrolled. So is one about days that are still to come (`period_in_future`) or about more than 400 days (`period_too_long`). Reports of the past are taken however old they are, but the domain's `retention_days` holds for them at once: one that says `older_than_retention` goes within the hour. A report that is there already is a `duplicate`.",
    body: {
      schema: z.unknown().meta({ description: "A TLS report (RFC 8460)." }),
      example: { "organization-name": "Example", policies: [] },
      others: {
        "application/xml": anyFile,
        "application/gzip": anyFile,
        "application/zip": anyFile,
        "message/rfc822": anyFile,
        "application/octet-stream": anyFile,
        "multipart/form-data": { schema: z.object({ file: z.array(file) }), example: { file: [XML] } },
      },
    },
    responses: {
      200: {
        description: "All of it is stored, and what is in it is known.",
        schema: uploadedSchema,
        example: { ingestions: [INGESTION] },
      },
    },
    errors: [
      "insufficient_scope",
      "Invalid request body",
      "payload_too_large",
      "unsupported_media_type",
      "unavailable",
    ],
  },
  {
    method: "GET",
    path: PATH,
    tag: TAG,
    summary: "What came in, newest first",
    description:
      "Every mail and file with what was found in it, in codes and in words. Nothing that was taken is lost: what could not be used says why.",
    parameters: [
      ...PAGE,
      query("outcome", "Only those.", { type: "string", enum: [...INGESTION_CHOICES.outcome] }),
      query("reason", "Only those, such as `foreign_domain`.", { type: "string" }),
      query("status", "Only those.", { type: "string", enum: [...INGESTION_CHOICES.status] }),
      query("via", "Only those that came this way.", { type: "string", enum: [...INGESTION_CHOICES.via] }),
      query("domain_id", "Only what is about this domain, and mails to its reporting address.", {
        type: "string",
        format: "uuid",
      }),
      query("created_after", "Only those received then or later.", time),
      query("created_before", "Only those received before.", time),
    ],
    responses: {
      200: {
        description: "A page.",
        schema: ingestionsSchema,
        example: { ingestions: [INGESTION], next_cursor: null },
      },
    },
    errors: ["insufficient_scope", ...PAGE_ERRORS],
  },
  {
    method: "GET",
    path: `${PATH}/:id`,
    tag: TAG,
    summary: "One mail or file that came in",
    description: "`findings` says what became of each report in it.",
    parameters: [ID],
    responses: { 200: { description: "The ingestion.", schema: ingestionSchema, example: INGESTION } },
    errors: ["insufficient_scope", "not_found"],
  },
  {
    method: "GET",
    path: `${PATH}/:id/raw`,
    tag: TAG,
    summary: "The bytes as they came",
    description: "Kept as long as the domains that it is about want it (`raw_retention_days`); then it is not found.",
    parameters: [ID],
    responses: {
      200: {
        description: "The mail (`message/rfc822`) or file (`application/octet-stream`), as an attachment.",
        schema: file,
        contentType: "application/octet-stream",
        example: XML,
      },
    },
    errors: ["insufficient_scope", "not_found", "conflict"],
  },
  {
    method: "POST",
    path: `${PATH}/:id/retry`,
    tag: TAG,
    summary: "Read one again",
    description:
      "In the background, as after a domain was enrolled or Postwarden learned to read more. With `accept_unauthenticated` the reports of a mail count although it is not authenticated as the reporter's (`not_authentic`, `authenticity_unknown`, `other_author`, and those that are counted apart): you vouch for it, as for a file that you upload. 409 when the bytes are no longer kept, and when what you accept did not come by mail.",
    parameters: [ID],
    body: { isOptional: true, schema: retrySchema, example: { accept_unauthenticated: true } },
    responses: {
      202: {
        description: "It is read again soon.",
        schema: ingestionSchema,
        example: PENDING,
        headers: { Location: "The ingestion." },
      },
    },
    errors: ["insufficient_scope", "Invalid request body", "payload_too_large", "not_found", "conflict"],
  },
  {
    method: "POST",
    path: `${PATH}/retry`,
    tag: TAG,
    summary: "Read again all that was rejected or quarantined",
    description: "Only those whose bytes are still kept. `GET /v1/dmarc/ingestions` shows what became of them.",
    responses: { 202: { description: "They are read again soon.", schema: retriedSchema, example: { retried: 3 } } },
    errors: ["insufficient_scope"],
  },
];
