import { z } from "zod";
import { isId } from "../../../foundation/base/secrets.ts";
import { sendBytes, sendJson } from "../../../foundation/http/response.ts";
import { readPlainly, rowsById, sendPage } from "../../../foundation/http/list-page.ts";
import { declareRoute, handle } from "../../../foundation/http/route.ts";
import { encodeCursor, idParameter, pageQuery } from "../../../foundation/http/route-input.ts";
import { booleanParameter } from "../../../foundation/http/schema-fields.ts";
import { rangeFields } from "../../../foundation/http/day-range.ts";
import { DOMAIN_PATH, domainParams, REPORTS_TAG } from "./domain-query.ts";
import { REPORT_DETAIL_EXAMPLE, REPORT_EXAMPLE, TLS_REPORT_EXAMPLE } from "./query-examples.ts";
import { reporterFilter } from "./record-schemas.ts";
import type { ReportReader } from "./report-reader.ts";
import { AUTHENTICITIES, reportDetailSchema, reportsSchema, tlsReportsSchema } from "./report-schemas.ts";
import { isReportCursor, tlsReportView } from "./reports.ts";

const PATH = `${DOMAIN_PATH}/reports`;
/** Records returned with a report. */
const RECORDS_MAX = 1_000;

const LIST_REPORTS = declareRoute({
  ...{ method: "GET", path: PATH, operationId: "listDmarcReports", tag: REPORTS_TAG },
  summary: "List the aggregate reports of a domain",
  description: "The newest day first; within a day, the most recently received report first.",
  ...{ scope: "dmarc:read", params: domainParams },
  query: pageQuery(isReportCursor, {
    ...rangeFields,
    reporter: reporterFilter.optional().meta({
      description:
        "Only reports with this reporter name, ignoring case (empty: without a name), and untrusted reports whose mail is authenticated as this domain.",
    }),
    authenticity: z
      .enum(AUTHENTICITIES)
      .optional()
      .meta({ description: "Only reports whose mail has this authentication result." }),
    trusted: booleanParameter("`true`: only trusted reports. `false`: only untrusted ones."),
  }),
  responses: {
    200: {
      description: "A page of reports.",
      schema: reportsSchema,
      example: { reports: [REPORT_EXAMPLE], next_cursor: null },
    },
  },
});

const reportParams = z.object({ id: idParameter("domain"), reportId: idParameter("report") });

const GET_REPORT = declareRoute({
  ...{ method: "GET", path: `${PATH}/:reportId`, operationId: "getDmarcReport", tag: REPORTS_TAG },
  summary: "Get an aggregate report with its records",
  description: `Holds at most ${RECORDS_MAX.toLocaleString("en")} records, failing ones first. For all of them: \`GET …/records?report=\`.`,
  ...{ scope: "dmarc:read", params: reportParams },
  responses: { 200: { description: "The report.", schema: reportDetailSchema, example: REPORT_DETAIL_EXAMPLE } },
});

const GET_RAW_REPORT = declareRoute({
  ...{ method: "GET", path: `${PATH}/:reportId/raw`, operationId: "downloadDmarcReport", tag: REPORTS_TAG },
  summary: "Download the mail or file that brought a report",
  description: "Returns the original bytes. They are stored for `raw_retention_days` of the domain; after that: 404.",
  ...{ scope: "dmarc:read", params: reportParams },
  responses: {
    200: {
      description: "The original bytes, as an attachment.",
      contentType: "application/octet-stream",
      schema: z.string().meta({ format: "binary" }),
      example: '<?xml version="1.0"?><feedback>…</feedback>',
      headers: { "Content-Disposition": "The file name." },
    },
  },
});

const LIST_TLS_REPORTS = declareRoute({
  ...{ method: "GET", path: `${DOMAIN_PATH}/tls-reports`, operationId: "listTlsReports", tag: REPORTS_TAG },
  summary: "List the TLS reports of a domain (RFC 8460)",
  description:
    "The most recently received first: the sessions under each policy, and the failures by type and MX host.",
  ...{ scope: "dmarc:read", params: domainParams, query: pageQuery(isId, {}) },
  responses: {
    200: {
      description: "A page of TLS reports.",
      schema: tlsReportsSchema,
      example: { tls_reports: [TLS_REPORT_EXAMPLE], next_cursor: null },
    },
  },
});

export const REPORT_ROUTES = [LIST_REPORTS, GET_REPORT, GET_RAW_REPORT, LIST_TLS_REPORTS] as const;

export const createReportRoutes = (reader: ReportReader) => [
  handle(LIST_REPORTS, async ({ request, caller, params, query: { limit, cursor, ...query } }) => {
    const page = await reader.list(caller, params.id, query, { after: cursor, limit });
    const next_cursor = page.next === null ? null : encodeCursor(page.next);
    return sendJson(request, { reports: page.reports, next_cursor });
  }),

  handle(GET_REPORT, async ({ request, caller, params }) => {
    const page = { after: null, limit: RECORDS_MAX };
    const { report, next } = await reader.detail(caller, params.id, params.reportId, page);
    return sendJson(request, { ...report, records_next_cursor: next === null ? null : encodeCursor(next) });
  }),

  handle(GET_RAW_REPORT, ({ request, caller, params }) => {
    const { bytes, fileName } = reader.raw(caller, params.id, params.reportId);
    return sendBytes(request, bytes, {
      "content-type": "application/octet-stream",
      "content-disposition": `attachment; filename="${fileName}"`,
      "x-content-type-options": "nosniff",
    });
  }),

  handle(LIST_TLS_REPORTS, ({ request, caller, params, query }) => {
    const read = readPlainly(reader.tlsReports(caller, params.id));
    return sendPage(request, { name: "tls_reports", page: query }, rowsById(read, tlsReportView));
  }),
];
