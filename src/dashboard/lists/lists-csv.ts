import type { JobQueries } from "../../bulk/job-queries.ts";
import { isoTime } from "../../foundation/base/clock.ts";
import { attachment } from "../../foundation/http/content-disposition.ts";
import { csvLine } from "../../foundation/http/csv.ts";
import { streamRows } from "../../foundation/http/response.ts";
import type { Viewer } from "../visit.ts";
import { type ListUseCases, listFacts } from "./list-use-cases.ts";
import type { ListFacts } from "./list-table.tsx";

const COLUMNS = [
  ...["id", "name", "label", "status", "started_by", "started_at", "ended_at", "rows", "rows_without_address"],
  ...["addresses", "addresses_finished", "deliverable", "risky", "undeliverable", "credits_charged"],
];
const LISTS_AT_ONCE = 250;

const lineOf = ({ job, verdicts, startedBy }: ListFacts): string =>
  csvLine([
    ...[job.id, job.name, job.source, job.status, startedBy, isoTime(job.createdAtMs)],
    ...[job.completedAtMs === null ? null : isoTime(job.completedAtMs), job.rowsTotal, job.rowsEmpty],
    ...[job.addressesTotal, job.addressesFinished],
    ...[verdicts.deliverable, verdicts.risky, verdicts.undeliverable, job.creditsCharged],
  ]);

type Filters = Parameters<JobQueries["search"]>[1];

async function* csvOfLists(useCases: ListUseCases, { caller }: Viewer, filters: Filters) {
  yield Buffer.from(csvLine(COLUMNS));
  let before: string | null = null;
  do {
    const { rows, next } = await useCases.queries.search(caller, filters, { before, limit: LISTS_AT_ONCE });
    yield Buffer.from(rows.map((job) => lineOf(listFacts(useCases, job))).join(""));
    before = next;
  } while (before !== null);
}

/** The lists of an account that pass the filters, newest first, as a CSV. */
export const sendLists = (useCases: ListUseCases, request: Request, viewer: Viewer, filters: Filters): Response =>
  streamRows(request, csvOfLists(useCases, viewer, filters), {
    "content-type": "text/csv; charset=utf-8",
    "content-disposition": attachment("lists", ".csv"),
  });
