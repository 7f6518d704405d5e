import { rm } from "node:fs/promises";
import { AppError } from "../foundation/base/errors.ts";
import { forEachIsolated } from "../foundation/base/in-steps.ts";
import { Recurring } from "../foundation/base/recurring.ts";
import { type ByMode, sha256 } from "../foundation/base/secrets.ts";
import type { IdempotencyStore, IdempotentRequest } from "../foundation/db/idempotency.ts";
import { orRefusal } from "../foundation/db/group-commit.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import type { Caller } from "../foundation/http/guard.ts";
import type { VerificationEngine } from "../verify/engine.ts";
import type { Evidence } from "../verify/evidence.ts";
import type { WebhookUrls } from "../notifications/webhooks/url-store.ts";
import { ListDrafts } from "./arrival/drafts.ts";
import { type BulkIntake, IntakeSlots, UploadBudget } from "./arrival/intake.ts";
import { isUnfinished, jobView } from "./results/job-object.ts";
import { JobFollower, type BulkRunner } from "./run/runner.ts";
import { JobRemoval, countUnsettled, createJobRetry } from "./run/job-changes.ts";
import { evidenceOfRow } from "./results/job-rows.ts";
import type { JobRow } from "./results/job-store.ts";
import type { BulkStores, JobWriter } from "./run/job-writer.ts";
import { type Preview, previewSubmission } from "./arrival/preview.ts";
import type { ResultsFormat } from "./results/results-csv.ts";
import type { JobFilters, UploadOrder } from "./results/schemas.ts";
import { type Submission, type SubmissionContext, receiveSubmission } from "./arrival/submission.ts";

export interface BulkJobsOptions extends BulkStores {
  readonly engines: ByMode<VerificationEngine>;
  readonly intake: BulkIntake;
  readonly writer: JobWriter;
  readonly runner: BulkRunner;
  readonly idempotency: IdempotencyStore;
  readonly urls: WebhookUrls;
  readonly mailProblem: SubmissionContext["mailProblem"];
  /** Where uploads are stored while they are received. */
  readonly uploadsFolder: string;
}

/** Unfinished jobs of an account: they bound the disk space that its waiting lists take. */
export const UNFINISHED_MAX = 500;
const PREPARE_AGAIN_MS = 5_000;

export type Submitted =
  { readonly kind: "job"; readonly job: JobRow } | { readonly kind: "preview"; readonly preview: Preview };

/** The bulk jobs of callers. A caller sees the jobs of its account and mode. */
export class BulkJobs {
  /** Lists that users of the dashboard look at before they start them. */
  readonly drafts: ListDrafts;
  readonly #slots = new IntakeSlots();
  readonly #uploads = new UploadBudget();
  readonly #retry: ReturnType<typeof createJobRetry>;
  readonly #removal: JobRemoval;
  readonly #follower: JobFollower;
  readonly #preparing: Recurring;

  constructor(
    private readonly runtime: Runtime,
    private readonly deps: BulkJobsOptions,
  ) {
    this.#retry = createJobRetry(runtime, deps);
    const run = (signal: AbortSignal) => this.#prepareRetries(signal);
    this.#preparing = new Recurring(runtime, { name: "preparing the retry of lists", run, retryMs: PREPARE_AGAIN_MS });
    this.#follower = new JobFollower(runtime, { ...deps, prepareRetries: () => this.#preparing.within(0) });
    this.#removal = new JobRemoval(runtime, deps.jobs, deps.lists);
    const contextOf = (owner: Pick<Caller, "accountId">) => this.#contextOf(owner);
    this.drafts = new ListDrafts(runtime, { contextOf, credits: deps.credits.live });
  }

  /**
   * The first half of the flow of a list: from the request to the queued job, or to a preview when only that is requested.
   * The second half is `BulkRunner`. 400, 402 `insufficient_credits`, 409 `conflict`, 413, 415, 422 `idempotency_key_reused`, 503.
   */
  async submit(caller: Caller, request: Request, idempotencyKey: string | null): Promise<Submitted> {
    await using submission = await receiveSubmission(request, this.#contextOf(caller));
    if (submission.isDryRun) return { kind: "preview", preview: await this.#preview(caller, submission) };
    const requestHash = idempotencyKey === null ? "" : await submission.hash();
    const idempotent = idempotentRequest(caller, idempotencyKey, requestHash);
    return { kind: "job", job: this.#findEarlier(idempotent) ?? (await this.#start(caller, submission, idempotent)) };
  }

  /** The same for a draft: returns the id of its job, also when it was started before. 404 when it has expired. */
  startDraft(caller: Caller, id: string, options: UploadOrder): Promise<string> {
    const create = async (submission: Submission) => (await this.#start(caller, submission, null)).id;
    return this.drafts.start(caller, id, { options, create });
  }

  find(caller: Caller, id: string): JobRow {
    const job = this.deps.jobs.find(id);
    if (job !== undefined && job.accountId === caller.accountId && job.mode === caller.mode) return job;
    throw new AppError("not_found", { message: "There is no bulk verification with this id." });
  }

  list(caller: Caller, filters: JobFilters, page: { before: string | null; limit: number }): JobRow[] {
    return this.deps.jobs.list(caller, filters, page);
  }

  /** Why an address cannot be mailed at the end of a list, as a sentence; null when it can. */
  mailProblem(address: string): string | null {
    return this.deps.mailProblem(address);
  }

  formatOf(number: number): ResultsFormat {
    return this.deps.jobs.formatOf(number);
  }

  /** The evidence of a row so far. 404 when the job has no such row. */
  async evidence(caller: Caller, id: string, rowIndex: number): Promise<Evidence> {
    const { engines, lists } = this.deps;
    const { number, mode } = this.find(caller, id);
    const row = lists.rowAt(number, rowIndex);
    if (row === undefined) throw new AppError("not_found", { message: `The job has no row ${rowIndex}.` });
    const stored = lists.findEvidence(number, row.position);
    const evidence = await evidenceOfRow(row, { engine: engines[mode], stored });
    if (evidence !== null) return evidence;
    const message = "The evidence of this row has expired, or an earlier version of the service did not store it.";
    throw new AppError("not_found", { message });
  }

  /** The job object of the API. */
  describe(job: JobRow) {
    const { jobs, runner } = this.deps;
    return jobView(job, jobs.counts(job.number), runner.forecast(job), runner.pausedReason(job));
  }

  /** Ends a job early and releases the credits of its unfinished addresses. 409 when it has ended otherwise. */
  async cancel(caller: Caller, id: string): Promise<JobRow> {
    const { jobs, writer, runner } = this.deps;
    const { number } = this.find(caller, id);
    await this.runtime.db.commit((tx) => {
      const job = jobs.get(number);
      if (job !== undefined && isUnfinished(job)) writer.abort(tx, job, "cancelled");
    });
    runner.drop(number);
    const job = this.find(caller, id);
    if (job.status === "cancelled") return job;
    throw new AppError("conflict", { message: `Only an unfinished job can be cancelled; this one is ${job.status}.` });
  }

  /**
   * Verifies the unsettled addresses of a completed job again. 402 when the available credits do not cover them, 409 when it
   * is not completed or every address is settled, 422 for a reused Idempotency-Key.
   */
  async retry(caller: Caller, id: string, key: string | null): Promise<JobRow> {
    const { idempotency, urls } = this.deps;
    const idempotent = idempotentRequest(caller, key, sha256(`retry ${id}`));
    const counted = this.find(caller, id);
    const before = this.#findEarlier(idempotent);
    if (before !== null) return before;
    this.#refuseTooMany(caller);
    const addresses = counted.status === "completed" ? await countUnsettled(this.deps.lists, counted) : 0;
    const refused = await this.runtime.db.commit((tx) => {
      const earlier = orRefusal(() => this.#findEarlier(idempotent));
      if (earlier !== null) return earlier;
      const refusal = this.#retry.begin(tx, counted, addresses);
      if (refusal !== null) return refusal;
      if (idempotent !== null) idempotency.save(tx, idempotent, id);
      if (counted.webhookUrl !== null) urls.enable(tx, caller, counted.webhookUrl);
      return null;
    });
    if (refused instanceof AppError) throw refused;
    if (refused === null) void this.#preparing.run();
    return this.find(caller, id);
  }

  /** Deletes a job that has ended, with its results. 409 while it is unfinished. */
  async remove(caller: Caller, id: string): Promise<void> {
    const { jobs } = this.deps;
    const { number } = this.find(caller, id);
    const isHidden = await this.runtime.db.commit((tx) => {
      const job = jobs.get(number);
      if (job === undefined || isUnfinished(job)) return false;
      jobs.hide(tx, number);
      return true;
    });
    if (!isHidden) throw new AppError("conflict", { message: "The job is not finished. Cancel it first." });
    this.#removal.remove(number);
  }

  /** Removes what a crash left of lists being received. Call it before the first request. */
  async recover(): Promise<void> {
    const { jobs, uploadsFolder } = this.deps;
    await rm(uploadsFolder, { recursive: true, force: true });
    for (const { number } of jobs.withStatus(["receiving"])) this.#removal.discard(number);
    for (const { number } of jobs.withStatus(["deleting"])) this.#removal.remove(number);
  }

  /** Resumes the jobs that an earlier process left unfinished. */
  start(): void {
    void this.#preparing.run();
    this.deps.runner.start();
    this.#follower.start();
  }

  /** Whether this process verifies the addresses of a job, or will. */
  isWorkingOn(number: number): boolean {
    return this.deps.runner.jobNumbers().includes(number);
  }

  /** Resolves when all deleted jobs are removed from the database. */
  removed(): Promise<void> {
    return this.#removal.done();
  }

  /** Starts nothing any more; what is called afterwards only changes the database, as the command line wants it. */
  async stop(): Promise<void> {
    this.drafts.stop();
    const stopped = [this.#follower.stop(), this.#preparing.stop()];
    await this.deps.runner.stop();
    await Promise.all([this.#removal.stop(), ...stopped]);
  }

  async #start(caller: Caller, submission: Submission, idempotent: IdempotentRequest | null): Promise<JobRow> {
    this.#refuseTooMany(caller);
    const job = await this.#createJob(caller, submission, idempotent);
    if (isUnfinished(job)) this.deps.runner.add(job);
    return job;
  }

  /** Writes the list, then holds the credits and queues the job in one transaction. Returns the job of an earlier request with the same key. */
  async #createJob(caller: Caller, { list }: Submission, idempotent: IdempotentRequest | null): Promise<JobRow> {
    const { intake, idempotency, urls, jobs } = this.deps;
    const job = await intake.create(caller, list);
    try {
      const totals = await intake.writeRows(job, list);
      const instead = await this.runtime.db.commit((tx) => {
        const earlier = orRefusal(() => this.#findEarlier(idempotent));
        if (earlier !== null) return earlier;
        const refusal = intake.queue(tx, job, totals);
        if (refusal !== null) return refusal;
        if (idempotent !== null) idempotency.save(tx, idempotent, job.id);
        if (list.webhookUrl !== null) urls.enable(tx, caller, list.webhookUrl);
        return null;
      });
      if (instead instanceof AppError) throw instead;
      if (instead === null) return jobs.getExisting(job.number);
      this.#removal.discard(job.number);
      return instead;
    } catch (error) {
      this.#removal.discard(job.number);
      throw error;
    }
  }

  /** The job of an earlier request with the same Idempotency-Key; null when there was none or the job is gone. */
  #findEarlier(request: IdempotentRequest | null): JobRow | null {
    const id = request === null ? null : this.deps.idempotency.findResource(request);
    return id === null ? null : (this.deps.jobs.find(id) ?? null);
  }

  #refuseTooMany({ accountId }: Caller): void {
    if (this.deps.jobs.countUnfinished(accountId) < UNFINISHED_MAX) return;
    throw new AppError("conflict", {
      message: `The account has ${UNFINISHED_MAX} unfinished lists, which is the limit.`,
    });
  }

  #preview(caller: Caller, submission: Submission): Promise<Preview> {
    const { available } = this.deps.credits.live.balance(caller.accountId);
    const credits = { available, isHeld: caller.mode === "live" };
    return previewSubmission(submission, { credits, random: this.runtime.random });
  }

  #contextOf({ accountId }: Pick<Caller, "accountId">): SubmissionContext {
    const { uploadsFolder, urls, mailProblem } = this.deps;
    return {
      folder: uploadsFolder,
      clock: this.runtime.clock,
      account: accountId,
      urls,
      mailProblem,
      reserveUpload: (bytes) => this.#uploads.reserve(accountId, bytes),
      takeSlot: (isSmall) => this.#slots.take({ accountId, isSmall }),
    };
  }

  /** Removes the old results of the jobs to retry, one after another, and starts them. */
  async #prepareRetries(signal: AbortSignal): Promise<null> {
    const { jobs, runner } = this.deps;
    const failures: unknown[] = [];
    const prepare = async ({ number }: Pick<JobRow, "number">): Promise<void> => {
      const isReset = await this.#retry.reset(number, () => signal.aborted);
      const job = isReset ? jobs.get(number) : undefined;
      if (job === undefined || !isUnfinished(job)) return;
      runner.drop(number);
      runner.add(job);
    };
    await forEachIsolated(jobs.resetting(), prepare, {
      isStopping: () => signal.aborted,
      onFailure: (_, error) => void failures.push(error),
    });
    if (failures.length > 0) throw failures[0];
    return null;
  }
}

const idempotentRequest = ({ keyId }: Caller, key: string | null, requestHash: string): IdempotentRequest | null =>
  key === null ? null : { keyId, idempotencyKey: key, requestHash };
