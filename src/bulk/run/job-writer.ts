import type { ByMode } from "../../foundation/base/secrets.ts";
import { dayOfTime } from "../../foundation/base/days.ts";
import type { CreditHolds } from "../../accounts/billing/store.ts";
import type { Tx } from "../../foundation/db/open.ts";
import { insertEvent } from "../../foundation/db/outbox.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import { UsageStore } from "../../accounts/usage/usage-store.ts";
import { PromiseCounts } from "../../verify/bounces/promise-counts.ts";
import { type SubStatus, VERDICT_OF } from "../../verify/result.ts";
import type { AttemptOutcome } from "./attempt.ts";
import { isUnfinished, jobView } from "../results/job-object.ts";
import { type Advance, holdReference, type JobRow, type JobStore } from "../results/job-store.ts";
import type { ListStore } from "../results/list-store.ts";
import { TroubleStore } from "../results/host-troubles.ts";
import { ListMailStore } from "../results/list-mail-store.ts";
import { wait } from "../../foundation/base/wait.ts";
import { isDatabaseState } from "../../foundation/base/errors.ts";
import { WRITE_AGAIN_MS } from "../../verify/runner.ts";

/** An address with the outcome of one attempt. */
export interface AttemptedAddress {
  readonly position: number;
  /** How many rows have the address. */
  readonly rows: number;
  /** Whether there may be evidence of an earlier attempt. */
  readonly isRetry: boolean;
  readonly outcome: AttemptOutcome;
}

/** Where the state of jobs and credits is stored. */
export interface BulkStores {
  readonly jobs: JobStore;
  readonly lists: ListStore;
  readonly credits: ByMode<CreditHolds>;
}

type EndStatus = "completed" | "cancelled" | "failed";

interface Finished {
  readonly position: number;
  readonly rows: number;
  readonly chargeable: boolean;
  readonly subStatus: SubStatus;
  readonly day: number;
  /** The provider of the mail hosts; null when none is known. */
  readonly provider: string | null;
}

/** Writes the changes of state of a job, each in the caller's transaction. */
export class JobWriter {
  readonly #usage: UsageStore;
  readonly #promises: PromiseCounts;
  readonly #troubles: TroubleStore;
  readonly #mails: ListMailStore;

  constructor(
    private readonly runtime: Runtime,
    private readonly stores: BulkStores,
  ) {
    this.#usage = new UsageStore(runtime.db);
    this.#promises = new PromiseCounts(runtime.db);
    this.#troubles = new TroubleStore(runtime.db);
    this.#mails = new ListMailStore(runtime.db);
  }

  begin(tx: Tx, number: number): void {
    this.stores.jobs.begin(tx, number, this.runtime.clock.nowMs());
  }

  /** Completes a queued job that has no address. */
  completeEmpty(tx: Tx, number: number): void {
    this.begin(tx, number);
    this.#end(tx, number, "completed");
  }

  /**
   * Writes the outcomes of attempts, settles or releases their holds and, after the last address, completes the job.
   * Returns whether the job is still open. Outcomes that arrive after its end are dropped.
   */
  writeAttempts(tx: Tx, number: number, attempts: readonly AttemptedAddress[]): boolean {
    const job = this.stores.jobs.get(number);
    if (job === undefined || !isUnfinished(job)) return false;
    const finished: Finished[] = [];
    const counts = new Map<string, number>();
    for (const attempt of attempts) {
      const { position, rows, outcome } = attempt;
      if (!this.#writeOutcome(tx, number, attempt) || outcome.kind !== "done") continue;
      const { subStatus, verifiedAtMs } = outcome.columns;
      // Results of test keys have a fixed time.
      const day = dayOfTime(job.mode === "test" ? this.runtime.clock.nowMs() : verifiedAtMs);
      finished.push({ position, rows, chargeable: outcome.chargeable, subStatus, day, provider: outcome.group });
      counts.set(subStatus, (counts.get(subStatus) ?? 0) + rows);
      const verdict = VERDICT_OF[subStatus];
      this.runtime.db.note(tx, { kind: "verification", mode: job.mode, source: "list", verdict, subStatus });
    }
    if (finished.length === 0) return true;
    for (const [subStatus, rows] of counts) this.stores.jobs.addCount(tx, number, { subStatus, rows });
    const rows = finished.reduce((sum, one) => sum + one.rows, 0);
    const credits = this.#settle(tx, job, finished);
    this.stores.jobs.advance(tx, number, { rows, addresses: finished.length, ...credits });
    this.#countPromises(tx, job, finished);
    this.#countUsage(tx, job, { finished, isCharged: credits.charged > 0 });
    if (job.addressesFinished + finished.length < job.addressesTotal) return true;
    this.#end(tx, number, "completed");
    return false;
  }

  /** Ends an unfinished job early: finished addresses stay, the credits held for the others are released. */
  abort(tx: Tx, job: JobRow, status: "cancelled" | "failed"): void {
    const left = job.addressesTotal - job.addressesFinished;
    if (left > 0) {
      const move = { accountId: job.accountId, reference: holdReference(job), atMs: this.runtime.clock.nowMs() };
      const released = this.stores.credits[job.mode].release(tx, { ...move, credits: left }, status);
      this.stores.jobs.advance(tx, job.number, { rows: 0, addresses: 0, charged: 0, released });
    }
    this.#end(tx, job.number, status);
  }

  /** Returns whether the address finished now. */
  #writeOutcome(tx: Tx, job: number, { position, isRetry, outcome }: AttemptedAddress): boolean {
    const { evidence } = outcome;
    const isDone = outcome.kind === "done";
    const isWritten = isDone
      ? this.stores.lists.finish(tx, job, { position, columns: outcome.columns })
      : this.stores.lists.postpone(tx, job, { position, dueAtMs: outcome.dueAtMs });
    if (!isWritten) return false;
    if (outcome.trouble !== null) this.#troubles.note(tx, job, { position, ...outcome.trouble });
    if (evidence !== null) this.stores.lists.saveEvidence(tx, job, { position, body: evidence });
    else if (isDone && isRetry) this.stores.lists.dropEvidence(tx, job, position);
    return isDone;
  }

  /**
   * Settles or releases the credits of finished addresses, with one ledger entry for each. The reference names the first
   * address of the entry, and the ledger accepts a reference once: no address is charged twice.
   */
  #settle(tx: Tx, job: JobRow, finished: readonly Finished[]): Pick<Advance, "charged" | "released"> {
    const credits = this.stores.credits[job.mode];
    const charged = finished.filter(({ chargeable }) => chargeable);
    const released = finished.filter(({ chargeable }) => !chargeable);
    const move = ({ position }: Finished) => ({
      accountId: job.accountId,
      reference: `${holdReference(job)}#${position}`,
      atMs: this.runtime.clock.nowMs(),
    });
    const [firstCharged, firstReleased] = [charged[0], released[0]];
    const note = "no mail server responded";
    return {
      charged: firstCharged === undefined ? 0 : credits.settle(tx, move(firstCharged), charged.length),
      released:
        firstReleased === undefined
          ? 0
          : credits.release(tx, { ...move(firstReleased), credits: released.length }, note),
    };
  }

  #countPromises(tx: Tx, { accountId, mode }: JobRow, finished: readonly Finished[]): void {
    if (mode === "test") return;
    const promised = finished.filter(({ subStatus }) => VERDICT_OF[subStatus] === "deliverable");
    for (const [day, some] of Map.groupBy(promised, (one) => one.day))
      this.#promises.add(
        tx,
        accountId,
        day,
        some.map(({ provider }) => provider),
      );
  }

  /** Adds distinct addresses to the usage, as they are charged; `isCharged` is false for test keys. */
  #countUsage(
    tx: Tx,
    job: JobRow,
    { finished, isCharged }: { finished: readonly Finished[]; isCharged: boolean },
  ): void {
    const { accountId, keyId, mode } = job;
    if (isCountedBefore(job)) return;
    for (const group of Map.groupBy(finished, ({ subStatus, day }) => `${day} ${subStatus}`).values()) {
      const [first] = group;
      if (first === undefined) continue;
      const { subStatus, day } = first;
      const credits = isCharged ? group.filter(({ chargeable }) => chargeable).length : 0;
      const result = { subStatus, verdict: VERDICT_OF[subStatus], verifications: group.length, credits };
      this.#usage.add(tx, { accountId, keyId, mode, source: "list", day, ...result });
    }
  }

  /** Ends the job, and writes its event and its mail. */
  #end(tx: Tx, number: number, status: EndStatus): void {
    const { db, clock } = this.runtime;
    const nowMs = clock.nowMs();
    this.stores.jobs.end(tx, number, { status, completedAtMs: nowMs });
    const job = this.stores.jobs.get(number);
    if (job === undefined) return;
    const { id, accountId, mode, webhookUrl: url } = job;
    this.#mails.queue(tx, job, nowMs);
    db.note(tx, { kind: "list_end", mode, status });
    const data = jobView(job, this.stores.jobs.counts(number));
    insertEvent(db, tx, {
      accountId,
      mode,
      type: `bulk.${status}`,
      subject: `job:${id}`,
      data,
      url,
      createdAtMs: nowMs,
    });
  }
}

/** Whether the addresses of a job are in the usage already: a retry with a test key has the same results again. */
export const isCountedBefore = ({ mode, round }: Pick<JobRow, "mode" | "round">): boolean =>
  mode === "test" && round > 0;

/** One transaction writes this many results, or those of this time. */
export const RESULT_BATCH_MAX = 500;
export const RESULT_BATCH_MS = 50;
/** With this many unwritten results no further address is started. */
export const UNWRITTEN_MAX = 5_000;

/** `open`: the job has more addresses; `ended`: it has ended; `failed`: a bug prevents writing; `stopped`: nothing was written. */
export type WriteResult = "open" | "ended" | "failed" | "stopped";

interface PendingWrite {
  readonly job: number;
  readonly attempted: AttemptedAddress;
  readonly resolve: (result: WriteResult) => void;
}

/** Writes the results of all jobs in batches, one batch at a time. When the disk is full it waits and tries again. */
export class ResultBatches {
  readonly #pending: PendingWrite[] = [];
  #cancelTimer: (() => void) | null = null;
  #writing: Promise<void> | null = null;
  #isStopped: boolean = false;

  constructor(
    private readonly runtime: Runtime,
    private readonly writer: Pick<JobWriter, "writeAttempts">,
  ) {}

  /** Results that are not written yet. */
  get size(): number {
    return this.#pending.length;
  }

  /** Resolves when the result is durable, or cannot be written. */
  write(job: number, attempted: AttemptedAddress): Promise<WriteResult> {
    if (this.#isStopped) return Promise.resolve("stopped");
    const { promise, resolve } = Promise.withResolvers<WriteResult>();
    this.#pending.push({ job, attempted, resolve });
    this.#schedule();
    return promise;
  }

  /** Writes the pending results and accepts no more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#begin();
    // A batch under way continues with what arrived during it.
    await this.#writing;
  }

  #schedule(): void {
    if (this.#isStopped || this.#writing !== null || this.#pending.length === 0) return;
    if (this.#pending.length >= RESULT_BATCH_MAX) this.#begin();
    else this.#cancelTimer ??= this.runtime.clock.after(RESULT_BATCH_MS, () => this.#begin());
  }

  #begin(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    if (this.#writing !== null || this.#pending.length === 0) return;
    this.#writing = this.#writeAll().finally(() => {
      this.#writing = null;
      this.#schedule();
    });
  }

  async #writeAll(): Promise<void> {
    do await this.#writeJobs([...Map.groupBy(this.#pending.splice(0, RESULT_BATCH_MAX), ({ job }) => job)]);
    while (this.#pending.length >= RESULT_BATCH_MAX || (this.#isStopped && this.#pending.length > 0));
  }

  /** Writes the results of these jobs in one transaction; if a bug prevents that, each job in its own. */
  async #writeJobs(jobs: readonly JobWrites[]): Promise<void> {
    const { db, clock, log } = this.runtime;
    for (;;) {
      try {
        const results = await db.commit((tx) => jobs.map((one) => this.#writeJob(tx, one)));
        for (const [at, one] of jobs.entries()) settle(one, results[at] ?? "failed");
        return;
      } catch (error) {
        log.error("could not write results of lists", { error });
        if (isDatabaseState(error) && !this.#isStopped) {
          await wait(clock, WRITE_AGAIN_MS);
          continue;
        }
        if (isDatabaseState(error)) for (const one of jobs) settle(one, "stopped");
        else if (jobs.length > 1) for (const one of jobs) await this.#writeJobs([one]);
        else for (const one of jobs) settle(one, "failed");
        return;
      }
    }
  }

  #writeJob(tx: Tx, [job, writes]: JobWrites): WriteResult {
    const attempted = writes.map((write) => write.attempted);
    return this.writer.writeAttempts(tx, job, attempted) ? "open" : "ended";
  }
}

type JobWrites = readonly [job: number, writes: readonly PendingWrite[]];

const settle = ([, writes]: JobWrites, result: WriteResult): void => {
  for (const { resolve } of writes) resolve(result);
};
