import { DomainSources, inReadingTurn } from "../sources/domain-sources.ts";
import { rowFormatOf } from "../../../foundation/http/row-format.ts";
import { createSourceAddressRoutes, SOURCE_ADDRESS_ROUTES } from "./source-address-routes.ts";
import type { FailureReportStore } from "../../reports/ingest/report-store.ts";
import {
  type QueryContext,
  DOMAIN_PATH,
  REPORTS_TAG,
  rangeOf,
  RANGE_DAYS_MAX,
  CSV_DESCRIPTION,
  csvAlternative,
  NDJSON_TYPE,
  ndjsonResponse,
  DOMAIN_REPORTS,
} from "./domain-query.ts";
import { FailureReports, failureReportDetailSchema, failureReportSchema, ReportReader } from "./report-reader.ts";
import { createOwnHostRoutes, OWN_HOST_ROUTES } from "./own-host-routes.ts";
import { createSourceRoutes, SOURCE_ROUTES } from "./source-routes.ts";
import { z } from "zod";
import { inTurns } from "../../../foundation/base/in-steps.ts";
import { isId } from "../../../foundation/base/secrets.ts";
import { sendJson, sendFile } from "../../../foundation/http/response.ts";
import { nextCursorField, booleanParameter } from "../../../foundation/http/schema-fields.ts";
import { readById } from "../../../foundation/base/walk.ts";
import { rowsById, sendPage } from "../../../foundation/http/list-page.ts";
import { declareRoute, handle } from "../../../foundation/http/route.ts";
import { idParameter, pageQuery, encodeCursor } from "../../../foundation/http/route-input.ts";
import { rangeFields } from "../../../foundation/http/day-range.ts";
import {
  FAILURE_EXAMPLE,
  REPORT_DETAIL_EXAMPLE,
  REPORT_EXAMPLE,
  TLS_REPORT_EXAMPLE,
  RECORD_EXAMPLE,
  SUMMARY_EXAMPLE,
  TIMESERIES_EXAMPLE,
} from "./query-examples.ts";
import {
  reporterFilter,
  exportedRecordSchema,
  recordFilters,
  recordSchema,
  recordsSchema,
  isRecordCursor,
  RECORD_COLUMNS,
} from "./records.ts";
import {
  AUTHENTICITIES,
  reportDetailSchema,
  reportsSchema,
  tlsReportsSchema,
  isReportCursor,
  tlsReportView,
} from "./reports.ts";
import { type DayRange, isoDay } from "../../../foundation/base/days.ts";
import { exportAllRecords, isExportCursor, readExportCursor, DmarcRecordReader } from "./record-reader.ts";
import { summarizeDomain, summarySchema, timeseriesOf, timeseriesSchema } from "./summary.ts";

const summaryQuery = z.strictObject(rangeFields);

const GET_SUMMARY = declareRoute({
  ...DOMAIN_REPORTS,
  path: `${DOMAIN_PATH}/summary`,
  operationId: "getDmarcSummary",
  summary: "Get the summary of a domain",
  description: `Message counts, classes of sources, top sources, reporters and header_from domains of a range of at most ${RANGE_DAYS_MAX} days. A report counts for the UTC day of the middle of its period.`,
  query: summaryQuery,
  responses: { 200: { description: "The summary.", schema: summarySchema, example: SUMMARY_EXAMPLE } },
});

const GET_TIMESERIES = declareRoute({
  ...DOMAIN_REPORTS,
  path: `${DOMAIN_PATH}/timeseries`,
  operationId: "getDmarcTimeseries",
  summary: "Get the daily message counts of a domain",
  description:
    "Returns a point for every day of the range, also for days that no report covers. A report counts for the UTC day of the middle of its period.",
  query: summaryQuery,
  responses: {
    200: { description: "The daily message counts.", schema: timeseriesSchema, example: TIMESERIES_EXAMPLE },
  },
});

const SUMMARY_ROUTES = [GET_SUMMARY, GET_TIMESERIES] as const;

const LIST_RECORDS = declareRoute({
  ...DOMAIN_REPORTS,
  path: `${DOMAIN_PATH}/records`,
  operationId: "listDmarcRecords",
  summary: "List the records of a domain's reports",
  description: `The newest day first; within a day, failing records first. A page with filters can hold fewer rows than \`limit\` and still have a \`next_cursor\`. ${CSV_DESCRIPTION} The file begins at \`cursor\`; for more rows, request shorter ranges, or NDJSON. With \`Accept: application/x-ndjson\` all rows of the range are streamed in the same order from \`cursor\`, one JSON object per line, without a limit.`,
  query: pageQuery(isRecordCursor, recordFilters),
  responses: {
    200: {
      description: "A page of records.",
      schema: recordsSchema,
      example: { records: [RECORD_EXAMPLE], next_cursor: null },
      alternatives: {
        ...csvAlternative(RECORD_COLUMNS),
        [NDJSON_TYPE]: { schema: recordSchema, example: RECORD_EXAMPLE },
      },
    },
  },
});

const EXPORT_RECORDS = declareRoute({
  method: "GET",
  path: "/v1/dmarc/records",
  operationId: "exportDmarcRecords",
  tag: REPORTS_TAG,
  summary: "Export the records of all domains",
  description:
    "Streams one JSON object per line, in the order in which reports were stored, without a limit. To fetch new records only, keep the `cursor` of the last line that you stored and pass it next time: the stream continues after that record, whatever the day of later reports, and is empty when there is nothing new. Resume a broken connection in the same way. Records of a report that is replaced or deleted later are not retracted.",
  scope: "dmarc:read",
  query: pageQuery(isExportCursor, rangeFields)
    .pick({ from: true, to: true, cursor: true })
    .extend({
      from: rangeFields.from.describe("The first UTC day. Without `from` and `to`: all records."),
    }),
  responses: {
    200: {
      description: "One record per line.",
      contentType: NDJSON_TYPE,
      schema: exportedRecordSchema,
      example: {
        domain_id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a60",
        domain: "example.com",
        ...RECORD_EXAMPLE,
        cursor: "NDIuMA",
      },
    },
  },
});

const RECORD_ROUTES = [LIST_RECORDS, EXPORT_RECORDS] as const;

const REPORTS_PATH = `${DOMAIN_PATH}/reports`;
/** Records returned with a report. */
const RECORDS_MAX = 1_000;

const LIST_REPORTS = declareRoute({
  ...DOMAIN_REPORTS,
  path: REPORTS_PATH,
  operationId: "listDmarcReports",
  summary: "List the aggregate reports of a domain",
  description: "The newest day first; within a day, the most recently received report first.",
  query: pageQuery(isReportCursor, {
    ...rangeFields,
    reporter: reporterFilter
      .optional()
      .describe(
        "Only reports with this reporter name, ignoring case (empty: without a name), and untrusted reports whose mail is authenticated as this domain.",
      ),
    authenticity: z.enum(AUTHENTICITIES).optional().describe("Only reports whose mail has this authentication result."),
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
  method: "GET",
  path: `${REPORTS_PATH}/:reportId`,
  operationId: "getDmarcReport",
  tag: REPORTS_TAG,
  summary: "Get an aggregate report with its records",
  description: `Holds at most ${RECORDS_MAX.toLocaleString("en")} records, failing ones first. For all of them: \`GET …/records?report=\`.`,
  scope: "dmarc:read",
  params: reportParams,
  responses: { 200: { description: "The report.", schema: reportDetailSchema, example: REPORT_DETAIL_EXAMPLE } },
});

const GET_RAW_REPORT = declareRoute({
  method: "GET",
  path: `${REPORTS_PATH}/:reportId/raw`,
  operationId: "downloadDmarcReport",
  tag: REPORTS_TAG,
  summary: "Download the mail or file that brought a report",
  description: "Returns the original bytes. They are stored for `raw_retention_days` of the domain; after that: 404.",
  scope: "dmarc:read",
  params: reportParams,
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
  ...DOMAIN_REPORTS,
  path: `${DOMAIN_PATH}/tls-reports`,
  operationId: "listTlsReports",
  summary: "List the TLS reports of a domain (RFC 8460)",
  description:
    "The most recently received first: the sessions under each policy, and the failures by type and MX host.",
  query: pageQuery(isId, {
    from: rangeFields.from.describe("The first UTC day of periods. Without `from` and `to`: all reports."),
    to: rangeFields.to.describe("The last UTC day on which a period begins. Default with `from`: today."),
  }),
  responses: {
    200: {
      description: "A page of TLS reports.",
      schema: tlsReportsSchema,
      example: { tls_reports: [TLS_REPORT_EXAMPLE], next_cursor: null },
    },
  },
});

const REPORT_ROUTES = [LIST_REPORTS, GET_REPORT, GET_RAW_REPORT, LIST_TLS_REPORTS] as const;

export const failureReportsSchema = z
  .object({
    failure_reports: z.array(failureReportSchema).describe("The failure reports."),
    next_cursor: nextCursorField,
  })
  .meta({ title: "DmarcFailureReportList" });

const FAILURES_PATH = `${DOMAIN_PATH}/failure-reports`;

const LIST_FAILURE_REPORTS = declareRoute({
  ...DOMAIN_REPORTS,
  path: FAILURES_PATH,
  operationId: "listDmarcFailureReports",
  summary: "List the failure reports of a domain (RFC 9991)",
  description:
    "The most recently received first. Failure reports are about single messages. They are stored while `store_failure_reports` is on, at most 1,000 a day, for `raw_retention_days`; without names, local parts and subjects unless `failure_reports_redact` was off when they arrived.",
  query: pageQuery(isId, {}),
  responses: {
    200: {
      description: "A page of failure reports.",
      schema: failureReportsSchema,
      example: { failure_reports: [FAILURE_EXAMPLE], next_cursor: null },
    },
  },
});

const GET_FAILURE_REPORT = declareRoute({
  method: "GET",
  path: `${FAILURES_PATH}/:reportId`,
  operationId: "getDmarcFailureReport",
  tag: REPORTS_TAG,
  summary: "Get a failure report with the header of its message",
  description:
    "Redacted unless `failure_reports_redact` was false when it arrived. The body of the message is never stored.",
  scope: "dmarc:read",
  params: z.object({ id: idParameter("domain"), reportId: idParameter("failure report") }),
  responses: {
    200: {
      description: "The failure report.",
      schema: failureReportDetailSchema,
      example: { ...FAILURE_EXAMPLE, headers: [{ name: "From", value: "redacted@example.com" }] },
    },
  },
});

const FAILURE_REPORT_ROUTES = [LIST_FAILURE_REPORTS, GET_FAILURE_REPORT] as const;

/** The routes that read reports, as they are declared. */
export const QUERY_ROUTES = [
  ...SUMMARY_ROUTES,
  ...SOURCE_ROUTES,
  ...OWN_HOST_ROUTES,
  ...SOURCE_ADDRESS_ROUTES,
  ...RECORD_ROUTES,
  ...REPORT_ROUTES,
  ...FAILURE_REPORT_ROUTES,
] as const;

/** The same routes with their handlers. */
export const createQueryRoutes = (
  context: QueryContext,
  failures: Pick<FailureReportStore, "listFailures" | "findFailure">,
) => [
  ...createSummaryRoutes(context),
  ...createSourceRoutes(context),
  ...createOwnHostRoutes(context),
  ...createSourceAddressRoutes(context),
  ...createRecordRoutes(context),
  ...createReportRoutes(new ReportReader(context)),
  ...createFailureReportRoutes(new FailureReports(context, failures)),
];

const createFailureReportRoutes = (failures: FailureReports) => [
  handle(LIST_FAILURE_REPORTS, ({ request, caller, params, query }) => {
    const read = readById(failures.list(caller, params.id));
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

const createReportRoutes = (reader: ReportReader) => [
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

  handle(GET_RAW_REPORT, async ({ request, caller, params }) =>
    sendFile(request, await reader.raw(caller, params.id, params.reportId)),
  ),

  handle(LIST_TLS_REPORTS, ({ request, caller, params, query }) => {
    const read = readById(reader.tlsReports(caller, params.id, query));
    return sendPage(request, { name: "tls_reports", page: query }, rowsById(read, tlsReportView));
  }),
];

const ALL_DAYS: DayRange = { fromDay: 0, toDay: Number.MAX_SAFE_INTEGER };

const createRecordRoutes = (context: QueryContext) => {
  const { clock } = context;
  const reader = new DmarcRecordReader(context);
  return [
    handle(LIST_RECORDS, async ({ request, caller, params, query: { limit, cursor, ...filters } }) => {
      if (rowFormatOf(request) !== "json") return reader.file(caller, params.id, request, { filters, after: cursor });
      const page = await reader.page(caller, params.id, filters, { after: cursor, limit });
      const next_cursor = page.next === null ? null : encodeCursor(page.next);
      return sendJson(request, { records: page.records, next_cursor }, { vary: "accept" });
    }),

    handle(EXPORT_RECORDS, ({ request, caller, query: { cursor, ...days } }) => {
      const isRange = days.from !== undefined || days.to !== undefined;
      const range = isRange ? rangeOf(days, clock.nowMs()) : ALL_DAYS;
      const name = isRange ? `records-${isoDay(range.fromDay)}-${isoDay(range.toDay)}` : "records";
      const batches = exportAllRecords(context, caller, { range, after: readExportCursor(cursor) });
      return ndjsonResponse(request, `${name}.ndjson`, batches);
    }),
  ];
};

const createSummaryRoutes = ({ db, clock, rollups, findDomain }: QueryContext) => [
  handle(GET_SUMMARY, async ({ caller, params, query }) => {
    const [domain, range] = [findDomain(caller, params.id), rangeOf(query, clock.nowMs())];
    const sources = await DomainSources.read(rollups, domain, (all) => all.sources(range));
    return db.snapshot(() => summarizeDomain(rollups, domain, range, sources));
  }),
  handle(GET_TIMESERIES, ({ caller, params, query }) => {
    const [domain, range] = [findDomain(caller, params.id), rangeOf(query, clock.nowMs())];
    return inReadingTurn(domain, () => inTurns(timeseriesOf(rollups, domain, range)));
  }),
];
