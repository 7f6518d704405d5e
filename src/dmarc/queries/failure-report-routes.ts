import { z } from "zod";
import { isoTime } from "../../base/clock.ts";
import { snakeKeys } from "../../base/key-case.ts";
import { AppError } from "../../base/errors.ts";
import { isId } from "../../base/secrets.ts";
import { sendJson } from "../../http/response.ts";
import { nextCursorField, nullableText } from "../../http/schema-fields.ts";
import { readPlainly, rowsById, sendPage } from "../../http/list-page.ts";
import { declareRoute, handle } from "../../http/route.ts";
import { idParameter, pageQuery } from "../../http/route-input.ts";
import type { FailureReportRow, FailureReportStore } from "../ingest/failure-report-store.ts";
import { DOMAIN_PATH, domainParams, type QueryContext, REPORTS_TAG } from "./domain-query.ts";

const failureReportSchema = z
  .object({
    id: z.uuid().meta({ description: "The id of the failure report." }),
    received_at: z.iso.datetime({ precision: 3 }).meta({ description: "When the report was received." }),
    redacted: z.boolean().meta({
      description: "Whether local parts, names, the subject and other header fields were removed before it was stored.",
    }),
    feedback_type: nullableText("The type of feedback; `auth-failure` for DMARC."),
    auth_failure: nullableText("What failed: `dmarc`, `dkim`, `spf`, …"),
    reported_domain: nullableText("The domain that the message used in From."),
    source_ip: nullableText("The IP address that sent the message."),
    arrival_date: nullableText("When the message arrived, as the reporter writes it."),
    delivery_result: nullableText("What the receiver did with it: `delivered`, `spam`, `policy`, `reject`, `other`."),
    identity_alignment: nullableText("The mechanisms that were not aligned (RFC 9991)."),
    authentication_results: nullableText("The Authentication-Results header of the receiver."),
    original_mail_from: nullableText("The envelope sender of the message."),
    original_rcpt_to: nullableText("The envelope recipient of the message."),
    dkim_domain: nullableText("The signing domain of the DKIM signature that failed."),
    dkim_selector: nullableText("The selector of that signature."),
    dkim_identity: nullableText("The identity (`i=`) of that signature."),
    spf_dns: nullableText("The SPF record that was evaluated."),
    user_agent: nullableText("The software that generated the report."),
    ingestion_id: z.string().meta({ description: "The id of the mail that brought the report." }),
  })
  .meta({ title: "DmarcFailureReport" });

export const failureReportDetailSchema = failureReportSchema
  .extend({
    headers: z
      .array(
        z.object({
          name: z.string().meta({ description: "The name of the header field." }),
          value: z.string().meta({ description: "Its value." }),
        }),
      )
      .meta({ description: "Header fields of the message, in order. Its body is never stored." }),
  })
  .meta({ title: "DmarcFailureReportDetail" });

export const failureReportsSchema = z
  .object({
    failure_reports: z.array(failureReportSchema).meta({ description: "The failure reports." }),
    next_cursor: nextCursorField,
  })
  .meta({ title: "DmarcFailureReportList" });

type Detail = Readonly<z.infer<typeof failureReportDetailSchema>>;

/** The part of a failure report that is stored as JSON. */
const storedReportSchema = failureReportDetailSchema.omit({
  id: true,
  received_at: true,
  redacted: true,
  ingestion_id: true,
});

const PATH = `${DOMAIN_PATH}/failure-reports`;

const EXAMPLE: Omit<Detail, "headers"> = {
  id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a91",
  received_at: "2026-01-02T10:00:00.000Z",
  redacted: true,
  feedback_type: "auth-failure",
  auth_failure: "dmarc",
  reported_domain: "example.com",
  source_ip: "192.0.2.66",
  arrival_date: "Fri, 2 Jan 2026 09:59:58 +0000",
  delivery_result: "reject",
  identity_alignment: "none",
  authentication_results: "mx.example.net; dmarc=fail header.from=example.com",
  original_mail_from: "redacted@bounce.example.org",
  original_rcpt_to: "redacted@example.net",
  dkim_domain: "example.com",
  dkim_selector: "s1",
  dkim_identity: null,
  spf_dns: null,
  user_agent: "Reporter/1.0",
  ingestion_id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a92",
};

const LIST_FAILURE_REPORTS = declareRoute({
  ...{ method: "GET", path: PATH, operationId: "listDmarcFailureReports", tag: REPORTS_TAG },
  summary: "List the failure reports of a domain (RFC 9991)",
  description:
    "The most recently received first. Failure reports are about single messages. They are stored while `store_failure_reports` is on, at most 1,000 a day, for `raw_retention_days`; without names, local parts and subjects unless `failure_reports_redact` was off when they arrived.",
  ...{ scope: "dmarc:read", params: domainParams, query: pageQuery(isId, {}) },
  responses: {
    200: {
      description: "A page of failure reports.",
      schema: failureReportsSchema,
      example: { failure_reports: [EXAMPLE], next_cursor: null },
    },
  },
});

const GET_FAILURE_REPORT = declareRoute({
  ...{ method: "GET", path: `${PATH}/:reportId`, operationId: "getDmarcFailureReport", tag: REPORTS_TAG },
  summary: "Get a failure report with the header of its message",
  description:
    "Redacted unless `failure_reports_redact` was false when it arrived. The body of the message is never stored.",
  scope: "dmarc:read",
  params: z.object({ id: idParameter("domain"), reportId: idParameter("failure report") }),
  responses: {
    200: {
      description: "The failure report.",
      schema: failureReportDetailSchema,
      example: { ...EXAMPLE, headers: [{ name: "From", value: "redacted@example.com" }] },
    },
  },
});

export const FAILURE_REPORT_ROUTES = [LIST_FAILURE_REPORTS, GET_FAILURE_REPORT] as const;

export const createFailureReportRoutes = (
  { findDomain }: Pick<QueryContext, "findDomain">,
  failures: Pick<FailureReportStore, "listFailures" | "findFailure">,
) => [
  handle(LIST_FAILURE_REPORTS, ({ request, caller, params, query }) => {
    const { number } = findDomain(caller, params.id);
    const read = readPlainly((window) => failures.listFailures(number, window));
    return sendPage(request, { name: "failure_reports", page: query }, rowsById(read, listView));
  }),
  handle(GET_FAILURE_REPORT, ({ request, caller, params }) => {
    const row = failures.findFailure(findDomain(caller, params.id).number, params.reportId);
    if (row !== undefined) return sendJson(request, detailView(row));
    throw new AppError("not_found", { message: "There is no such failure report of this domain." });
  }),
];

const detailView = (row: FailureReportRow): Detail => {
  const { headers, ...fields } = storedReportSchema.parse(snakeKeys(JSON.parse(row.body)));
  const { id, isRedacted: redacted, ingestion: ingestion_id } = row;
  return { id, received_at: isoTime(row.receivedAtMs), redacted, ...fields, ingestion_id, headers };
};

const listView = (row: FailureReportRow): Omit<Detail, "headers"> => {
  const { headers: _, ...shown } = detailView(row);
  return shown;
};
