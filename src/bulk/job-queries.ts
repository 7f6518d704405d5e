import type { AttentionItem } from "../foundation/base/attention.ts";
import { AppError } from "../foundation/base/errors.ts";
import { readById, walk, type WalkPage } from "../foundation/base/walk.ts";
import type { CreditHolds } from "../accounts/billing/store.ts";
import { sumBy } from "../foundation/base/sums.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import { SUB_STATUSES, type SubStatus, UNSETTLED, VERDICT_OF } from "../verify/result.ts";
import { attentionOfLists, listTitle } from "./attention.ts";
import type { ListDrafts } from "./arrival/drafts.ts";
import { countUnsettled } from "./run/job-changes.ts";
import type { JobOwner, JobRow, JobStore, SubStatusCount } from "./results/job-store.ts";
import type { ListStore } from "./results/list-store.ts";
import {
  countMatching,
  type ListRowFilter,
  type RowStore,
  type RowWindow,
  type WaitingRow,
} from "./results/row-store.ts";
import type { BulkRunner } from "./run/runner.ts";
import { type ShownTrouble, shownTroubles, type TroubleStore } from "./results/host-troubles.ts";
import { exportedColumns } from "./results/results-csv.ts";
import { type DownloadOptions, isDistinctDownload, sendResults } from "./results/job-rows.ts";
import type { JobFilters } from "./results/schemas.ts";

/** Rows looked at in one step of a walk: a few milliseconds. */
const ROWS_PER_STEP = 5_000;
const JOBS_PER_STEP = 1_000;
/** The newest jobs, among which failed and completed ones are looked for. */
const NEWEST_JOBS = 100;

/** Which rows of a list a page shows. */
export const ROW_CHOICES = [
  "deliverable",
  "catch_all",
  "other_risky",
  "risky",
  "undeliverable",
  "unsettled",
  "unfinished",
  "no_address",
] as const;
export type RowChoice = (typeof ROW_CHOICES)[number];

/** The groups of a result: each finished row with an address is in one of them. */
export const ROW_GROUPS = ["deliverable", "catch_all", "other_risky", "undeliverable", "unsettled"] as const;
export type RowGroup = (typeof ROW_GROUPS)[number];

export const groupOf = (subStatus: SubStatus): RowGroup => {
  if (UNSETTLED.some((one) => one === subStatus)) return "unsettled";
  if (subStatus === "catch_all") return subStatus;
  const verdict = VERDICT_OF[subStatus];
  return verdict === "risky" ? "other_risky" : verdict;
};

/** What people call each group. */
export const GROUP_LABELS: Readonly<Record<RowGroup, string>> = {
  deliverable: "Deliverable",
  catch_all: "Catch-all",
  other_risky: "Other risky",
  undeliverable: "Undeliverable",
  unsettled: "Unsettled",
};

/** Rows by sub_status, summed up by group. */
export const countGroups = (counts: readonly SubStatusCount[]): Readonly<Record<RowGroup, number>> => {
  const groups = { deliverable: 0, catch_all: 0, other_risky: 0, undeliverable: 0, unsettled: 0 };
  for (const { subStatus, rows } of counts) {
    const known = SUB_STATUSES.find((one) => one === subStatus);
    if (known !== undefined) groups[groupOf(known)] += rows;
  }
  return groups;
};

const resultsOf = (choice: RowGroup | "risky"): readonly SubStatus[] =>
  SUB_STATUSES.filter((one) => (choice === "risky" ? VERDICT_OF[one] === choice : groupOf(one) === choice));

/** The sub_statuses that a choice and a sub_status have in common; null: every row. */
export const resultsWanted = (
  choice: RowChoice | undefined,
  subStatus: SubStatus | undefined,
): ListRowFilter["results"] => {
  if (choice === undefined) return subStatus === undefined ? null : [subStatus];
  if (choice === "unfinished" || choice === "no_address") return subStatus === undefined ? choice : [];
  return resultsOf(choice).filter((one) => subStatus === undefined || one === subStatus);
};

/** How an unfinished job is getting on in this process. */
export interface JobPace {
  /** Addresses per second in the last minute; null until that is known. */
  readonly perSecond: number | null;
  /** Addresses that wait for their next attempt: greylisting or a temporary failure. */
  readonly waiting: number;
  /** When the next of them is due, by the wall clock; null when none waits. */
  readonly nextAttemptMs: number | null;
}

/** A list that is being verified, for a summary. */
export interface RunningList {
  readonly id: string;
  readonly title: string;
  readonly addresses: { readonly total: number; readonly finished: number };
  readonly secondsLeft: number | null;
}

export interface JobQueriesOptions {
  readonly jobs: JobStore;
  readonly rows: RowStore;
  readonly lists: ListStore;
  readonly troubles: TroubleStore;
  readonly runner: BulkRunner;
  readonly drafts: Pick<ListDrafts, "waiting">;
  readonly credits: CreditHolds;
}

interface RowPage extends Pick<RowWindow, "order" | "limit"> {
  /** The index of the row behind which the page begins; null: the first in this order. */
  readonly behind: number | null;
}

/** Reads of jobs for people: search, pages of rows in both directions, pace, what needs attention. */
export class JobQueries {
  constructor(
    private readonly runtime: Pick<Runtime, "clock">,
    private readonly deps: JobQueriesOptions,
  ) {}

  /** Jobs, newest first, whose name contains a text, older than the id `before`. */
  search(
    owner: JobOwner,
    filters: JobFilters & { readonly text?: string | null },
    { before, limit }: { readonly before: string | null; readonly limit: number },
  ): Promise<WalkPage<JobRow, string | null>> {
    const { jobs } = this.deps;
    const read = readById<JobRow>(
      (window) => jobs.list(owner, filters, window),
      (behind, places) => jobs.idBehind(owner, behind, places),
    );
    const source = { read, keyOf: ({ id }: JobRow) => id, step: JOBS_PER_STEP };
    return walk<JobRow, string | null>(source, { before, limit, account: owner.accountId });
  }

  /** The rows of a job that pass, from the first or the last on. A page may end early when few pass: it has a next one. */
  rows(
    job: JobRow,
    filter: ListRowFilter,
    { behind, order, limit }: RowPage,
  ): Promise<WalkPage<WaitingRow, number | null>> {
    const { rows } = this.deps;
    let missing = behind === null ? this.#countOf(job, filter) : Number.POSITIVE_INFINITY;
    const read = (after: number | null, looks: number, wanted: number) => {
      const [from, to] =
        order === "first"
          ? [(after ?? -1) + 1, Math.min((after ?? -1) + looks, job.rowsTotal - 1)]
          : [Math.max(0, (after ?? job.rowsTotal) - looks), (after ?? job.rowsTotal) - 1];
      const found = missing <= 0 ? [] : rows.inWindow(job.number, filter, { from, to, order, limit: wanted });
      missing -= found.length;
      const isLast = missing <= 0 || (order === "first" ? to >= job.rowsTotal - 1 : from <= 0);
      const last = found.at(-1);
      if (found.length === wanted && last !== undefined) return { rows: found, next: last.rowIndex };
      return { rows: found, next: isLast ? null : order === "first" ? to : from };
    };
    const source = { read, keyOf: ({ rowIndex }: WaitingRow) => rowIndex, step: ROWS_PER_STEP };
    return walk<WaitingRow, number | null>(source, { before: behind, limit, account: job.accountId });
  }

  /** How many addresses `BulkJobs.retry` would verify again, one credit each. */
  unsettled(job: JobRow): Promise<number> {
    return countUnsettled(this.deps.lists, job);
  }

  /** A row with its result; 404 when the job has no such row. */
  row(job: JobRow, rowIndex: number): WaitingRow {
    const window = { from: rowIndex, to: rowIndex, order: "first", limit: 1 } as const;
    const [row] = this.deps.rows.inWindow(job.number, { results: null, text: null }, window);
    if (row === undefined) throw new AppError("not_found", { message: `The list has no row ${rowIndex + 1}.` });
    return row;
  }

  /** Streams rows with their results as a CSV, also while the job runs. `part`: for the name of the file. */
  download(
    request: Request,
    job: JobRow,
    { filter, ...rest }: { filter: ListRowFilter; part: string; options?: DownloadOptions },
  ): Response {
    const { jobs, lists } = this.deps;
    const filters = { ...filter, text: filter.text?.toLowerCase() ?? null };
    return sendResults(request, lists, { job, format: jobs.formatOf(job.number), filters, ...rest });
  }

  /** How many rows a download has; null when that is not counted. */
  countDownload(job: JobRow, filter: ListRowFilter, options: DownloadOptions): Promise<number | null> {
    return countMatching(this.deps.rows, job, { filter, isDistinct: isDistinctDownload(options) });
  }

  /** How many rows pass a filter; null when that is not counted. */
  async countRows(job: JobRow, filter: ListRowFilter): Promise<number | null> {
    const known = filter.trouble === undefined ? this.#countOf(job, filter) : Number.POSITIVE_INFINITY;
    if (Number.isFinite(known)) return known;
    if (filter.results === null && filter.text === null && filter.trouble === undefined) return job.rowsTotal;
    return countMatching(this.deps.rows, job, { filter, isDistinct: false });
  }

  /** The columns that a download has. */
  downloadColumns(job: JobRow, options: DownloadOptions): readonly string[] {
    return exportedColumns(this.deps.jobs.formatOf(job.number), options);
  }

  /** The mail hosts that refused or delayed most addresses, and how many kinds of trouble there were. */
  troubles(job: JobRow, limit: number): { readonly shown: readonly ShownTrouble[]; readonly total: number } {
    const { troubles } = this.deps;
    return { shown: shownTroubles(this.deps, job.number, limit), total: troubles.count(job.number) };
  }

  /** Credits that are not held; a test list costs nothing. */
  availableCredits({ accountId, mode }: JobOwner): number {
    return mode === "test" ? Number.POSITIVE_INFINITY : this.deps.credits.balance(accountId).available;
  }

  pace({ number }: Pick<JobRow, "number">): JobPace {
    const running = this.deps.runner.find(number);
    return {
      perSecond: running?.throughput.perSecond ?? null,
      waiting: running?.queue.retries ?? 0,
      nextAttemptMs: running?.queue.nextRetryMs ?? null,
    };
  }

  /** The lists of an account that have not ended, oldest first. */
  running(owner: JobOwner): RunningList[] {
    const { jobs, runner } = this.deps;
    return jobs.unfinished(owner).map((job) => ({
      id: job.id,
      title: listTitle(job.name),
      addresses: { total: job.addressesTotal, finished: job.addressesFinished },
      secondsLeft: runner.forecast(job).secondsLeft,
    }));
  }

  /** How many of the newest 100 lists were completed since a time. */
  completedSince(owner: JobOwner, sinceMs: number): number {
    return this.deps.jobs.countCompleted(owner, sinceMs, NEWEST_JOBS);
  }

  /** Open problems of the lists of an account. */
  attention(owner: JobOwner): AttentionItem[] {
    const { jobs, runner, drafts, credits } = this.deps;
    const newest = jobs.list(owner, {}, { before: null, limit: NEWEST_JOBS });
    return attentionOfLists({
      nowMs: this.runtime.clock.nowMs(),
      unfinished: jobs.unfinished(owner),
      pausedReason: (job) => runner.pausedReason(job),
      failed: newest.filter(({ status }) => status === "failed"),
      // An upload can be started in both modes; only a live list costs credits.
      drafts: owner.mode === "live" ? drafts.waiting(owner) : [],
      availableCredits: credits.balance(owner.accountId).available,
    });
  }

  /** How many rows pass a filter at most; infinite when that is not counted. */
  #countOf(job: JobRow, { results, text }: ListRowFilter): number {
    if (text !== null || results === null) return Number.POSITIVE_INFINITY;
    if (results === "unfinished") return job.rowsTotal - job.rowsFinished;
    if (results === "no_address") return job.rowsEmpty;
    const counts = this.deps.jobs
      .counts(job.number)
      .filter(({ subStatus }) => results.some((one) => one === subStatus));
    return sumBy(counts, ({ rows }) => rows);
  }
}
