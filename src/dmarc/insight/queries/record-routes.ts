import { type DayRange, isoDay } from "../../../foundation/base/days.ts";
import { sendJson } from "../../../foundation/http/response.ts";
import { declareRoute, handle } from "../../../foundation/http/route.ts";
import { encodeCursor, pageQuery } from "../../../foundation/http/route-input.ts";
import { rangeFields } from "../../../foundation/http/day-range.ts";
import { rangeOf } from "../sources/day-range.ts";
import { CSV_DESCRIPTION, csvAlternative, rowFormatOf } from "./csv.ts";
import { DOMAIN_PATH, domainParams, type QueryContext, REPORTS_TAG } from "./domain-query.ts";
import { NDJSON_TYPE, ndjsonResponse } from "./ndjson.ts";
import { RECORD_EXAMPLE } from "./query-examples.ts";
import { exportAllRecords, isExportCursor, readExportCursor } from "./record-export.ts";
import { DmarcRecordReader } from "./record-reader.ts";
import { exportedRecordSchema, recordFilters, recordSchema, recordsSchema } from "./record-schemas.ts";
import { isRecordCursor, RECORD_COLUMNS } from "./records.ts";

const LIST_RECORDS = declareRoute({
  ...{ method: "GET", path: `${DOMAIN_PATH}/records`, operationId: "listDmarcRecords", tag: REPORTS_TAG },
  summary: "List the records of a domain's reports",
  description: `The newest day first; within a day, failing records first. A page with filters can hold fewer rows than \`limit\` and still have a \`next_cursor\`. ${CSV_DESCRIPTION} The file begins at \`cursor\`; for more rows, request shorter ranges, or NDJSON. With \`Accept: application/x-ndjson\` all rows of the range are streamed in the same order from \`cursor\`, one JSON object per line, without a limit.`,
  ...{ scope: "dmarc:read", params: domainParams, query: pageQuery(isRecordCursor, recordFilters) },
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
  ...{ method: "GET", path: "/v1/dmarc/records", operationId: "exportDmarcRecords", tag: REPORTS_TAG },
  summary: "Export the records of all domains",
  description:
    "Streams one JSON object per line, in the order in which reports were stored, without a limit. To fetch new records only, keep the `cursor` of the last line that you stored and pass it next time: the stream continues after that record, whatever the day of later reports, and is empty when there is nothing new. Resume a broken connection in the same way. Records of a report that is replaced or deleted later are not retracted.",
  scope: "dmarc:read",
  query: pageQuery(isExportCursor, rangeFields)
    .pick({ from: true, to: true, cursor: true })
    .extend({
      from: rangeFields.from.meta({ description: "The first UTC day. Without `from` and `to`: all records." }),
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

export const RECORD_ROUTES = [LIST_RECORDS, EXPORT_RECORDS] as const;

const ALL_DAYS: DayRange = { fromDay: 0, toDay: Number.MAX_SAFE_INTEGER };

export const createRecordRoutes = (context: QueryContext) => {
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
