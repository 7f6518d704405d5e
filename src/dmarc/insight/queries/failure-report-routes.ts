import { z } from "zod";
import { isId } from "../../../foundation/base/secrets.ts";
import { sendJson } from "../../../foundation/http/response.ts";
import { nextCursorField } from "../../../foundation/http/schema-fields.ts";
import { readPlainly, rowsById, sendPage } from "../../../foundation/http/list-page.ts";
import { declareRoute, handle } from "../../../foundation/http/route.ts";
import { idParameter, pageQuery } from "../../../foundation/http/route-input.ts";
import { DOMAIN_PATH, domainParams, REPORTS_TAG } from "./domain-query.ts";
import {
  failureReportDetailSchema,
  failureReportSchema,
  type FailureReports,
  type ShownFailureReport,
} from "./failure-reports.ts";

export const failureReportsSchema = z
  .object({
    failure_reports: z.array(failureReportSchema).meta({ description: "The failure reports." }),
    next_cursor: nextCursorField,
  })
  .meta({ title: "DmarcFailureReportList" });

const PATH = `${DOMAIN_PATH}/failure-reports`;

const EXAMPLE: ShownFailureReport = {
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

export const createFailureReportRoutes = (failures: FailureReports) => [
  handle(LIST_FAILURE_REPORTS, ({ request, caller, params, query }) => {
    const read = readPlainly(failures.list(caller, params.id));
    return sendPage(
      request,
      { name: "failure_reports", page: query },
      rowsById(read, (report) => report),
    );
  }),
  handle(GET_FAILURE_REPORT, ({ request, caller, params }) =>
    sendJson(request, failures.find(caller, params.id, params.reportId)),
  ),
];
