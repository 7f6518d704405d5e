import { attachment } from "../../foundation/http/content-disposition.ts";
import { streamRows } from "../../foundation/http/response.ts";
import { type ExportFilters, exportRows } from "./job-rows.ts";
import type { JobRow } from "./job-store.ts";
import type { ListStore } from "./list-store.ts";
import { type ExportOptions, isExportedByByte, type ResultsFormat, writeResults } from "./results-csv.ts";

export interface ResultsDownload {
  readonly job: Pick<JobRow, "number" | "id" | "name">;
  readonly format: ResultsFormat;
  readonly filters: ExportFilters;
  readonly options?: ExportOptions;
  /** What is downloaded, in the name of the file: `customers-deliverable.csv`. Default: `results`. */
  readonly part?: string;
}

/** `customers.csv` and `customers` become `customers-results`. */
const fileNameOf = ({ name, id }: ResultsDownload["job"], part: string): string =>
  name === null ? `${part}-${id}` : `${name.replace(/\.(?:csv|tsv|txt|xlsx)$/i, "")}-${part}`;

/** Streams the rows of a job with their results as a CSV, also while the job runs; 503 when too much is being sent. */
export const sendResults = (
  request: Request,
  lists: ListStore,
  { job, format, filters, options = {}, part = "results" }: ResultsDownload,
): Response =>
  streamRows(request, writeResults(format, exportRows(lists, job.number, filters), options), {
    "content-type": isExportedByByte(format, options) ? "text/csv" : "text/csv; charset=utf-8",
    "content-disposition": attachment(fileNameOf(job, part), ".csv"),
  });
