import type { Guard } from "../foundation/http/guard.ts";
import { readById } from "../foundation/base/walk.ts";
import { rowsById, sendPage } from "../foundation/http/list-page.ts";
import { handle, serveRoutes } from "../foundation/http/route.ts";
import { itemSource, sendResults } from "./results/job-rows.ts";
import type { JobRow } from "./results/job-store.ts";
import { comparisonView, type ListComparisons, sendChanges } from "./comparisons.ts";
import type { BulkJobs } from "./jobs.ts";
import type { ListStore } from "./results/list-store.ts";
import {
  CANCEL_BULK_VERIFICATION,
  COMPARE_BULK_VERIFICATIONS,
  CREATE_BULK_VERIFICATION,
  DELETE_BULK_VERIFICATION,
  GET_BULK_CHANGES,
  GET_BULK_ITEM_EVIDENCE,
  GET_BULK_RESULTS,
  GET_BULK_VERIFICATION,
  LIST_BULK_ITEMS,
  LIST_BULK_VERIFICATIONS,
  RETRY_BULK_VERIFICATION,
} from "./operations.ts";

export interface BulkRouteOptions {
  readonly guard: Guard;
  readonly bulk: BulkJobs;
  readonly lists: ListStore;
  readonly comparisons: ListComparisons;
}

/** Serves the routes of bulk verification. */
export const createBulkRoutes = ({ guard, bulk, lists, comparisons }: BulkRouteOptions) =>
  serveRoutes(guard, [...jobRoutes(bulk), ...resultRoutes(bulk, lists), ...comparisonRoutes(comparisons)]);

/** A switch of a query; undefined: the default. */
const isOn = (value: "true" | "false" | undefined): boolean | undefined =>
  value === undefined ? undefined : value === "true";

const jobRoutes = (bulk: BulkJobs) => [
  handle(CREATE_BULK_VERIFICATION, async ({ request, headers, caller, set }) => {
    const submitted = await bulk.submit(caller, request, headers["idempotency-key"]);
    if (submitted.kind === "preview") return submitted.preview;
    set.status = 202;
    set.headers.location = `${CREATE_BULK_VERIFICATION.path}/${submitted.job.id}`;
    return bulk.describe(submitted.job);
  }),

  handle(LIST_BULK_VERIFICATIONS, ({ request, query, caller }) => {
    const { limit, cursor, ...filters } = query;
    const read = readById((window) => bulk.list(caller, filters, window));
    const rows = rowsById(read, (job: JobRow) => bulk.describe(job));
    return sendPage(request, { name: "bulk_verifications", page: { limit, cursor } }, rows);
  }),

  handle(GET_BULK_VERIFICATION, ({ params, caller }) => bulk.describe(bulk.find(caller, params.jobId))),

  handle(CANCEL_BULK_VERIFICATION, async ({ params, caller }) =>
    bulk.describe(await bulk.cancel(caller, params.jobId)),
  ),

  handle(RETRY_BULK_VERIFICATION, async ({ params, headers, caller, set }) => {
    const job = await bulk.retry(caller, params.jobId, headers["idempotency-key"]);
    set.status = 202;
    return bulk.describe(job);
  }),

  handle(DELETE_BULK_VERIFICATION, async ({ params, caller, set }) => {
    await bulk.remove(caller, params.jobId);
    set.status = 204;
  }),
];

const comparisonRoutes = (comparisons: ListComparisons) => [
  handle(COMPARE_BULK_VERIFICATIONS, async ({ params, query, caller }) =>
    comparisonView(await comparisons.compare(caller, params.jobId, query.with)),
  ),

  handle(GET_BULK_CHANGES, async ({ request, params, query, caller }) => {
    const comparison = await comparisons.compare(caller, params.jobId, query.with);
    return sendChanges(request, comparisons, { comparison, change: query.change });
  }),
];

const resultRoutes = (bulk: BulkJobs, lists: ListStore) => [
  handle(LIST_BULK_ITEMS, ({ request, params, query, caller }) => {
    const { number } = bulk.find(caller, params.jobId);
    const { limit, cursor, ...filters } = query;
    return sendPage(request, { name: "emails", page: { limit, cursor } }, itemSource(lists, number, filters));
  }),

  handle(GET_BULK_ITEM_EVIDENCE, ({ params, caller }) => bulk.evidence(caller, params.jobId, params.row)),

  handle(GET_BULK_RESULTS, ({ request, params, query, caller }) => {
    const job = bulk.find(caller, params.jobId);
    const { verdict, sub_status, bom, defuse, clean, distinct, ...rest } = query;
    const filters = { verdict, sub_status };
    const options = { ...rest, bom: isOn(bom), defuse: isOn(defuse), clean: isOn(clean), distinct: isOn(distinct) };
    return sendResults(request, lists, { job, format: bulk.formatOf(job.number), filters, options });
  }),
];
