import { nextTurn } from "../../base/clock.ts";
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

/** Whether a request asks for CSV: `text/csv` is named, and JSON is not liked better. */
export const wantsCsv = (request: Request): boolean => {
  const accept = request.headers.get("accept") ?? "";
  const csv = qualityOf(accept, "text/csv") ?? 0;
  return csv > 0 && csv >= (qualityOf(accept, "application/json") ?? 0);
};

/**
 * A file of CSV (UTF-8, header row, CRLF), written as fast as it is read and cut behind `CSV_ROWS_MAX` rows. When the reader
 * goes away, `batches` is told to return.
 */
export const csvResponse = (
  name: string,
  columns: readonly string[],
  batches: AsyncIterable<ReadonlyArray<readonly Cell[]>>,
): Response => {
  const bytes = new TextEncoder();
  const iterator = batches[Symbol.asyncIterator]();
  let rowsLeft = CSV_ROWS_MAX;
  let isHeadWritten = false;
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (!isHeadWritten) {
          isHeadWritten = true;
          controller.enqueue(bytes.encode(csvLine(columns)));
          return;
        }
        const next = rowsLeft > 0 ? await iterator.next() : null;
        if (next === null || next.done === true) {
          await iterator.return?.();
          controller.close();
          return;
        }
        const rows = next.value.slice(0, rowsLeft);
        rowsLeft -= rows.length;
        controller.enqueue(bytes.encode(rows.map((cells) => csvLine(cells)).join("")));
        await nextTurn();
      },
      async cancel() {
        await iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(stream, {
    headers: {
      "content-type": "text/csv; charset=utf-8",
      "content-disposition": `attachment; filename="${name}"`,
      vary: "accept",
    },
  });
};
