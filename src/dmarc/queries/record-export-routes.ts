import { Elysia } from "elysia";
import { z } from "zod";
import type { Clock } from "../../base/clock.ts";
import { type DayRange, isoDay } from "../../base/days.ts";
import type { Guard } from "../../http/guard.ts";
import { namesOf, readPage } from "../../http/query.ts";
import type { Operation } from "../../http/openapi.ts";
import { query } from "../../http/parameters.ts";
import { NDJSON_TYPE, ndjsonResponse } from "./ndjson.ts";
import { RECORD_EXAMPLE } from "./query-examples.ts";
import { exportedRecordSchema } from "./record-schemas.ts";
import { rangeFields, rangeOf } from "../sources/day-range.ts";
import type { RecordStore } from "./record-store.ts";
import { exportAllRecords, isExportCursor, readExportCursor } from "./record-export.ts";
import type { RollupStore } from "../sources/rollup-store.ts";
import type { RecordExportStore } from "./record-export-store.ts";

export interface RecordExportRouteDeps {
  readonly guard: Guard;
  readonly clock: Clock;
  readonly records: RecordStore;
  readonly exports: RecordExportStore;
  readonly store: RollupStore;
}

const day = { type: "string", examples: ["2026-01-01", "2026-01-01T00:00:00Z"] };
const exportFiltersSchema = z.strictObject(rangeFields);
/** What is not said of a range: all there is. */
const ALL_DAYS: DayRange = { fromDay: 0, toDay: Number.MAX_SAFE_INTEGER };

/** The route of the export, as the OpenAPI document describes it. */
export const EXPORT_OPERATIONS: readonly Operation[] = [
  {
    method: "GET",
    path: "/v1/dmarc/records",
    tag: "DMARC reports",
    summary: "Records of all domains as NDJSON, in the order in which reports were stored",
    description:
      "One JSON object a line, without a limit; every line has a `cursor`. To pull what is new, keep the `cursor` of the last line that you have stored and pass it the next time: the stream goes on behind that record, whatever day later reports are about, and is empty when nothing is new. A connection that broke off is resumed in the same way. Records of a report that is replaced or removed later are not taken back.",
    parameters: [
      query("from", "The first UTC day; without `from` and `to` all there is.", day),
      query("to", "The last UTC day, itself included; today unless told.", day),
      query("cursor", "`cursor` of the last record that you have.", { type: "string" }),
    ],
    responses: {
      200: {
        description: "A line a record.",
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
    errors: ["insufficient_scope", "Invalid query", "Invalid cursor"],
  },
];

/** The endpoint that streams the records of all domains of an account. */
export const createRecordExportRoutes = ({ guard, clock, records, exports, store }: RecordExportRouteDeps) =>
  new Elysia({ name: "dmarc-record-export" }).use(guard).get(
    "/v1/dmarc/records",
    ({ request, caller }) => {
      const { after, filters } = readPage(request, exportFiltersSchema, isExportCursor);
      const isRange = filters.from !== undefined || filters.to !== undefined;
      const range = isRange ? rangeOf(filters, clock.nowMs()) : ALL_DAYS;
      const name = isRange ? `records-${isoDay(range.fromDay)}-${isoDay(range.toDay)}` : "records";
      const batches = exportAllRecords({ records, exports, store }, caller, { range, after: readExportCursor(after) });
      return ndjsonResponse(request, `${name}.ndjson`, batches);
    },
    { demand: { scope: "dmarc:read", query: ["cursor", ...namesOf(exportFiltersSchema)] } },
  );
