import { Elysia } from "elysia";
import type { Clock } from "../../base/clock.ts";
import { readWindows } from "../../base/walk.ts";
import { AppError } from "../../base/errors.ts";
import { isId } from "../../base/secrets.ts";
import type { Caller, Guard } from "../../http/guard.ts";
import { readOptionalJson } from "../../http/body.ts";
import { sendBytes } from "../../http/response.ts";
import { readPlainly, rowsById, sendPage } from "../../http/list-page.ts";
import { pageParameters, readPage } from "../../http/query.ts";
import type { DomainStore } from "../domains/domain-store.ts";
import type { DiskReserve } from "./disk-reserve.ts";
import { ingestionFiltersSchema, retrySchema } from "./ingestion-schemas.ts";
import type { IngestionFilters, IngestionRow } from "./ingestion-store.ts";
import { ingestionView } from "./ingestion-view.ts";
import type { Ingestions } from "./ingestions.ts";
import { suffixOf } from "../report/payload.ts";
import type { UploadedFile } from "./report-upload.ts";
import { createUploadGate } from "./upload-gate.ts";

export interface IngestionRouteDeps {
  readonly guard: Guard;
  readonly ingestions: Ingestions;
  readonly domains: DomainStore;
  readonly reserve: Pick<DiskReserve, "isLow">;
  readonly clock: Clock;
}

const RETRY_AFTER_S = 300;

/** What the files of one upload may unpack to in all. */
export const UPLOAD_UNPACKED_BYTES_MAX = 512 * 1024 * 1024;

const REPORTS = "/v1/dmarc/reports";
const PATH = "/v1/dmarc/ingestions";

const knownId = (id: string): string => {
  if (isId(id)) return id;
  throw new AppError("not_found", { message: "There is no such ingestion." });
};

const incomingOf = ({ accountId, mode }: Caller, { name, bytes }: UploadedFile) => {
  const nobody = { client: null, helo: null, mailFrom: null };
  return { accountId, mode, domain: null, via: "http" as const, name, bytes, ...nobody };
};

/** The endpoints of what comes in: uploads of reports, and the list of all that came (contract §6). */
export const createIngestionRoutes = ({ guard, ingestions, domains, reserve, clock }: IngestionRouteDeps) => {
  const takeUpload = createUploadGate(clock);
  const read = { demand: { scope: "dmarc:read" } } as const;
  const write = { parse: "none", demand: { scope: "dmarc:write" } } as const;

  /** Before anything is stored. */
  const refuseWhenLow = (files: readonly UploadedFile[]): void => {
    if (!reserve.isLow(files.reduce((sum, { bytes }) => sum + bytes.byteLength, 0))) return;
    const message = "Report ingestion is paused: the service is short of disk space. Try again later.";
    throw new AppError("unavailable", { message, headers: { "retry-after": String(RETRY_AFTER_S) } });
  };

  const view = (row: IngestionRow) => ingestionView(row, (number) => domains.findByNumber(number)?.id ?? null);

  /** The filters as the store knows them; null when they name a domain that the caller does not have. */
  const filtersOf = (
    { accountId, mode }: Caller,
    filters: ReturnType<typeof ingestionFiltersSchema.parse>,
  ): IngestionFilters | null => {
    const { domain_id, created_after: receivedFromMs, created_before: receivedBeforeMs, ...rest } = filters;
    if (domain_id === undefined) return { ...rest, receivedFromMs, receivedBeforeMs };
    const domain = domains.findById(domain_id);
    if (domain?.accountId !== accountId || domain.mode !== mode) return null;
    return { ...rest, receivedFromMs, receivedBeforeMs, domain };
  };

  return new Elysia({ name: "dmarc-ingestions" })
    .use(guard)
    .post(
      REPORTS,
      ({ request, caller }) =>
        takeUpload(request, caller.accountId, async (files) => {
          refuseWhenLow(files);
          const incoming = files.map((file) => incomingOf(caller, file));
          const rows = await ingestions.ingestFiles(incoming, UPLOAD_UNPACKED_BYTES_MAX);
          return { ingestions: rows.map(view) };
        }),
      write,
    )
    .get(
      PATH,
      async ({ request, caller }) => {
        const page = readPage(request, ingestionFiltersSchema, isId);
        const filters = filtersOf(caller, page.filters);
        const read =
          filters === null ? readPlainly<IngestionRow>(() => []) : readWindows(ingestions.list(caller, filters));
        return sendPage(request, { name: "ingestions", page }, rowsById(read, view));
      },
      { demand: { scope: "dmarc:read", query: pageParameters(ingestionFiltersSchema) } },
    )
    .get(`${PATH}/:id`, async ({ params, caller }) => view(ingestions.find(caller, knownId(params.id))), read)
    .get(
      `${PATH}/:id/raw`,
      async ({ request, params, caller }) => {
        const id = knownId(params.id);
        const bytes = ingestions.raw(caller, id);
        const suffix = suffixOf(bytes);
        return sendBytes(request, bytes, {
          "content-type": suffix === ".eml" ? "message/rfc822" : "application/octet-stream",
          "content-disposition": `attachment; filename="${id}${suffix}"`,
          "x-content-type-options": "nosniff",
        });
      },
      read,
    )
    .post(
      `${PATH}/:id/retry`,
      async ({ request, params, caller, set }) => {
        const { accept_unauthenticated: isAccepted = false } = await readOptionalJson(request, retrySchema);
        const row = await ingestions.retry(caller, knownId(params.id), { isAccepted });
        set.status = 202;
        set.headers.location = `${PATH}/${row.id}`;
        return view(row);
      },
      write,
    )
    .post(
      `${PATH}/retry`,
      async ({ caller, set }) => {
        set.status = 202;
        return { retried: await ingestions.retryAll(caller) };
      },
      write,
    );
};
