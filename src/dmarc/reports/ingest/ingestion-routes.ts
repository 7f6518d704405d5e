import { rowsById, sendPage } from "../../../foundation/http/list-page.ts";
import { sendBytes } from "../../../foundation/http/response.ts";
import { handle, type HandledRoute } from "../../../foundation/http/route.ts";
import {
  GET_INGESTION,
  GET_INGESTION_RAW,
  LIST_INGESTIONS,
  RETRY_INGESTION,
  RETRY_INGESTIONS,
  UPLOAD_REPORTS,
} from "./ingestion-operations.ts";
import type { IngestionReader } from "./ingestion-reader.ts";
import type { Ingestions } from "./ingestions.ts";
import type { ReportUploads } from "./report-uploads.ts";

export interface IngestionRouteParts {
  readonly ingestions: Ingestions;
  readonly reader: IngestionReader;
  readonly uploads: ReportUploads;
}

/** Serves uploads of reports and the list of ingestions. */
export const createIngestionRoutes = (parts: IngestionRouteParts): readonly HandledRoute[] => [
  handle(UPLOAD_REPORTS, async ({ request, caller }) => {
    const rows = await parts.uploads.upload(request, caller);
    return { ingestions: rows.map((row) => parts.reader.view(row)) };
  }),
  ...listRoutes(parts.reader),
  ...retryRoutes(parts),
];

const listRoutes = (reader: IngestionReader): readonly HandledRoute[] => [
  handle(LIST_INGESTIONS, ({ query, caller, request }) => {
    const {
      limit,
      cursor,
      domain_id: domainId,
      created_after: receivedFromMs,
      created_before: receivedBeforeMs,
      ...rest
    } = query;
    const read = reader.list(caller, { ...rest, domainId, receivedFromMs, receivedBeforeMs });
    const rows = rowsById(read, (row) => reader.view(row));
    return sendPage(request, { name: "ingestions", page: { limit, cursor } }, rows);
  }),

  handle(GET_INGESTION, ({ params, caller }) => reader.find(caller, params.id)),

  handle(GET_INGESTION_RAW, ({ request, params: { id }, caller }) => {
    const { bytes, contentType, fileName } = reader.raw(caller, id);
    return sendBytes(request, bytes, {
      "content-type": contentType,
      "content-disposition": `attachment; filename="${fileName}"`,
      "x-content-type-options": "nosniff",
    });
  }),
];

const retryRoutes = ({ ingestions, reader }: IngestionRouteParts): readonly HandledRoute[] => [
  handle(RETRY_INGESTION, async ({ params, body, caller, set }) => {
    const row = await ingestions.retry(caller, params.id, { isAccepted: body.accept_unauthenticated === true });
    set.status = 202;
    set.headers.location = `${LIST_INGESTIONS.path}/${row.id}`;
    return reader.view(row);
  }),

  handle(RETRY_INGESTIONS, async ({ caller, set }) => {
    set.status = 202;
    return { retried: await ingestions.retryAll(caller) };
  }),
];
