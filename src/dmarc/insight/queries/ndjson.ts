import { streamRows } from "../../../foundation/http/response.ts";

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
