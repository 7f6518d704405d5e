import type { ErrorCode } from "../../base/errors.ts";
import type { Operation, Parameter } from "../../http/openapi.ts";
import { BODY_ERRORS, PAGE_ERRORS } from "../../http/operation-errors.ts";
import { PAGE, pathId, query } from "../../http/parameters.ts";
import { z } from "zod";
import { CSV_ROWS_MAX } from "./csv.ts";
import {
  RECORD_EXAMPLE,
  REPORT_EXAMPLE,
  REPORT_DETAIL_EXAMPLE,
  SOURCE_EXAMPLE,
  SUMMARY_EXAMPLE,
  TIMESERIES_EXAMPLE,
  TLS_REPORT_EXAMPLE,
} from "./query-examples.ts";
import { recordsSchema } from "./record-schemas.ts";
import { AUTHENTICITIES, reportDetailSchema, reportsSchema, tlsReportsSchema } from "./report-schemas.ts";
import {
  sourceChangeSchema,
  sourcesChangeSchema,
  sourcesSchema,
  summarySchema,
  timeseriesSchema,
} from "./source-schemas.ts";
import { CLASSIFICATIONS } from "../sources/rollup-store.ts";
import { DISPOSITIONS } from "../report/report-values.ts";
import { sourceSchema } from "../sources/source-response.ts";

const TAG = "DMARC reports";
const PATH = "/v1/dmarc/domains/:id";

const ID = pathId("Identifier of the domain.");
const REPORT_ID = pathId("Identifier of the report.", "reportId");
const KEY: Parameter = {
  name: "key",
  in: "path",
  description: "`key` of the source, URL-encoded: it may hold `/` and `:`.",
  schema: { type: "string" },
};
/** OpenAPI has no parameter called Accept (3.1 §4.8.12.1): it is said in words. */
const CSV = `With \`Accept: text/csv\` the answer is a CSV file: all rows, whatever \`limit\` says, up to ${CSV_ROWS_MAX.toLocaleString("en")}. Cells that a spreadsheet would run as a formula are defused.`;

const day = { type: "string", examples: ["2026-01-01", "2026-01-01T00:00:00Z"] };
const RANGE: readonly Parameter[] = [
  query("from", "The first UTC day, as a date or a time in it; 29 days before `to` unless told.", day),
  query("to", "The last UTC day, itself included; today unless told.", day),
];
const text = { type: "string" };

const NOT_THERE: readonly ErrorCode[] = ["insufficient_scope", "not_found"];
const LIST_ERRORS: readonly ErrorCode[] = [...NOT_THERE, ...PAGE_ERRORS];

/** The routes that read what reports said, as the OpenAPI document describes them. */
export const QUERY_OPERATIONS: readonly Operation[] = [
  {
    method: "GET",
    path: `${PATH}/summary`,
    tag: TAG,
    summary: "How a domain fared, at a glance",
    description: "A range has 3660 days at most. Reports are counted for the UTC day of the middle of their period.",
    parameters: [ID, ...RANGE],
    responses: { 200: { description: "The summary.", schema: summarySchema, example: SUMMARY_EXAMPLE } },
    errors: [...NOT_THERE, "Invalid query"],
  },
  {
    method: "GET",
    path: `${PATH}/timeseries`,
    tag: TAG,
    summary: "How a domain fared on each day",
    description:
      "A point for every day, also for those that no report tells of. Reports are counted for the UTC day of the middle of their period.",
    parameters: [ID, ...RANGE],
    responses: {
      200: { description: "Every day of the range.", schema: timeseriesSchema, example: TIMESERIES_EXAMPLE },
    },
    errors: [...NOT_THERE, "Invalid query"],
  },
  {
    method: "GET",
    path: `${PATH}/sources`,
    tag: TAG,
    summary: "Who sends in a domain's name, those that need attention first",
    description: `A source is the service or organization behind the sending addresses; \`dkim\` and \`spf\` say how its mail is authenticated. \`authorized\`: nearly all of its mail is aligned; \`misconfigured\`: yours, but not aligned; \`forwarder\`: forwards mail of others; \`threat\`: unauthenticated mail from addresses without a proper reverse name; \`unknown\`: classify it with PATCH. ${CSV}`,
    parameters: [
      ID,
      ...RANGE,
      query("classification", "Only those.", { ...text, enum: [...CLASSIFICATIONS] }),
      query(
        "unauthenticated",
        "`by_network` lists the networks of unauthenticated mail one by one, not as one source.",
        {
          ...text,
          enum: ["summary", "by_network"],
        },
      ),
      ...PAGE,
    ],
    responses: {
      200: { description: "A page.", schema: sourcesSchema, example: { sources: [SOURCE_EXAMPLE], next_cursor: null } },
    },
    errors: LIST_ERRORS,
  },
  {
    method: "PATCH",
    path: `${PATH}/sources`,
    tag: TAG,
    summary: "Classify many sources at once",
    description:
      "All of them or none. The response holds their counts of the last 30 days, in the order of `keys`. To classify by rule, set `source_rules` of the domain.",
    parameters: [ID],
    body: {
      schema: sourcesChangeSchema,
      example: { keys: ["org:example.net", "net:192.0.2.0/24"], classification: "authorized" },
    },
    responses: {
      200: {
        description: "The sources.",
        schema: sourcesSchema.pick({ sources: true }).meta({ title: "DmarcClassifiedSources" }),
        example: { sources: [{ ...SOURCE_EXAMPLE, classification: "authorized", classified_by: "user" }] },
      },
    },
    errors: [...NOT_THERE, ...BODY_ERRORS],
  },
  {
    method: "PATCH",
    path: `${PATH}/sources/:key`,
    tag: TAG,
    summary: "Say what a source is",
    description: "The answer holds its counts of the last 30 days.",
    parameters: [ID, KEY],
    body: { schema: sourceChangeSchema, example: { classification: "authorized" } },
    responses: {
      200: {
        description: "The source.",
        schema: sourceSchema,
        example: { ...SOURCE_EXAMPLE, classification: "authorized", classified_by: "user" },
      },
    },
    errors: [...NOT_THERE, ...BODY_ERRORS],
  },
  {
    method: "GET",
    path: `${PATH}/records`,
    tag: TAG,
    summary: "What reports say, row by row: the newest day first, and of a day what fails first",
    description: `A page with filters may hold fewer rows than \`limit\` and still have a \`next_cursor\`. ${CSV} It begins at \`cursor\`; for more, ask for shorter ranges, or for NDJSON. With \`Accept: application/x-ndjson\` all rows of the range are streamed in the same order from \`cursor\` on, one JSON object a line, without a limit.`,
    parameters: [
      ID,
      ...RANGE,
      query("source", "Only of the source with this key.", text),
      query("source_ip", "Only from this address.", text),
      query("disposition", "Only those.", { ...text, enum: [...DISPOSITIONS] }),
      query("aligned", "Only what passed DMARC, or what did not.", { type: "boolean" }),
      query("header_from", "Only with this domain in From.", text),
      query("reporter", "Only of the reporter with this name, in any case; empty for those without one.", text),
      query("report", "Only of the report with this id; whatever its day, unless a range is said.", text),
      ...PAGE,
    ],
    responses: {
      200: { description: "A page.", schema: recordsSchema, example: { records: [RECORD_EXAMPLE], next_cursor: null } },
    },
    errors: LIST_ERRORS,
  },
  {
    method: "GET",
    path: `${PATH}/reports`,
    tag: TAG,
    summary: "Aggregate reports, newest first",
    description: "By the day that a report is about; of a day the one that came last first.",
    parameters: [
      ID,
      ...RANGE,
      query(
        "reporter",
        "Only of the reporter with this name, in any case, or whose mail is authenticated as this domain and not as that of the name; empty for those without one.",
        text,
      ),
      query("authenticity", "Only those.", { ...text, enum: [...AUTHENTICITIES] }),
      query("trusted", "Only those that count as their reporter's, or only the others.", {
        ...text,
        enum: ["true", "false"],
      }),
      ...PAGE,
    ],
    responses: {
      200: { description: "A page.", schema: reportsSchema, example: { reports: [REPORT_EXAMPLE], next_cursor: null } },
    },
    errors: LIST_ERRORS,
  },
  {
    method: "GET",
    path: `${PATH}/reports/:reportId`,
    tag: TAG,
    summary: "One report with its records, the worst first",
    description: "Holds 1,000 records at most; all of them: `GET …/records?report=`.",
    parameters: [ID, REPORT_ID],
    responses: { 200: { description: "The report.", schema: reportDetailSchema, example: REPORT_DETAIL_EXAMPLE } },
    errors: NOT_THERE,
  },
  {
    method: "GET",
    path: `${PATH}/reports/:reportId/raw`,
    tag: TAG,
    summary: "The mail or file that brought a report, byte for byte",
    description: "Kept for `raw_retention_days` of the domain; then it is not found.",
    parameters: [ID, REPORT_ID],
    responses: {
      200: {
        description: "The bytes, as an attachment.",
        contentType: "application/octet-stream",
        schema: z.string().meta({ format: "binary" }),
        example: '<?xml version="1.0"?><feedback>…</feedback>',
        headers: { "Content-Disposition": "With a name for the file." },
      },
    },
    errors: NOT_THERE,
  },
  {
    method: "GET",
    path: `${PATH}/tls-reports`,
    tag: TAG,
    summary: "TLS reports (RFC 8460), those that came last first",
    description: "The sessions under each policy, and the failures with their types and MX hosts.",
    parameters: [ID, ...PAGE],
    responses: {
      200: {
        description: "A page.",
        schema: tlsReportsSchema,
        example: { tls_reports: [TLS_REPORT_EXAMPLE], next_cursor: null },
      },
    },
    errors: LIST_ERRORS,
  },
];
