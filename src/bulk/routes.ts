import { Elysia } from "elysia";
import { AppError } from "../base/errors.ts";
import { isId } from "../base/secrets.ts";
import type { Guard } from "../http/guard.ts";
import { streamRows } from "../http/response.ts";
import { attachment } from "../http/content-disposition.ts";
import { readIdempotencyKey } from "../http/idempotency-key.ts";
import { readPlainly, rowsById, sendPage } from "../http/list-page.ts";
import { namesOf, pageParameters, parametersOf, readPage, readParameters } from "../http/query.ts";
import type { JobRow } from "./job-store.ts";
import type { BulkJobs } from "./jobs.ts";
import type { ListStore } from "./list-store.ts";
import { exportRows, itemSource } from "./job-rows.ts";
import { writeResults } from "./results-csv.ts";
import { exportOptionsSchema, itemFiltersSchema, jobFiltersSchema, uploadOptionsSchema } from "./schemas.ts";

export interface BulkRouteDeps {
  readonly guard: Guard;
  readonly bulk: BulkJobs;
  readonly lists: ListStore;
}

const PATH = "/v1/bulk-verifications";

const knownId = (id: string | undefined): string => {
  if (id !== undefined && isId(id)) return id;
  throw new AppError("not_found", { message: "There is no such bulk verification." });
};

/** `customers.csv` and `customers` become `customers-results`. */
const resultsFileName = (name: string | null): string | null =>
  name === null ? null : `${name.replace(/\.(?:csv|tsv|txt|xlsx)$/i, "")}-results`;

const isRowIndex = (text: string): boolean => /^\d{1,9}$/.test(text);

const knownRow = (text: string | undefined): number => {
  if (text !== undefined && isRowIndex(text)) return Number(text);
  throw new AppError("not_found", { message: "The job has no such row." });
};

/** The endpoints of bulk verification. */
export const createBulkRoutes = ({ guard, bulk, lists }: BulkRouteDeps) =>
  new Elysia({ name: "bulk" })
    .use(guard)
    .post(
      PATH,
      async ({ request, caller, set }) => {
        const ordered = await bulk.submit(caller, request, readIdempotencyKey(request));
        if (ordered.kind === "preview") return ordered.preview;
        const { job } = ordered;
        set.status = 202;
        set.headers.location = `${PATH}/${job.id}`;
        return bulk.describe(job);
      },
      { parse: "none", demand: { scope: "bulk:write", query: namesOf(uploadOptionsSchema) } },
    )
    .get(
      PATH,
      async ({ request, caller }) => {
        const page = readPage(request, jobFiltersSchema, isId);
        const read = readPlainly((window) => bulk.list(caller, page.filters, window));
        return sendPage(
          request,
          { name: "bulk_verifications", page },
          rowsById(read, (job: JobRow) => bulk.describe(job)),
        );
      },
      { demand: { scope: "bulk:read", query: pageParameters(jobFiltersSchema) } },
    )
    .get(`${PATH}/:jobId`, async ({ params, caller }) => bulk.describe(bulk.find(caller, knownId(params.jobId))), {
      demand: { scope: "bulk:read" },
    })
    .get(
      `${PATH}/:jobId/items`,
      async ({ request, params, caller }) => {
        const { number } = bulk.find(caller, knownId(params.jobId));
        const page = readPage(request, itemFiltersSchema, isRowIndex);
        return sendPage(request, { name: "emails", page }, itemSource(lists, number, page.filters));
      },
      { demand: { scope: "bulk:read", query: pageParameters(itemFiltersSchema) } },
    )
    .get(
      `${PATH}/:jobId/items/:row/evidence`,
      async ({ params, caller }) => bulk.evidence(caller, knownId(params.jobId), knownRow(params.row)),
      { demand: { scope: "bulk:read" } },
    )
    .get(
      `${PATH}/:jobId/results.csv`,
      async ({ request, params, caller }) => {
        const { number, id, name } = bulk.find(caller, knownId(params.jobId));
        const { bom, defuse, ...filters } = readParameters(parametersOf(request), exportOptionsSchema);
        const options = { bom: bom === undefined ? undefined : bom === "true", defuse: defuse !== "false" };
        const rows = writeResults(bulk.formatOf(number), exportRows(lists, number, filters), options);
        return streamRows(request, rows, {
          "content-type": "text/csv; charset=utf-8",
          "content-disposition": attachment(resultsFileName(name) ?? `results-${id}`, ".csv"),
        });
      },
      { demand: { scope: "bulk:read", query: namesOf(exportOptionsSchema) } },
    )
    .post(
      `${PATH}/:jobId/cancel`,
      async ({ params, caller }) => bulk.describe(await bulk.cancel(caller, knownId(params.jobId))),
      { parse: "none", demand: { scope: "bulk:write" } },
    )
    .post(
      `${PATH}/:jobId/retry`,
      async ({ request, params, caller, set }) => {
        const job = await bulk.retry(caller, knownId(params.jobId), readIdempotencyKey(request));
        set.status = 202;
        return bulk.describe(job);
      },
      { parse: "none", demand: { scope: "bulk:write" } },
    )
    .delete(
      `${PATH}/:jobId`,
      async ({ params, caller, set }) => {
        await bulk.remove(caller, knownId(params.jobId));
        set.status = 204;
      },
      { parse: "none", demand: { scope: "bulk:write" } },
    );
