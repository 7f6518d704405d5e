import { z } from "zod";
import type { ListSource } from "../../foundation/http/list-page.ts";
import { beginEvidence, suggestAddress, suggestDomain } from "../../verify/address-evidence.ts";
import type { VerificationEngine } from "../../verify/engine.ts";
import type { Evidence } from "../../verify/evidence.ts";
import { unpackEvidence } from "../../verify/store.ts";
import { VERDICT_OF, type VerificationResult } from "../../verify/result.ts";
import { TEST_PLATFORM } from "../../verify/test-platform.ts";
import type { ListedCells, ListedRow, ListStore } from "./list-store.ts";
import type { ListRowFilter } from "./row-store.ts";
import { type ResultColumns, toResult, toResultJson } from "./result-columns.ts";
import {
  type ExportOptions,
  isExportedByByte,
  type ResultRow,
  type ResultsFormat,
  writeResults,
} from "./results-csv.ts";
import type { ItemFilters } from "./schemas.ts";
import { attachment, streamRows } from "../../foundation/http/response.ts";
import type { JobRow } from "./job-store.ts";
import { cached } from "../../foundation/base/bounded-map.ts";
import { readAddressCell } from "../../foundation/mail/address-in-cell.ts";
import { describeProblem } from "../../foundation/mail/address-problem.ts";

const EXPORTED_AT_ONCE = 500;
/** Rows read at once, which takes a few milliseconds. */
const ROWS_AT_ONCE = 2_000;

const columnsOf = (row: ListedRow): ResultColumns | null => {
  const { subStatus } = row;
  return subStatus === null ? null : { ...row, subStatus };
};

/** The result of a row; null until it is finished. */
export const resultOfRow = (row: ListedRow): VerificationResult | null => {
  const columns = columnsOf(row);
  return columns === null ? null : toResult(columns, row.submittedEmail, row.normalizedEmail);
};

const itemJson = (row: ListedRow): string => {
  const { rowIndex, submittedEmail, normalizedEmail } = row;
  const columns = columnsOf(row);
  const result = columns === null ? "null" : toResultJson(columns, submittedEmail, normalizedEmail);
  return (
    `{"row_index":${rowIndex},"submitted_email":${JSON.stringify(submittedEmail)},` +
    `"normalized_email":${JSON.stringify(normalizedEmail)},"result":${result}}`
  );
};

/** The filters of an export: those of the API, or those of the rows on a page. */
export type ExportFilters = ItemFilters | ListRowFilter;

/** As SQLite does: other letters than those of ASCII stay as they are. */
const lowered = (text: string): string => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

const isWanted = (results: ListRowFilter["results"], { subStatus, normalizedEmail }: ListedRow): boolean => {
  if (results === null) return true;
  if (results === "unfinished") return subStatus === null;
  if (results === "no_address") return normalizedEmail === "";
  return normalizedEmail !== "" && results.includes(subStatus ?? "");
};

const isShown = (row: ListedRow, { results, text, trouble }: ListRowFilter): boolean => {
  const { submittedEmail, normalizedEmail } = row;
  if (trouble !== undefined && row.trouble !== trouble) return false;
  if (!isWanted(results, row)) return false;
  return text === null || lowered(submittedEmail).includes(text) || normalizedEmail.includes(text);
};

const matches = (row: ListedRow, filters: ExportFilters): boolean => {
  if ("results" in filters) return isShown(row, filters);
  const { subStatus } = row;
  if (filters.verdict === undefined && filters.sub_status === undefined) return true;
  if (subStatus === null) return false;
  return (
    (filters.verdict === undefined || VERDICT_OF[subStatus] === filters.verdict) &&
    (filters.sub_status === undefined || subStatus === filters.sub_status)
  );
};

/** The rows of a job that match the filters, in order. */
export const itemSource = (lists: ListStore, job: number, filters: ItemFilters): ListSource<ListedRow> => {
  const isFiltered = filters.verdict !== undefined || filters.sub_status !== undefined;
  const keyOf = ({ rowIndex }: ListedRow): string => String(rowIndex);
  return {
    read(behind, looks, wanted) {
      const rows = lists.rowsBehind(job, Number(behind ?? -1), isFiltered ? Math.min(looks, ROWS_AT_ONCE) : wanted);
      const last = rows.at(-1);
      return { rows: rows.filter((row) => matches(row, filters)), next: last === undefined ? null : keyOf(last) };
    },
    keyOf,
    json: itemJson,
  };
};

const cellsSchema = z.array(z.string());

const cellsOf = (cells: string | null, email: string): string[] =>
  cells === null ? [email] : cellsSchema.parse(JSON.parse(cells));

/** The hints for a row. Triggers of test keys are valid addresses; the test platform has the reason why they are treated as invalid. */
export const rowHints = ({ subStatus, submittedEmail, normalizedEmail }: ListedRow): AddressHints => {
  if (subStatus === null) return NO_HINTS;
  if (subStatus !== "invalid_syntax") return hasSuggestion(normalizedEmail) ? addressHints(submittedEmail) : NO_HINTS;
  const hints = addressHints(submittedEmail);
  if (hints.problem !== null) return hints;
  return { suggestion: null, problem: beginEvidence(submittedEmail.trim(), TEST_PLATFORM.classify).address.problem };
};

/** Tells the first row of each address from the others; a bit for each address. An empty row is no first row. */
const createRepeats = () => {
  let seen = new Uint8Array(1_024);
  return ({ position, normalizedEmail }: ListedCells): boolean => {
    if (normalizedEmail === "") return false;
    const [at, bit] = [position >> 3, 1 << (position & 7)];
    if (at >= seen.length) {
      const larger = new Uint8Array(2 * at);
      larger.set(seen);
      seen = larger;
    }
    const isFirst = ((seen[at] ?? 0) & bit) === 0;
    seen[at] = (seen[at] ?? 0) | bit;
    return isFirst;
  };
};

interface ExportedRows {
  readonly filters?: ExportFilters;
  /** Only the first matching row of each address. */
  readonly isDistinct?: boolean;
}

/** The rows of a job that match the filters, for its export, in batches. A batch may be empty. */
export async function* exportRows(
  lists: ListStore,
  job: number,
  { filters = {}, isDistinct = false }: ExportedRows = {},
): AsyncGenerator<readonly ResultRow[], void> {
  const isFirst = createRepeats();
  for (let after = -1; ;) {
    const rows = lists.cellsBehind(job, after, EXPORTED_AT_ONCE);
    if (rows.length === 0) return;
    after = rows.at(-1)?.rowIndex ?? after;
    const matching = rows.filter((row) => matches(row, filters) && (!isDistinct || isFirst(row)));
    yield matching.map((row) => ({
      cells: cellsOf(row.cells, row.submittedEmail),
      result: resultOfRow(row),
      ...rowHints(row),
    }));
  }
}

export interface EvidenceSource {
  /** The engine of the job's mode. */
  readonly engine: VerificationEngine;
  readonly stored: Uint8Array | undefined;
}

/**
 * The evidence of the address of a row, with the text of the row; incomplete until the address is finished. Null for a row
 * that was verified by a version without evidence of lists.
 */
export const evidenceOfRow = async (row: ListedRow, { engine, stored }: EvidenceSource): Promise<Evidence | null> => {
  const text = row.submittedEmail.trim();
  const begun = engine.beginCell(text);
  if (stored !== undefined) {
    const { address, ...rest } = unpackEvidence(stored);
    return { ...rest, address: { ...address, submitted: text, read_as: begun.address.read_as } };
  }
  if (row.subStatus === null) return begun;
  const { evidence } = engine.conclude(await engine.reproduce(begun), row.verifiedAtMs);
  return evidence.conclusion?.sub_status === row.subStatus ? evidence : null;
};

export interface DownloadOptions extends ExportOptions {
  /** Only the first row of each address, and no empty row. Default false; a preset implies it. */
  readonly distinct?: boolean | undefined;
}

export const isDistinctDownload = ({ distinct, preset }: DownloadOptions): boolean => distinct ?? preset !== undefined;

interface ResultsDownload {
  readonly job: Pick<JobRow, "number" | "id" | "name">;
  readonly format: ResultsFormat;
  readonly filters: ExportFilters;
  readonly options?: DownloadOptions;
  /** What is downloaded, in the name of the file: `customers-deliverable.csv`. Default: `results`. */
  readonly part?: string;
}

/** `customers.csv` and `customers` become `customers-results`. */
export const fileNameOf = ({ name, id }: Pick<JobRow, "id" | "name">, part: string): string =>
  name === null ? `${part}-${id}` : `${name.replace(/\.(?:csv|tsv|txt|xlsx)$/i, "")}-${part}`;

/** Streams the rows of a job with their results as a CSV, also while the job runs; 503 when too much is being sent. */
export const sendResults = (
  request: Request,
  lists: ListStore,
  { job, format, filters, options = {}, part = "results" }: ResultsDownload,
): Response => {
  const rows = exportRows(lists, job.number, { filters, isDistinct: isDistinctDownload(options) });
  return streamRows(request, writeResults(format, rows, options), {
    "content-type": isExportedByByte(format, options) ? "text/csv" : "text/csv; charset=utf-8",
    "content-disposition": attachment(fileNameOf(job, part), ".csv"),
  });
};

/** What can be said about the text of a cell without any lookup. */
interface AddressHints {
  /** The address that was probably meant (`did_you_mean`). */
  readonly suggestion: string | null;
  /** Why the cell does not hold an address, as a sentence. */
  readonly problem: string | null;
}

const NO_HINTS: AddressHints = { suggestion: null, problem: null };

/** Domains in the cache; far fewer are frequent in a list of a million rows. */
const DOMAINS_CACHED_MAX = 10_000;
const hasSuggestedDomain = cached(DOMAINS_CACHED_MAX, (domain) => suggestDomain(domain) !== null);

/** Whether there is a suggestion for addresses of this domain. Cached: an export asks for every row. */
const hasSuggestion = (normalizedEmail: string): boolean =>
  hasSuggestedDomain(normalizedEmail.slice(normalizedEmail.lastIndexOf("@") + 1));

/** The hints for a cell. Derived from its text, so nothing is stored. */
export const addressHints = (submittedEmail: string): AddressHints => {
  const read = readAddressCell(submittedEmail);
  if (!read.ok) return { suggestion: null, problem: describeProblem(read.error) };
  return { suggestion: suggestAddress(read.value.address), problem: null };
};
