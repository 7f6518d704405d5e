import { streamRows } from "../../foundation/http/response.ts";

const encoder = new TextEncoder();

async function* encoded(lines: AsyncGenerator<string>): AsyncGenerator<Uint8Array> {
  for await (const text of lines) yield encoder.encode(text);
}

/** A CSV file, sent as its lines are read. */
export const csvFile = (request: Request, name: string, lines: AsyncGenerator<string>): Response =>
  streamRows(request, encoded(lines), {
    "content-type": "text/csv; charset=utf-8",
    "content-disposition": `attachment; filename="${name.replace(/[^A-Za-z0-9._-]+/g, "_")}"`,
  });
