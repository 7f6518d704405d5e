import { rm } from "node:fs/promises";
import { type Clock, nextTurn } from "../base/clock.ts";
import { AppError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/secrets.ts";
import type { IdempotencyStore, IdempotentRequest } from "../db/idempotency.ts";
import type { Db, Tx } from "../db/open.ts";
import { orRefusal } from "../db/refusal.ts";
import type { Caller } from "../http/guard.ts";
import type { Evidence } from "../verify/evidence.ts";
import type { Ledger } from "../billing/store.ts";
import { sha256 } from "../base/secrets.ts";
import { createJobRetry } from "./job-retry.ts";
import type { BulkIntake, OnQueue } from "./intake.ts";
import { isUnfinished, jobView } from "./job-object.ts";
import { type Preview, previewSubmission } from "./preview.ts";
import type { ListStore } from "./list-store.ts";
import { type Submission, type SubmissionContext, withSubmission } from "./submission.ts";
import type { JobWriter } from "./job-writer.ts";
import type { BulkRunner } from "./runner.ts";
import { evidenceOfRow } from "./row-evidence.ts";
import { resultsFormatSchema } from "./results-csv.ts";
import type { JobFilters } from "./schemas.ts";
import type { JobRow, JobStore } from "./job-store.ts";
import { createIntakeSlots } from "./intake-slots.ts";
import { createUploadBudget } from "./upload-budget.ts";

export interface BulkJobsDeps {
  readonly db: Db;
  readonly jobs: JobStore;
  readonly lists: ListStore;
  readonly idempotency: IdempotencyStore;
  readonly intake: BulkIntake;
  readonly ledger: Ledger;
  readonly record: JobWriter;
  readonly runner: BulkRunner;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Where uploads lie while they are taken in. */
  readonly uploadsFolder: string;
  readonly readUrl: SubmissionContext["readUrl"];
  /** Events go to this URL again, even if its receiver was gone before. */
  readonly turnOnUrl: (tx: Tx, owner: Pick<Caller, "accountId" | "mode">, url: string) => void;
}

/** Jobs of an account that have not ended: beyond this its lists wait with the customer, not on our disk. */
export const UNFINISHED_MAX = 500;
const REMOVED_AT_ONCE = 1_000;
const RESET_AGAIN_MS = 5_000;

/** What came of an order. */
export type Submitted =
  { readonly kind: "job"; readonly job: JobRow } | { readonly kind: "preview"; readonly preview: Preview };

/** The jobs of callers: order one, look at one, list them, cancel, delete. A caller sees those of its account and mode. */
export const createBulkJobs = (deps: BulkJobsDeps) => {
  const { db, jobs, lists, idempotency, intake, record, runner, clock, log, uploadsFolder } = deps;
  const { ledger, random, readUrl, turnOnUrl } = deps;
  const inTurn = createIntakeSlots();
  const uploads = createUploadBudget();
  const anotherRound = createJobRetry(deps);
  let removals: Promise<void> = Promise.resolve();
  let resets: Promise<void> = Promise.resolve();
  let stopped = false;

  /** The job of an earlier request with the same Idempotency-Key; null when there was none or the job is gone. */
  const findEarlier = (request: IdempotentRequest | null): JobRow | null => {
    const id = request === null ? null : idempotency.findResource(request);
    return id === null ? null : (jobs.find(id) ?? null);
  };

  const requestOf = ({ keyId }: Caller, key: string | null, requestHash: string): IdempotentRequest | null =>
    key === null ? null : { keyId, idempotencyKey: key, requestHash };

  const remove = async (number: number): Promise<void> => {
    for (;;) {
      if (stopped) return;
      const isMore = await db.commit((tx) => lists.removeSome(tx, number, REMOVED_AT_ONCE));
      if (!isMore) break;
      await nextTurn();
    }
    await db.commit((tx) => jobs.remove(tx, number));
  };

  /** Removes a job that nobody sees any more, after those before it; a crash leaves the rest to the next start. */
  const removeLater = (number: number): void => {
    removals = removals
      .then(() => remove(number))
      .catch((cause: unknown) => {
        if (!stopped) log.error("a list could not be removed; it is tried again at the next start", { number, cause });
      });
  };

  const discard = (number: number): void => {
    const hidden = db.commit((tx) => jobs.hide(tx, number));
    removals = removals
      .then(() => hidden)
      .catch((cause: unknown) => {
        if (!stopped) log.error("a list could not be given up; it is tried again at the next start", { number, cause });
      });
    removeLater(number);
  };

  /** Opens the unsettled addresses of a queued job again, then has it worked on. */
  const resetLater = (number: number): void => {
    resets = resets
      .then(async () => {
        const isReset = await anotherRound.reset(number, () => stopped);
        const job = isReset ? jobs.get(number) : undefined;
        if (job === undefined || !isUnfinished(job)) return;
        runner.forget(number);
        runner.take(job);
      })
      .catch((cause: unknown) => {
        if (stopped) return;
        log.error("a list could not be made ready for its retry; trying again", { number, cause });
        clock.after(RESET_AGAIN_MS, () => resetLater(number));
      });
  };

  const refuseTooMany = ({ accountId }: Caller): void => {
    if (jobs.countUnfinished(accountId) >= UNFINISHED_MAX)
      throw new AppError("conflict", { message: `${UNFINISHED_MAX} lists of the account are not finished yet.` });
  };

  const place = async (caller: Caller, order: Submission, key: string | null): Promise<JobRow> => {
    const request = requestOf(caller, key, key === null ? "" : await order.hash());
    const before = findEarlier(request);
    if (before !== null) return before;
    refuseTooMany(caller);
    const onQueue: OnQueue = {
      earlier: () => findEarlier(request),
      write(tx, jobId) {
        if (request !== null) idempotency.save(tx, request, jobId);
        if (order.list.webhookUrl !== null) turnOnUrl(tx, caller, order.list.webhookUrl);
      },
    };
    const job = await intake.receive(caller, order.list, { onQueue, discard });
    if (isUnfinished(job)) runner.take(job);
    return job;
  };

  const preview = (caller: Caller, order: Submission): Promise<Preview> => {
    const credits = { available: ledger.balance(caller.accountId).available, isHeld: caller.mode === "live" };
    return previewSubmission(order, { credits, random });
  };

  const contextOf = ({ accountId }: Caller): SubmissionContext => ({
    ...{ folder: uploadsFolder, clock, readUrl },
    beginUpload: (bytes) => uploads.enter(accountId, bytes),
    inTurn: (isSmall, task) => inTurn({ accountId, isSmall }, task),
  });

  const find = (caller: Caller, id: string): JobRow => {
    const job = jobs.find(id);
    if (job !== undefined && job.accountId === caller.accountId && job.mode === caller.mode) return job;
    throw new AppError("not_found", { message: "There is no such bulk verification." });
  };

  return {
    /**
     * Takes a list in and answers its job, or what would be made of it where only that is wanted. 400, 402
     * `insufficient_credits`, 409 `conflict`, 413, 415, 422 `idempotency_key_reused`.
     */
    order: (caller: Caller, request: Request, idempotencyKey: string | null): Promise<Submitted> =>
      withSubmission(request, contextOf(caller), async (order): Promise<Submitted> => {
        if (order.isDryRun) return { kind: "preview", preview: await preview(caller, order) };
        return { kind: "job", job: await place(caller, order, idempotencyKey) };
      }),

    find,
    list: (caller: Caller, filters: JobFilters, page: { before: string | null; limit: number }): JobRow[] =>
      jobs.list(caller, filters, page),
    /** What the export of a job depends on. */
    formatOf: (number: number) => resultsFormatSchema.parse(JSON.parse(jobs.formatOf(number) ?? "null")),
    /** Why a row has its result, as far as it has come. 404 when there is no such row. */
    evidence(caller: Caller, id: string, rowIndex: number): Evidence {
      const { number, mode } = find(caller, id);
      const row = lists.rowAt(number, rowIndex);
      if (row === undefined) throw new AppError("not_found", { message: "The job has no such row." });
      const evidence = evidenceOfRow(row, {
        isTest: mode === "test",
        stored: lists.findEvidence(number, row.position),
      });
      if (evidence === null)
        throw new AppError("not_found", {
          message: "The evidence of this row was not kept: it finished with an earlier version.",
        });
      return evidence;
    },
    /** The job object of the interface. */
    describe: (job: JobRow) => jobView(job, jobs.counts(job.number), runner.forecast(job), runner.pausedReason(job)),

    /** Ends a job: what has not finished never will, and its credits go back. 409 when it has ended otherwise. */
    async cancel(caller: Caller, id: string): Promise<JobRow> {
      const { number } = find(caller, id);
      await db.commit((tx) => {
        const job = jobs.get(number);
        if (job !== undefined && isUnfinished(job)) record.abort(tx, job, "cancelled");
      });
      runner.forget(number);
      const job = find(caller, id);
      if (job.status === "cancelled") return job;
      throw new AppError("conflict", { message: `The job has ended: it is ${job.status}.` });
    },

    /**
     * Checks again what a completed job left unsettled. 402 when the unheld credits do not cover it, 409 when it is not
     * completed or nothing is unsettled, 422 for an Idempotency-Key that stands for something else.
     */
    async retry(caller: Caller, id: string, key: string | null): Promise<JobRow> {
      const request = requestOf(caller, key, sha256(`retry ${id}`));
      const known = find(caller, id);
      const before = findEarlier(request);
      if (before !== null) return before;
      refuseTooMany(caller);
      const addresses = known.status === "completed" ? await anotherRound.count(known) : 0;
      const refused = await db.commit((tx) => {
        const earlier = orRefusal(() => findEarlier(request));
        if (earlier !== null) return earlier;
        // Counted in another round than the present one: somebody else's retry came in between.
        if (jobs.get(known.number)?.round !== known.round)
          return new AppError("conflict", { message: "The job has been retried at the same time." });
        const refusal = anotherRound.begin(tx, known.number, addresses);
        if (refusal !== null) return refusal;
        if (request !== null) idempotency.save(tx, request, id);
        if (known.webhookUrl !== null) turnOnUrl(tx, caller, known.webhookUrl);
        return null;
      });
      if (refused instanceof AppError) throw refused;
      if (refused === null) resetLater(known.number);
      return find(caller, id);
    },

    /** Removes a job that has ended, with its results. 409 while it runs. */
    async remove(caller: Caller, id: string): Promise<void> {
      const { number } = find(caller, id);
      const isHidden = await db.commit((tx) => {
        const job = jobs.get(number);
        if (job === undefined || isUnfinished(job)) return false;
        jobs.hide(tx, number);
        return true;
      });
      if (!isHidden) throw new AppError("conflict", { message: "The job is not finished. Cancel it first." });
      removeLater(number);
    },

    /** Clears away what a crash left of lists that were being taken in; to be called before the first order. */
    async recover(): Promise<void> {
      await rm(uploadsFolder, { recursive: true, force: true });
      for (const { number } of jobs.withStatus(["receiving"])) discard(number);
      for (const { number } of jobs.withStatus(["deleting"])) removeLater(number);
    },
    /** Takes up the jobs that an earlier process left unfinished. */
    start(): void {
      for (const { number } of jobs.resetting()) resetLater(number);
      runner.start();
    },
    /** Resolves when nothing is left to be removed. */
    removed: (): Promise<void> => removals,
    async stop(): Promise<void> {
      stopped = true;
      await runner.stop();
      await Promise.all([removals, resets]);
    },
  };
};

export type BulkJobs = ReturnType<typeof createBulkJobs>;
