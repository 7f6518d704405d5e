import { nextTurn } from "../../foundation/base/clock.ts";
import { wait } from "../../foundation/base/wait.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import type { Outages, PausedReason } from "../../verify/smtp/outages.ts";
import { PoolClosed } from "../../verify/smtp/pool.ts";
import { BugBackoff } from "../../verify/runner.ts";
import {
  type AddressQueue,
  type Taken,
  addressesUnderWay,
  forecastJob,
  nextToBegin,
  RunningJob,
  windowShares,
} from "./address-queue.ts";
import { type AttemptAddress, internalErrorOutcome, ConcurrencyLimiter, type Load } from "./attempt.ts";
import {
  ASSUMED_ATTEMPT_S,
  type JobForecast,
  NOTHING_LEFT,
  PAUSED,
  hasEnded,
  isUnfinished,
} from "../results/job-object.ts";
import type { JobRow, JobStore } from "../results/job-store.ts";
import { type AttemptedAddress, type JobWriter, ResultBatches, UNWRITTEN_MAX } from "./job-writer.ts";
import type { ListStore } from "../results/list-store.ts";
import { Recurring } from "../../foundation/base/recurring.ts";

export interface BulkRunnerOptions {
  readonly jobs: JobStore;
  readonly lists: ListStore;
  readonly writer: JobWriter;
  readonly attempt: AttemptAddress;
  readonly outages: Pick<Outages, "current" | "takeTurn" | "onChange">;
  readonly load: Load;
  /** Addresses under way at a time, of all jobs. */
  readonly windowMax: number;
  /** The clock of retries: wall time without its steps. */
  readonly dueNowMs: () => number;
  /** No retry is planned later than this from now. */
  readonly longestWaitMs: number;
}

/** Addresses started in one turn of the event loop: what starts together gets its replies together, and delays everybody. */
const STARTED_PER_TURN_MAX = 8;
/** Wait after a job could not be loaded (disk full). */
const LOAD_AGAIN_MS = 5_000;
/** The queues are examined at least this often: as usual, and while the window may grow. */
const [PUMP_MS_MAX, REDUCED_PUMP_MS] = [60_000, 20];

/**
 * Verifies the addresses of several jobs at a time. The window is divided equally among the accounts that have work, and
 * each account's part among its jobs. All state is in the rows: after a restart, addresses that were under way are tried
 * again. Results that arrive after the end of their job are dropped.
 */
export class BulkRunner {
  readonly #batches: ResultBatches;
  readonly #limiter: ConcurrencyLimiter;
  /** Addresses whose attempt failed because of a bug. */
  readonly #backoff: BugBackoff;
  readonly #waiting: RunningJob[] = [];
  readonly #active = new Map<number, RunningJob>();
  /** Round-robin over the active jobs. */
  #turn = 0;
  #isPumpScheduled: boolean = false;
  #cancelTimer: (() => void) | null = null;
  #isStopped: boolean = false;

  constructor(
    private readonly runtime: Runtime,
    private readonly deps: BulkRunnerOptions,
  ) {
    this.#batches = new ResultBatches(runtime, deps.writer);
    this.#limiter = new ConcurrencyLimiter(runtime.clock, deps.windowMax, deps.load);
    this.#backoff = new BugBackoff(runtime.clock);
    deps.outages.onChange(() => this.#schedulePump());
  }

  /** Resumes every job that an earlier process left unfinished. */
  start(): void {
    for (const job of this.deps.jobs.withStatus(["queued", "running"])) if (!job.isResetting) this.add(job);
  }

  /** Accepts a queued job. It starts as soon as its account has a free place. */
  add(job: JobRow): void {
    if (this.find(job.number) !== undefined) return;
    this.#waiting.push(new RunningJob(job, this.runtime.clock, this.deps.windowMax));
    this.#admit();
  }

  /** Stops work on a job that has ended; results of addresses under way are dropped. */
  drop(number: number): void {
    const running = this.find(number);
    const at = this.#waiting.findIndex(({ job }) => job.number === number);
    if (at >= 0) this.#waiting.splice(at, 1);
    this.#active.delete(number);
    running?.ended.resolve();
    this.#admit();
  }

  /** Why live jobs are paused; null while work goes on. */
  pausedReason(job: JobRow): PausedReason | null {
    return job.mode === "test" || !isUnfinished(job) ? null : this.deps.outages.current();
  }

  forecast(job: JobRow): JobForecast {
    if (!isUnfinished(job)) return NOTHING_LEFT;
    if (this.pausedReason(job) !== null) return PAUSED;
    const running = this.#active.get(job.number);
    const assumedPerSecond = this.deps.windowMax / Math.max(1, this.#active.size) / ASSUMED_ATTEMPT_S;
    return forecastJob(job, running, { assumedPerSecond, nowMs: this.deps.dueNowMs() });
  }

  /** Addresses under way. */
  underWay = (): number => addressesUnderWay([...this.#active.values()]);

  /** Resolves when the job has ended; at once when this process does not have it. */
  async untilEnded(number: number): Promise<void> {
    await this.find(number)?.ended.promise;
  }

  /** Starts no more addresses and writes the results that are known. Addresses under way stay pending. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelTimer?.();
    this.#limiter.stop();
    this.#backoff.stop();
    this.#active.clear();
    await this.#batches.stop();
  }

  /** The numbers of the jobs that this process has, running or waiting. */
  jobNumbers(): number[] {
    return [...this.#waiting, ...this.#active.values()].map(({ job }) => job.number);
  }

  /** A job that this process has, running or waiting. */
  find(number: number): RunningJob | undefined {
    return this.#active.get(number) ?? this.#waiting.find(({ job }) => job.number === number);
  }

  #admit(): void {
    while (!this.#isStopped) {
      const next = nextToBegin(this.#waiting, [...this.#active.values()]);
      if (next === undefined) return;
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      this.#active.set(next.job.number, next);
      void this.#runJob(next);
    }
  }

  /**
   * The flow of one job: load its unfinished addresses into its queue, verify each of them (`#pump` starts them, round-robin over
   * the jobs, as far as the window allows; `#verifyAddress` is the flow of one), and log the end.
   */
  async #runJob(running: RunningJob): Promise<void> {
    const { jobs } = this.deps;
    const { log } = this.runtime;
    const { id, number, addressesTotal, addressesFinished } = running.job;
    log.info("list started", { id, addresses: addressesTotal, finished: addressesFinished });
    await this.#load(running);
    await running.ended.promise;
    const job = jobs.get(number);
    if (job === undefined || isUnfinished(job)) return;
    log.info("list ended", { id, status: job.status, addresses: job.addressesFinished });
  }

  /** Marks the job as running and loads its addresses in steps; tries again when the database fails. */
  async #load(running: RunningJob): Promise<void> {
    const { db, clock, log } = this.runtime;
    const { writer, lists, dueNowMs, longestWaitMs } = this.deps;
    const { id, number } = running.job;
    while (this.#isActive(running)) {
      try {
        await db.commit((tx) => writer.begin(tx, number));
        let after: number | null = -1;
        while (after !== null && this.#isActive(running)) {
          after = running.load(lists, after, dueNowMs() + longestWaitMs);
          this.#schedulePump();
          if (after !== null) await nextTurn();
        }
        return;
      } catch (error) {
        if (this.#isStopped) return;
        log.error("could not load a list; trying again", { id, error });
        await wait(clock, LOAD_AGAIN_MS);
        running.reset();
      }
    }
  }

  #schedulePump(): void {
    if (this.#isPumpScheduled || this.#isStopped) return;
    this.#isPumpScheduled = true;
    setImmediate(() => this.#pump());
  }

  #pump(): void {
    this.#isPumpScheduled = false;
    if (this.#isStopped || this.#batches.size >= UNWRITTEN_MAX) return;
    if (this.#startSome()) this.#schedulePump();
    else this.#pumpAtNextRetry();
  }

  /** Starts addresses as the window allows, one of each job in turn; returns whether there may be more to start. */
  #startSome(): boolean {
    const nowMs = this.deps.dueNowMs();
    const { jobs, startedMax } = this.#startable(nowMs);
    const shareMax = windowShares(jobs, this.#limiter.window(this.underWay()));
    let started = 0;
    for (let idle = 0; idle < jobs.length;) {
      if (started >= startedMax) return startedMax > 1;
      const running = jobs[this.#turn++ % jobs.length];
      const hasRoom = running !== undefined && running.queue.underWay < shareMax(running);
      const taken = hasRoom ? running.queue.take(nowMs) : null;
      if (running === undefined || taken === null) {
        idle++;
        continue;
      }
      idle = 0;
      started++;
      void this.#verifyAddress(running, running.queue, taken);
    }
    return false;
  }

  /** Jobs that have work. During an outage live jobs are paused, except for one address per interval that tests for its end. */
  #startable(nowMs: number): { readonly jobs: readonly RunningJob[]; readonly startedMax: number } {
    const { outages } = this.deps;
    const withWork = [...this.#active.values()].filter((running) => running.hasWork(nowMs));
    if (outages.current() === null) return { jobs: withWork, startedMax: STARTED_PER_TURN_MAX };
    const test = withWork.filter(({ job }) => job.mode === "test");
    if (test.length > 0) return { jobs: test, startedMax: STARTED_PER_TURN_MAX };
    const isIdle = withWork.every(({ queue }) => queue.underWay === 0);
    return isIdle && outages.takeTurn() ? { jobs: withWork, startedMax: 1 } : { jobs: [], startedMax: 0 };
  }

  #pumpAtNextRetry(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    if (this.#active.size === 0) return;
    const mostMs = this.#limiter.isReduced ? REDUCED_PUMP_MS : PUMP_MS_MAX;
    const retries = [...this.#active.values()].map(({ queue }) => queue.nextRetryMs).filter((ms) => ms !== null);
    // Retries that are due already wait for a free slot; its release schedules the pump.
    const delayMs = Math.min(mostMs, ...retries.map((ms) => ms - this.deps.dueNowMs()).filter((ms) => ms > 0));
    this.#cancelTimer = this.runtime.clock.after(delayMs, () => this.#schedulePump());
  }

  /** Verifies one address: attempt, result into a batch, then its retry at the planned time, or the end of the job. */
  async #verifyAddress(running: RunningJob, queue: AddressQueue, taken: Taken): Promise<void> {
    const attempted = await this.#attempt(running, queue, taken);
    this.#schedulePump();
    if (attempted === null || !this.#isActive(running, queue)) return;
    const written = await this.#batches.write(running.job.number, attempted);
    if (written === "stopped") return;
    if (written === "failed") await this.#fail(running.job.number);
    if (written !== "open") return this.drop(running.job.number);
    const { outcome, position } = attempted;
    if (outcome.kind === "later") queue.addRetry(position, taken.bucket, outcome.dueAtMs);
    else running.throughput.add(1);
    this.#schedulePump();
  }

  /** Makes one attempt and frees the slot. Null: the service stops, the address is finished, or a bug puts it off. */
  async #attempt({ job }: RunningJob, queue: AddressQueue, taken: Taken): Promise<AttemptedAddress | null> {
    const { position, bucket } = taken;
    const id = `${job.number} ${position}`;
    let group: string | null = null;
    try {
      const address = this.deps.lists.findOpen(job.number, position);
      if (address === undefined && hasEnded(this.deps.jobs.get(job.number))) this.drop(job.number);
      if (address === undefined) return null;
      const isGivenUp = this.#backoff.isExhausted(id);
      const outcome = isGivenUp
        ? internalErrorOutcome(this.runtime.clock.nowMs())
        : await this.deps.attempt(address, job);
      group = outcome.group;
      this.#backoff.clear(id);
      return { position, rows: address.rows, isRetry: address.dueAtMs > 0, outcome };
    } catch (error) {
      if (error instanceof PoolClosed || this.#isStopped) return null;
      const waitMs = this.#backoff.schedule(id, () => {
        queue.add(position, bucket);
        this.#schedulePump();
      });
      const fields = { job: job.number, wait_ms: waitMs, error };
      this.runtime.log.error("bug while verifying an address of a list; trying again", fields);
      return null;
    } finally {
      queue.release(taken, group);
    }
  }

  /** Ends a job whose results cannot be written. */
  async #fail(number: number): Promise<void> {
    const { jobs, writer } = this.deps;
    try {
      await this.runtime.db.commit((tx) => {
        const job = jobs.get(number);
        if (job !== undefined && isUnfinished(job)) writer.abort(tx, job, "failed");
      });
    } catch (error) {
      this.runtime.log.error("could not end a list that failed", { job: number, error });
    }
  }

  #isActive(running: RunningJob, queue = running.queue): boolean {
    return !this.#isStopped && this.#active.get(running.job.number) === running && running.queue === queue;
  }
}

interface JobFollowerOptions {
  readonly jobs: Pick<JobStore, "resetting" | "withStatus">;
  readonly runner: Pick<BulkRunner, "add" | "drop" | "jobNumbers">;
  /** Prepares the retries of the jobs that are marked for it. */
  readonly prepareRetries: () => void;
}

const FOLLOW_EVERY_MS = 2_000;

/** Follows what another process, such as the command line, did to jobs: stops those that it ended, starts those that it queued. */
export class JobFollower {
  readonly #following: Recurring;

  constructor(
    runtime: Pick<Runtime, "clock" | "log">,
    private readonly deps: JobFollowerOptions,
  ) {
    const name = "reading of lists that other processes changed";
    this.#following = new Recurring(runtime, { name, run: () => this.#follow(), retryMs: FOLLOW_EVERY_MS });
  }

  start(): void {
    this.#following.within(FOLLOW_EVERY_MS);
  }

  stop(): Promise<void> {
    return this.#following.stop();
  }

  #follow(): number {
    const { jobs, runner, prepareRetries } = this.deps;
    if (jobs.resetting().length > 0) prepareRetries();
    const unfinished = jobs.withStatus(["queued", "running"]);
    const numbers = new Set(unfinished.map(({ number }) => number));
    for (const number of runner.jobNumbers()) if (!numbers.has(number)) runner.drop(number);
    for (const job of unfinished) if (!job.isResetting) runner.add(job);
    return FOLLOW_EVERY_MS;
  }
}
