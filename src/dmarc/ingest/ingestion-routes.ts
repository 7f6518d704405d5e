import { AppError } from "../../base/errors.ts";
import { readWindows } from "../../base/walk.ts";
import type { Clock } from "../../base/clock.ts";
import type { Caller } from "../../http/guard.ts";
import { readPlainly, rowsById, sendPage } from "../../http/list-page.ts";
import { sendBytes } from "../../http/response.ts";
import { handle, type HandledRoute } from "../../http/route.ts";
import type { DomainStore } from "../domains/domain-store.ts";
import { suffixOf } from "../report/payload.ts";
import type { DiskReserve } from "./disk-reserve.ts";
import {
  GET_INGESTION,
  GET_INGESTION_RAW,
  LIST_INGESTIONS,
  RETRY_INGESTION,
  RETRY_INGESTIONS,
  UPLOAD_REPORTS,
} from "./ingestion-operations.ts";
import type { IngestionRow } from "./ingestion-store.ts";
import { ingestionView } from "./ingestion-schemas.ts";
import type { Ingestions } from "./ingestions.ts";
import type { IncomingReport } from "./report-intake.ts";
import type { UploadedFile } from "./report-upload.ts";
import { createUploadGate } from "./upload-gate.ts";

export interface IngestionRouteParts {
  readonly ingestions: Ingestions;
  readonly domains: DomainStore;
  readonly reserve: Pick<DiskReserve, "isLow">;
}

const RETRY_AFTER_S = 300;

/** What the files of one upload may unpack to in all. */
export const UPLOAD_UNPACKED_BYTES_MAX = 512 * 1024 * 1024;

/** Serves uploads of reports and the list of ingestions. */
export const createIngestionRoutes = (
  { clock }: { readonly clock: Clock },
  parts: IngestionRouteParts,
): readonly HandledRoute[] => {
  const view = (row: IngestionRow) => ingestionView(row, (number) => parts.domains.findByNumber(number)?.id ?? null);
  return [uploadRoute(clock, parts, view), ...listRoutes(parts, view), ...retryRoutes(parts, view)];
};

type View = (row: IngestionRow) => ReturnType<typeof ingestionView>;

const uploadRoute = (clock: Clock, { ingestions, reserve }: IngestionRouteParts, view: View): HandledRoute => {
  const upload = createUploadGate(clock);
  return handle(UPLOAD_REPORTS, ({ request, caller }) =>
    upload(request, caller.accountId, async (files) => {
      throwIfLow(reserve, files);
      const incoming = files.map((file) => incomingFile(caller, file));
      const rows = await ingestions.ingestFiles(incoming, UPLOAD_UNPACKED_BYTES_MAX);
      return { ingestions: rows.map(view) };
    }),
  );
};

const listRoutes = ({ ingestions, domains }: IngestionRouteParts, view: View): readonly HandledRoute[] => [
  handle(LIST_INGESTIONS, ({ query, caller, request }) => {
    const {
      limit,
      cursor,
      domain_id,
      created_after: receivedFromMs,
      created_before: receivedBeforeMs,
      ...rest
    } = query;
    const domain = domain_id === undefined ? undefined : domains.findById(domain_id);
    const isOwn = domain?.accountId === caller.accountId && domain.mode === caller.mode;
    const read =
      domain_id === undefined || isOwn
        ? readWindows(ingestions.list(caller, { ...rest, domain, receivedFromMs, receivedBeforeMs }))
        : readPlainly<IngestionRow>(() => []);
    return sendPage(request, { name: "ingestions", page: { limit, cursor } }, rowsById(read, view));
  }),

  handle(GET_INGESTION, ({ params, caller }) => view(ingestions.find(caller, params.id))),

  handle(GET_INGESTION_RAW, ({ request, params: { id }, caller }) => {
    const bytes = ingestions.raw(caller, id);
    const suffix = suffixOf(bytes);
    return sendBytes(request, bytes, {
      "content-type": suffix === ".eml" ? "message/rfc822" : "application/octet-stream",
      "content-disposition": `attachment; filename="${id}${suffix}"`,
      "x-content-type-options": "nosniff",
    });
  }),
];

const retryRoutes = ({ ingestions }: IngestionRouteParts, view: View): readonly HandledRoute[] => [
  handle(RETRY_INGESTION, async ({ params, body, caller, set }) => {
    const row = await ingestions.retry(caller, params.id, { isAccepted: body.accept_unauthenticated === true });
    set.status = 202;
    set.headers.location = `${LIST_INGESTIONS.path}/${row.id}`;
    return view(row);
  }),

  handle(RETRY_INGESTIONS, async ({ caller, set }) => {
    set.status = 202;
    return { retried: await ingestions.retryAll(caller) };
  }),
];

const incomingFile = ({ accountId, mode }: Caller, { name, bytes }: UploadedFile): IncomingReport => ({
  ...{ accountId, mode, domain: null, via: "http", name, bytes },
  ...{ client: null, helo: null, mailFrom: null },
});

/** Before anything is stored. */
const throwIfLow = (reserve: Pick<DiskReserve, "isLow">, files: readonly UploadedFile[]): void => {
  if (!reserve.isLow(files.reduce((sum, { bytes }) => sum + bytes.byteLength, 0))) return;
  const message = "Report ingestion is paused: low disk space. Try again later.";
  throw new AppError("unavailable", { message, headers: { "retry-after": String(RETRY_AFTER_S) } });
};
