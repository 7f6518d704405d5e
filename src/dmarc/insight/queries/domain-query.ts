import { readDayRange, type RequestedRange } from "../../../foundation/http/day-range.ts";
import type { ReportQueryStore } from "./report-query-store.ts";
import type { RecordStore } from "./record-store.ts";
import type { RollupStore } from "../sources/rollup-store.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import type { Caller } from "../../../foundation/http/guard.ts";
import type { Db } from "../../../foundation/db/open.ts";
import { type DayRange, isoDay } from "../../../foundation/base/days.ts";
import type { Clock } from "../../../foundation/base/clock.ts";
import { idParameter } from "../../../foundation/http/route-input.ts";
import { z } from "zod";
import { type Cell, csvLine } from "../../../foundation/http/csv.ts";
import { streamRows } from "../../../foundation/http/response.ts";
import { textField } from "../../../foundation/http/schema-fields.ts";

/** What the routes that read reports are created with. */
export interface QueryContext {
  readonly db: Db;
  readonly clock: Clock;
  readonly rollups: RollupStore;
  readonly records: RecordStore;
  readonly reports: ReportQueryStore;
  /** The caller's domain; throws `not_found` for one that does not exist or is another account's. */
  readonly findDomain: (caller: Caller, id: string) => DomainRow;
}

export const REPORTS_TAG = "DMARC reports";
export const MONITORING_TAG = "DMARC monitoring";
export const DOMAIN_PATH = "/v1/dmarc/domains/:id";
export const domainParams = z.object({ id: idParameter("domain") });
/** What routes that read the reports of a domain have in common. */
export const DOMAIN_REPORTS = { method: "GET", tag: REPORTS_TAG, scope: "dmarc:read", params: domainParams } as const;

/** The name of an exported file: `records-example.com-2026-01-01-2026-01-30.csv`. */
export const exportFileName = (what: string, { domain }: DomainRow, range: DayRange, suffix: string): string =>
  `${what}-${domain.replace(/[^a-z0-9.-]/g, "_")}-${isoDay(range.fromDay)}-${isoDay(range.toDay)}.${suffix}`;

/** The longest range: a little over ten years. */
export const RANGE_DAYS_MAX = 3_660;

/** Whole UTC days, both inclusive; 400 `Invalid query` when the range is longer than `RANGE_DAYS_MAX`. */
export const rangeOf = (requested: RequestedRange, nowMs: number): DayRange =>
  readDayRange(requested, nowMs, RANGE_DAYS_MAX);

/** Rows of one file; for more, the client requests a shorter range, or JSON. */
export const CSV_ROWS_MAX = 100_000;

/** For descriptions of routes. OpenAPI has no parameter called Accept (3.1 §4.8.12.1). */
export const CSV_DESCRIPTION = `With \`Accept: text/csv\` the response is a CSV file with all rows, whatever \`limit\` says, up to ${CSV_ROWS_MAX.toLocaleString("en")}. Cells that a spreadsheet would run as a formula are escaped.`;

/** The CSV of a route, for its declaration. The example is the header row. */
export const csvAlternative = (columns: readonly string[]) => ({
  "text/csv": {
    schema: textField("A header row and one line per row."),
    example: csvLine(columns),
  },
});

/** Streams a CSV file (UTF-8, header row, CRLF), truncated after `CSV_ROWS_MAX` rows. */
export const csvResponse = (
  request: Request,
  name: string,
  file: { readonly columns: readonly string[]; readonly batches: AsyncIterable<ReadonlyArray<readonly Cell[]>> },
): Response =>
  streamRows(request, writeCsv(file.columns, file.batches), {
    "content-type": "text/csv; charset=utf-8",
    "content-disposition": `attachment; filename="${name}"`,
    vary: "accept",
  });

async function* writeCsv(
  columns: readonly string[],
  batches: AsyncIterable<ReadonlyArray<readonly Cell[]>>,
): AsyncGenerator<Uint8Array, void> {
  yield Buffer.from(csvLine(columns));
  let rowsLeft = CSV_ROWS_MAX;
  for await (const batch of batches) {
    const rows = batch.slice(0, rowsLeft);
    rowsLeft -= rows.length;
    yield Buffer.from(rows.map((cells) => csvLine(cells)).join(""));
    if (rowsLeft === 0) return;
  }
}

/** The media type of JSON texts, one a line, each line ended by a line feed. */
export const NDJSON_TYPE = "application/x-ndjson";

/** Streams rows as NDJSON (UTF-8). A stream that fails ends without its last chunk. */
export const ndjsonResponse = (request: Request, name: string, batches: AsyncIterable<readonly unknown[]>): Response =>
  streamRows(request, writeNdjson(batches), {
    "content-type": NDJSON_TYPE,
    "content-disposition": `attachment; filename="${name}"`,
    vary: "accept",
  });

/** Rows as lines of NDJSON, one chunk per batch. */
export async function* writeNdjson(batches: AsyncIterable<readonly unknown[]>): AsyncGenerator<Uint8Array, void> {
  for await (const batch of batches) yield Buffer.from(batch.map((row) => `${JSON.stringify(row)}\n`).join(""));
}
