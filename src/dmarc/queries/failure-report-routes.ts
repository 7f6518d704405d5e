import { Elysia } from "elysia";
import { isoTime } from "../../base/clock.ts";
import { AppError } from "../../base/errors.ts";
import { isId } from "../../base/secrets.ts";
import { sendJson } from "../../http/response.ts";
import type { Guard } from "../../http/guard.ts";
import { readPlainly, rowsById, sendPage } from "../../http/list-page.ts";
import type { Operation } from "../../http/openapi.ts";
import { PAGE_ERRORS } from "../../http/operation-errors.ts";
import { PAGE, pathId } from "../../http/parameters.ts";
import { pageParameters, readPage } from "../../http/query.ts";
import type { FailureReportRow, FailureReportStore } from "../ingest/failure-report-store.ts";
import type { FailureReport } from "../report/failure-report.ts";
import {
  failureReportDetailSchema,
  failureReportsSchema,
  type ShownFailureReport,
  type ShownFailureReportDetail,
} from "./failure-report-schemas.ts";
import { createDomainFinder, type SourceRouteDeps } from "./source-routes.ts";
import { noReportFiltersSchema } from "./source-schemas.ts";

export interface FailureReportRouteDeps {
  readonly guard: Guard;
  readonly failures: Pick<FailureReportStore, "listFailures" | "findFailure">;
  /** As for the other routes that read. */
  readonly findDomain: SourceRouteDeps["findDomain"];
}

const PATH = "/v1/dmarc/domains/:id/failure-reports";

const detailView = (row: FailureReportRow): ShownFailureReportDetail => {
  const report = JSON.parse(row.body) as FailureReport;
  return {
    id: row.id,
    received_at: isoTime(row.receivedAtMs),
    redacted: row.isRedacted,
    feedback_type: report.feedbackType,
    auth_failure: report.authFailure,
    reported_domain: report.reportedDomain,
    source_ip: report.sourceIp,
    arrival_date: report.arrivalDate,
    delivery_result: report.deliveryResult,
    identity_alignment: report.identityAlignment,
    authentication_results: report.authenticationResults,
    original_mail_from: report.originalMailFrom,
    original_rcpt_to: report.originalRcptTo,
    dkim_domain: report.dkimDomain,
    dkim_selector: report.dkimSelector,
    dkim_identity: report.dkimIdentity,
    spf_dns: report.spfDns,
    user_agent: report.userAgent,
    ingestion_id: row.ingestion,
    headers: report.headers.map(({ name, value }) => ({ name, value })),
  };
};

const listView = (row: FailureReportRow): ShownFailureReport => {
  const { headers: _, ...shown } = detailView(row);
  return shown;
};

/** The endpoints that show failure reports of domains that store them. */
export const createFailureReportRoutes = ({ guard, failures, findDomain }: FailureReportRouteDeps) => {
  const find = createDomainFinder(findDomain);
  return new Elysia({ name: "dmarc-failure-reports" })
    .use(guard)
    .get(
      PATH,
      async ({ request, params, caller }) => {
        const { number } = find(caller, params.id);
        const page = readPage(request, noReportFiltersSchema, isId);
        const read = readPlainly((window) => failures.listFailures(number, window));
        return sendPage(request, { name: "failure_reports", page }, rowsById(read, listView));
      },
      { demand: { scope: "dmarc:read", query: pageParameters(noReportFiltersSchema) } },
    )
    .get(
      `${PATH}/:reportId`,
      ({ request, params, caller }) => {
        const { number } = find(caller, params.id);
        const row = isId(params.reportId) ? failures.findFailure(number, params.reportId) : undefined;
        if (row !== undefined) return sendJson(request, detailView(row));
        throw new AppError("not_found", { message: "There is no such failure report of this domain." });
      },
      { demand: { scope: "dmarc:read" } },
    );
};

const TAG = "DMARC reports";
const ID = pathId("Identifier of the domain.");

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

/** The routes of failure reports, as the OpenAPI document describes them. */
export const FAILURE_REPORT_OPERATIONS: readonly Operation[] = [
  {
    method: "GET",
    path: PATH,
    tag: TAG,
    summary: "Failure reports (RFC 9991), those that came last first",
    description:
      "Reports about single messages, stored while `store_failure_reports` is on, 1,000 a day at most, for `raw_retention_days`. Without names, local parts and subjects unless `failure_reports_redact` was off when they came.",
    parameters: [ID, ...PAGE],
    responses: {
      200: {
        description: "A page.",
        schema: failureReportsSchema,
        example: { failure_reports: [EXAMPLE], next_cursor: null },
      },
    },
    errors: ["insufficient_scope", "not_found", ...PAGE_ERRORS],
  },
  {
    method: "GET",
    path: `${PATH}/:reportId`,
    tag: TAG,
    summary: "One failure report with the header of its message",
    description:
      "Redacted unless `failure_reports_redact` was false when it arrived. The body of the message is never stored.",
    parameters: [ID, pathId("Identifier of the failure report.", "reportId")],
    responses: {
      200: {
        description: "The failure report.",
        schema: failureReportDetailSchema,
        example: { ...EXAMPLE, headers: [{ name: "From", value: "redacted@example.com" }] },
      },
    },
    errors: ["insufficient_scope", "not_found"],
  },
];
