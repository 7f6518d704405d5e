import { streamRows } from "../../http/response.ts";
import { type Cell, csvLine } from "../../http/csv.ts";

/** Rows of one file; who wants more asks for a shorter range, or for JSON. */
export const CSV_ROWS_MAX = 100_000;

/** What `Accept` gives a media type, 0 to 1, by its name only; null when it is not named (RFC 9110 §12.5.1). */
const qualityOf = (accept: string, type: string): number | null => {
  for (const range of accept.toLowerCase().split(",")) {
    const [name = "", ...parameters] = range.split(";").map((part) => part.trim());
    if (name !== type) continue;
    const q = Number(parameters.find((parameter) => parameter.startsWith("q="))?.slice(2) ?? "1");
    return Number.isNaN(q) ? 1 : q;
  }
  return null;
};

/** The media types of rows that are no JSON document. NDJSON has no registered one; these are in use. */
const ROW_TYPES = { csv: ["text/csv"], ndjson: ["application/x-ndjson", "application/ndjson"] } as const;

/** How a request wants rows: CSV or NDJSON where their type is named and JSON is not liked better, else JSON. */
export const rowFormatOf = (request: Request): "json" | "csv" | "ndjson" => {
  const accept = request.headers.get("accept") ?? "";
  const likes = (types: readonly string[]): number => Math.max(...types.map((type) => qualityOf(accept, type) ?? 0));
  const [csv, ndjson, json] = [likes(ROW_TYPES.csv), likes(ROW_TYPES.ndjson), likes(["application/json"])];
  if (Math.max(csv, ndjson) === 0 || Math.max(csv, ndjson) < json) return "json";
  return csv >= ndjson ? "csv" : "ndjson";
};

/** Whether a request asks for CSV: `text/csv` is named, and JSON is not liked better. */
export const wantsCsv = (request: Request): boolean => rowFormatOf(request) === "csv";

/** A file of CSV (UTF-8, header row, CRLF), written while it is read and cut behind `CSV_ROWS_MAX` rows. */
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
