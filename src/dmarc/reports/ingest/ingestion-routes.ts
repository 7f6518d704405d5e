import { rowsById, sendPage } from "../../../foundation/http/list-page.ts";
import { sendFile } from "../../../foundation/http/response.ts";
import { handle, type HandledRoute, declareRoute } from "../../../foundation/http/route.ts";
import type { IngestionReader, Ingestions } from "./ingestions.ts";
import type { ReportUploads } from "./report-uploads.ts";
import { z } from "zod";
import { isId } from "../../../foundation/base/secrets.ts";
import { idParameter, pageQuery } from "../../../foundation/http/route-input.ts";
import {
  ingestionFilters,
  ingestionSchema,
  ingestionsSchema,
  retriedSchema,
  retrySchema,
  uploadedSchema,
} from "./ingestion-schemas.ts";

export interface IngestionRouteDeps {
  readonly ingestions: Ingestions;
  readonly reader: IngestionReader;
  readonly uploads: ReportUploads;
}

/** Serves uploads of reports and the list of ingestions. */
export const createIngestionRoutes = (deps: IngestionRouteDeps): readonly HandledRoute[] => [
  handle(UPLOAD_REPORTS, async ({ request, caller }) => {
    const rows = await deps.uploads.upload(request, caller);
    return { ingestions: rows.map((row) => deps.reader.view(row)) };
  }),
  ...listRoutes(deps.reader),
  ...retryRoutes(deps),
];

const listRoutes = (reader: IngestionReader) => [
  handle(LIST_INGESTIONS, ({ query, caller, request }) => {
    const {
      limit,
      cursor,
      domain_id: domainId,
      created_after: receivedFromMs,
      created_before: receivedBeforeMs,
      ...rest
    } = query;
    const read = reader.list(caller, { ...rest, domainId, receivedFromMs, receivedBeforeMs });
    const rows = rowsById(read, (row) => reader.view(row));
    return sendPage(request, { name: "ingestions", page: { limit, cursor } }, rows);
  }),

  handle(GET_INGESTION, ({ params, caller }) => reader.find(caller, params.id)),

  handle(GET_INGESTION_RAW, async ({ request, params: { id }, caller }) =>
    sendFile(request, await reader.raw(caller, id)),
  ),
];

const retryRoutes = ({ ingestions, reader }: IngestionRouteDeps) => [
  handle(RETRY_INGESTION, async ({ params, body, caller, set }) => {
    const row = await ingestions.retry(caller, params.id, { isAccepted: body.accept_unauthenticated === true });
    set.status = 202;
    set.headers.location = `${LIST_INGESTIONS.path}/${row.id}`;
    return reader.view(row);
  }),

  handle(RETRY_INGESTIONS, async ({ caller, set }) => {
    set.status = 202;
    return { retried: await ingestions.retryAll(caller) };
  }),
];

const TAG = "DMARC monitoring";
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
  unread_rows: 0,
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
const file = z.string().meta({ format: "binary", description: "The bytes of the file." });
const anyFile = { schema: file, example: XML };
const params = z.object({ id: idParameter("ingestion") });

const UPLOAD_REPORTS = declareRoute({
  method: "POST",
  path: "/v1/dmarc/reports",
  operationId: "uploadDmarcReports",
  tag: TAG,
  summary: "Upload reports",
  description: `Uploads aggregate reports and TLS reports: mails, XML, JSON, gzip or zip. The format is detected from the bytes. The body is one file, or a form (multipart/form-data) with up to 1,000 files. Limits: 64 MiB in all, 32 MiB per file, 512 MiB unpacked; files beyond the last limit are stored as \`rejected\` (\`upload_too_large\`) and can be retried. An upload times out after 60 seconds without data, or after 5 minutes. An account can have 4 uploads in progress; others get 503 with \`Retry-After\`.

The response is sent when everything is stored. A report counts for the enrolled domain that it is about. A report about another domain is \`quarantined\` and can be retried after that domain is enrolled; so is a report about the future (\`period_in_future\`) or about more than 400 days (\`period_too_long\`). A report that is older than the domain's \`retention_days\` is removed within the hour (\`older_than_retention\`). A report that is stored already is a \`duplicate\`.`,
  scope: "dmarc:write",
  uploads: {
    "application/json": {
      schema: z.unknown().meta({ description: "A TLS report (RFC 8460)." }),
      example: { "organization-name": "Example", policies: [] },
    },
    "application/xml": anyFile,
    "application/gzip": anyFile,
    "application/zip": anyFile,
    "message/rfc822": anyFile,
    "application/octet-stream": anyFile,
    "multipart/form-data": {
      schema: z.object({ file: z.array(file).meta({ description: "The files, under any field names." }) }),
      example: { file: [XML] },
    },
  },
  responses: {
    200: {
      description: "Every file is stored and read.",
      schema: uploadedSchema,
      example: { ingestions: [INGESTION] },
    },
  },
  errors: ["Invalid request body", "payload_too_large", "unsupported_media_type", "unavailable"],
});

const LIST_INGESTIONS = declareRoute({
  method: "GET",
  path: PATH,
  operationId: "listDmarcIngestions",
  tag: TAG,
  summary: "List ingestions",
  description: "Every mail and file that arrived, newest first, with what was found in it.",
  scope: "dmarc:read",
  query: pageQuery(isId, ingestionFilters),
  responses: {
    200: {
      description: "A page of ingestions.",
      schema: ingestionsSchema,
      example: { ingestions: [INGESTION], next_cursor: null },
    },
  },
});

const GET_INGESTION = declareRoute({
  method: "GET",
  path: `${PATH}/:id`,
  operationId: "getDmarcIngestion",
  tag: TAG,
  summary: "Get an ingestion",
  description: "`findings` says what became of each report in it.",
  scope: "dmarc:read",
  params,
  responses: { 200: { description: "The ingestion.", schema: ingestionSchema, example: INGESTION } },
});

const GET_INGESTION_RAW = declareRoute({
  method: "GET",
  path: `${PATH}/:id/raw`,
  operationId: "getDmarcIngestionRaw",
  tag: TAG,
  summary: "Download the bytes of an ingestion",
  description:
    "The mail or file as it arrived. It is kept for the `raw_retention_days` of the domains that it is about; 409 after that.",
  scope: "dmarc:read",
  params,
  responses: {
    200: {
      description: "The mail (`message/rfc822`) or file (`application/octet-stream`), as an attachment.",
      schema: file,
      contentType: "application/octet-stream",
      example: XML,
      alternatives: { "message/rfc822": { schema: file, example: "From: …" } },
    },
  },
  errors: ["conflict"],
});

const RETRY_INGESTION = declareRoute({
  method: "POST",
  path: `${PATH}/:id/retry`,
  operationId: "retryDmarcIngestion",
  tag: TAG,
  summary: "Retry an ingestion",
  description:
    "Reads the mail or file again in the background, for example after its domain was enrolled. With `accept_unauthenticated`, the reports of a mail count although it is not authenticated as the reporter's. 409 when its bytes are no longer kept, and when an ingestion to be accepted is not a mail.",
  scope: "dmarc:write",
  params,
  body: { isOptional: true, schema: retrySchema, example: { accept_unauthenticated: true } },
  responses: {
    202: {
      description: "The ingestion is pending.",
      schema: ingestionSchema,
      example: PENDING,
      headers: { Location: "The path of the ingestion." },
    },
  },
  errors: ["conflict"],
});

const RETRY_INGESTIONS = declareRoute({
  method: "POST",
  path: `${PATH}/retry`,
  operationId: "retryDmarcIngestions",
  tag: TAG,
  summary: "Retry all rejected and quarantined ingestions",
  description: "Reads those again whose bytes are still kept, in the background.",
  scope: "dmarc:write",
  responses: { 202: { description: "They are pending.", schema: retriedSchema, example: { retried: 3 } } },
});

/** The routes of uploads and ingestions. */
export const INGESTION_ROUTES = [
  UPLOAD_REPORTS,
  LIST_INGESTIONS,
  GET_INGESTION,
  GET_INGESTION_RAW,
  RETRY_INGESTION,
  RETRY_INGESTIONS,
] as const;
