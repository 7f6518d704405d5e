import type { AttentionItem } from "../foundation/base/attention.ts";
import { AppError } from "../foundation/base/errors.ts";
import { readById, walk, type WalkPage } from "../foundation/base/walk.ts";
import type { CreditHolds } from "../accounts/billing/store.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import { SUB_STATUSES, type SubStatus, UNSETTLED, VERDICT_OF } from "../verify/result.ts";
import type { ListDrafts, Draft } from "./arrival/drafts.ts";
import { countUnsettled } from "./run/job-changes.ts";
import type { JobOwner, JobRow, JobStore } from "./results/job-store.ts";
import type { ListStore, ListRowFilter, RowStore, RowWindow, WaitingRow } from "./results/list-store.ts";
import type { BulkRunner } from "./run/runner.ts";
import { type DownloadOptions, sendResults } from "./results/job-rows.ts";
import type { JobFilters } from "./results/schemas.ts";
import { DAY_MS } from "../foundation/base/days.ts";
import type { PausedReason } from "../verify/smtp/outages.ts";

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

const resultsOf = (choice: RowGroup | "risky"): readonly SubStatus[] =>
  SUB_STATUSES.filter((one) => (choice === "risky" ? VERDICT_OF[one] === choice : groupOf(one) === choice));

/** The sub_statuses that a choice and a sub_status have in common; null: every row. */
export const resultsWanted = (
  choice: RowChoice | undefined,
  subStatus: SubStatus | undefined,
): ListRowFilter["results"] => {
  if (choice === undefined) return subStatus === undefined ? null : [subStatus];
  if (choice === "unfinished") return subStatus === undefined ? choice : [];
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
      drafts: drafts.waiting(owner),
      availableCredits: credits.balance(owner.accountId).available,
    });
  }

  /** How many rows pass a filter at most; infinite when that is not counted. */
  #countOf(job: JobRow, { results, text }: ListRowFilter): number {
    if (text !== null || results === null) return Number.POSITIVE_INFINITY;
    if (results === "unfinished") return job.rowsTotal - job.rowsFinished;
    const counts = this.deps.jobs
      .counts(job.number)
      .filter(({ subStatus }) => results.some((one) => one === subStatus));
    const withoutAddress = results.includes("invalid_syntax") ? job.rowsEmpty : 0;
    return counts.reduce((sum, { rows }) => sum + rows, withoutAddress);
  }
}

/** Only the newest failed lists are shown, until this time after their end. */
const FAILED_MS_MAX = 7 * DAY_MS;
const FAILED_MAX = 5;

/** Why lists are paused, as a sentence. */
export const PAUSED_SENTENCES: Readonly<Record<PausedReason, string>> = {
  local_failure: "This machine cannot open connections.",
  dns_unavailable: "No DNS server responds.",
  smtp_unreachable: "No mail server accepts a connection: outgoing SMTP (port 25) seems to be blocked on this side.",
};

const UNTITLED = "List without a name";

/** The name of a list in texts. */
export const listTitle = (name: string | null): string => (name === null || name.trim() === "" ? UNTITLED : name);

const grouped = (count: number): string => count.toLocaleString("en");

const pathOf = ({ id }: Pick<JobRow, "id">): string => `/lists/${id}`;

/** One outage pauses every live list: it is one item. */
const pausedItem = (jobs: readonly JobRow[], reason: PausedReason): AttentionItem | null => {
  const [first] = jobs;
  if (first === undefined) return null;
  const isAlone = jobs.length === 1;
  return {
    severity: "warn",
    label: "Paused",
    title: isAlone ? `${listTitle(first.name)} is paused` : `${grouped(jobs.length)} lists are paused`,
    detail: `${PAUSED_SENTENCES[reason]} No result is recorded meanwhile; verification resumes automatically.`,
    action: { text: "See why", path: isAlone ? pathOf(first) : "/lists?status=running" },
    sinceMs: null,
  };
};

const failedItem = (job: JobRow): AttentionItem => ({
  severity: "bad",
  label: "Failed",
  title: `${listTitle(job.name)} failed`,
  detail: `An error of this service prevents its completion. ${grouped(job.addressesFinished)} of ${grouped(job.addressesTotal)} addresses have a result; the credits of the others were released.`,
  action: { text: "Show the list", path: pathOf(job) },
  sinceMs: job.completedAtMs,
});

const unaffordable = ({ id, fileName, required }: Draft, available: number): AttentionItem | null =>
  required === null || required <= available
    ? null
    : {
        severity: "warn",
        label: "Credits",
        title: `${fileName ?? "A pasted list"} waits for credits`,
        detail: `It needs ${grouped(required)} credits, ${grouped(available)} are available. The upload is kept for an hour.`,
        action: { text: "Show the list", path: `/lists/new?draft=${id}` },
        sinceMs: null,
      };

interface ListsState {
  readonly nowMs: number;
  /** Jobs that have not ended. */
  readonly unfinished: readonly JobRow[];
  /** The reason why a job is paused. */
  readonly pausedReason: (job: JobRow) => PausedReason | null;
  /** Failed jobs, newest first. */
  readonly failed: readonly JobRow[];
  readonly drafts: readonly Draft[];
  readonly availableCredits: number;
}

/** Open problems of the lists of an account: failed lists, an outage, uploads that cannot be paid for. */
const attentionOfLists = ({ nowMs, unfinished, pausedReason, ...state }: ListsState): AttentionItem[] => {
  const paused = unfinished.filter((job) => pausedReason(job) !== null);
  const reason = paused[0] === undefined ? null : pausedReason(paused[0]);
  const recent = state.failed.filter(({ completedAtMs }) => (completedAtMs ?? 0) > nowMs - FAILED_MS_MAX);
  return [
    ...recent.slice(0, FAILED_MAX).map(failedItem),
    reason === null ? null : pausedItem(paused, reason),
    ...state.drafts.map((draft) => unaffordable(draft, state.availableCredits)),
  ].filter((item) => item !== null);
};
