import { z } from "zod";
import { AppError } from "../../foundation/base/errors.ts";
import { ROW_CHOICES, resultsWanted } from "../../bulk/job-queries.ts";
import type { JobRow } from "../../bulk/results/job-store.ts";
import { resultOfRow, rowHints } from "../../bulk/results/job-rows.ts";
import { listTitle } from "../../bulk/job-attention.ts";
import { SUB_STATUSES, UNSETTLED } from "../../verify/result.ts";
import { type PageRoute, page } from "../page.ts";
import type { View, Viewer } from "../visit.ts";
import { type Confirmation, CONFIRMATIONS } from "./list-page-props.ts";
import { AddressListPage } from "./list-page.tsx";
import { type ListUseCases, listFacts } from "./list-use-cases.ts";
import { searchTextSchema } from "./lists-view.tsx";
import { RowPage } from "./row-page.tsx";

const ROWS_PER_PAGE = 50;

export const listParams = z.object({ id: z.string() });

const rowIndexText = z
  .string()
  .regex(/^\d{1,9}$/)
  .transform(Number);

const rowsQuery = z.object({
  show: z.enum(ROW_CHOICES).optional(),
  reason: z.enum(SUB_STATUSES).optional(),
  q: searchTextSchema.optional(),
  order: z.enum(["first", "last"]).default("first"),
  cursor: rowIndexText.optional(),
  confirm: z.enum(CONFIRMATIONS).optional(),
});
type RowsQuery = z.output<typeof rowsQuery>;

const downloadQuery = rowsQuery.pick({ show: true, reason: true });

/** What is asked; null when the state of the list does not allow it any more. */
const confirmationOf = async (
  { queries }: ListUseCases,
  job: JobRow,
  kind: RowsQuery["confirm"],
): Promise<Confirmation | null> => {
  const isOpen = job.status === "queued" || job.status === "running";
  if (kind === "cancel") return isOpen ? { kind } : null;
  if (kind === "delete") return isOpen ? null : { kind };
  if (kind !== "retry" || job.status !== "completed") return null;
  const addresses = await queries.unsettled(job);
  return addresses === 0 ? null : { kind, addresses, available: queries.availableCredits(job) };
};

/** The rows that a page shows. */
const rowsOf = async ({ queries }: ListUseCases, job: JobRow, query: RowsQuery) => {
  const { show, reason, q, order, cursor } = query;
  const filter = { results: resultsWanted(show, reason), text: q ?? null };
  const { rows, next } = await queries.rows(job, filter, { behind: cursor ?? null, order, limit: ROWS_PER_PAGE });
  return {
    ...{
      jobId: job.id,
      filters: { show, reason, q, order },
      cursor: cursor === undefined ? undefined : String(cursor),
    },
    ...{ next: next === null ? null : String(next), hasOpenRows: job.rowsFinished < job.rowsTotal },
    rows: rows.map((row) => ({ ...row, suggestion: rowHints(row).suggestion })),
  };
};

const isUnsettled = (subStatus: string): boolean => UNSETTLED.some((one) => one === subStatus);

const viewList = async (useCases: ListUseCases, viewer: Viewer, id: string, query: RowsQuery): Promise<View> => {
  const { bulk, queries } = useCases;
  const job = bulk.find(viewer.caller, id);
  const { sub_statuses, format, credits } = bulk.describe(job);
  const reasons = Object.entries(sub_statuses)
    .map(([subStatus, rows]) => ({ subStatus, rows: rows ?? 0 }))
    .toSorted((a, b) => b.rows - a.rows);
  const props = {
    ...listFacts(useCases, job),
    ...{ reasons, format, credits, isTest: viewer.mode === "test", pace: queries.pace(job) },
    unsettledRows: reasons.reduce((sum, { subStatus, rows }) => sum + (isUnsettled(subStatus) ? rows : 0), 0),
    confirm: await confirmationOf(useCases, job, query.confirm),
    rows: { ...(await rowsOf(useCases, job, query)), reasons: reasons.map(({ subStatus }) => subStatus) },
  };
  return { title: listTitle(job.name), section: "lists", body: <AddressListPage {...props} /> };
};

/** The evidence of a row; null when it has expired. */
const evidenceOf = async ({ bulk }: ListUseCases, viewer: Viewer, id: string, row: number) => {
  try {
    return await bulk.evidence(viewer.caller, id, row);
  } catch (error) {
    if (error instanceof AppError && error.code === "not_found") return null;
    throw error;
  }
};

const viewRow = async (
  useCases: ListUseCases,
  viewer: Viewer,
  { id, row: index }: { readonly id: string; readonly row: number },
): Promise<View> => {
  const job = useCases.bulk.find(viewer.caller, id);
  const row = useCases.queries.row(job, index);
  const props = { job, row, result: resultOfRow(row), evidence: await evidenceOf(useCases, viewer, id, index) };
  return { title: `Row ${index + 1}, ${listTitle(job.name)}`, section: "lists", body: <RowPage {...props} /> };
};

/** One list, its rows one by one, and its results as a file. */
export const createListViews = (useCases: ListUseCases): PageRoute[] => {
  const { bulk, queries } = useCases;
  return [
    page({ path: "/lists/:id", params: listParams, query: rowsQuery }, ({ viewer, params, query }) =>
      viewList(useCases, viewer, params.id, query),
    ),
    page(
      { path: "/lists/:id/results.csv", params: listParams, query: downloadQuery },
      ({ request, viewer, params, query: { show, reason } }) => {
        const job = bulk.find(viewer.caller, params.id);
        return queries.download(request, job, {
          results: resultsWanted(show, reason),
          part: reason ?? show ?? "results",
        });
      },
    ),
    page({ path: "/lists/:id/rows/:row", params: listParams.extend({ row: rowIndexText }) }, ({ viewer, params }) =>
      viewRow(useCases, viewer, params),
    ),
  ];
};
