import { nextTurn } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Db } from "../db/open.ts";
import type { Outages, PausedReason } from "../probe/outages.ts";
import { PoolClosed } from "../probe/pool.ts";
import { createSetbacks } from "../verify/setbacks.ts";
import { nextToBegin, windowShares } from "./account-shares.ts";
import { type AttemptAddress, internalErrorOutcome } from "./attempt.ts";
import { createConcurrencyLimiter, type ConcurrencyLimiterDeps } from "./concurrency-limiter.ts";
import { isUnfinished, type JobForecast, logBegun, logEnded, NOTHING_LEFT } from "./job-object.ts";
import type { ListStore } from "./list-store.ts";
import { bucketOf, createAddressQueue, type AddressQueue, type Taken } from "./address-queue.ts";
import { createThroughput, FIRST_GUESS_ATTEMPT_S, forecast, PAUSED, type Throughput } from "./forecast.ts";
import type { AttemptedAddress, JobWriter } from "./job-writer.ts";
import { createResultBatches, UNWRITTEN_MAX } from "./result-batches.ts";
import type { JobRow, JobStore } from "./job-store.ts";

export interface BulkRunnerDeps extends ConcurrencyLimiterDeps {
  readonly db: Db;
  readonly jobs: JobStore;
  readonly lists: ListStore;
  readonly record: JobWriter;
  readonly attempt: AttemptAddress;
  readonly outages: Pick<Outages, "current" | "takeTurn" | "onChange">;
  /** By which attempts are due: wall time without its steps. */
  readonly dueNowMs: () => number;
  /** No retry is planned for later than this from now. */
  readonly longestWaitMs: number;
  readonly log: Log;
}

/** One provider's hosts get no more than this share of a job's window. */
const GROUP_SHARE = 4;
/** Addresses begun in one turn of the event loop, and read at one go when a job is taken up. */
const BEGUN_PER_TURN_MAX = 64;
const LOADED_AT_ONCE = 2_000;
/** After a job could not be read or begun (disk full). */
const LOAD_AGAIN_MS = 5_000;
/** The plan is looked at this often at least. */
const LOOK_AT_LEAST_EVERY_MS = 60_000;

interface Active {
  readonly job: JobRow;
  readonly plan: AddressQueue;
  readonly rate: Throughput;
}

/**
 * Works jobs off, several at a time: `windowMax` addresses are shared equally among the accounts that have work, and
 * within an account among its jobs. The rows are the only truth: what was under way when the process ended is tried
 * again, and what comes in after a job has ended is dropped.
 */
export const createBulkRunner = (deps: BulkRunnerDeps) => {
  const { db, jobs, lists, record, attempt, outages, clock, dueNowMs, longestWaitMs, log, windowMax } = deps;
  const setbacks = createSetbacks(clock);
  const governor = createConcurrencyLimiter(deps);
  const active = new Map<number, Active>();
  const waiting: JobRow[] = [];
  const watchers = new Map<number, Array<() => void>>();
  let turn = 0;
  let isPumpPlanned = false;
  let cancelLook: (() => void) | null = null;
  let stopped = false;

  const forget = (number: number): void => {
    if (active.delete(number)) logEnded(log, jobs.get(number));
    const at = waiting.findIndex((job) => job.number === number);
    if (at >= 0) waiting.splice(at, 1);
    for (const tell of watchers.get(number) ?? []) tell();
    watchers.delete(number);
    admit();
  };

  const fail = async (number: number): Promise<void> => {
    const job = jobs.get(number);
    if (job === undefined || !isUnfinished(job)) return;
    await db.commit((tx) => record.abort(tx, job, "failed"));
    forget(number);
  };

  const onWritten = (number: number, written: readonly AttemptedAddress[]): void => {
    const job = jobs.get(number);
    if (job === undefined || !isUnfinished(job)) {
      forget(number);
      return;
    }
    const known = active.get(number);
    if (known === undefined) return;
    let finished = 0;
    for (const { position, bucket, outcome } of written) {
      if (outcome.kind === "later") known.plan.addRetry(position, bucket, outcome.dueAtMs);
      else finished++;
    }
    known.rate.note(finished);
    planPump();
  };

  const writer = createResultBatches({ db, record, clock, log, onWritten, onUnwritable: fail });

  const work = async (of: Active, taken: Taken): Promise<void> => {
    const { job, plan } = of;
    const { position, bucket } = taken;
    let group: string | null = null;
    const id = `${job.number} ${position}`;
    try {
      const address = lists.findOpen(job.number, position);
      if (address === undefined) return;
      const outcome = setbacks.isUsedUp(id) ? internalErrorOutcome(clock.nowMs()) : await attempt(address, job);
      group = outcome.group;
      setbacks.forget(id);
      if (active.get(job.number) !== of) return;
      writer.add(job.number, { position, bucket, rows: address.rows, isRetry: address.dueAtMs > 0, outcome });
    } catch (error) {
      if (error instanceof PoolClosed || stopped) return;
      const again = () => {
        if (active.get(job.number) === of) plan.add(position, bucket);
        planPump();
      };
      const waitMs = setbacks.note(id, again);
      log.error("work on a list ended in a bug; it is tried again", { job: job.number, wait_ms: waitMs, cause: error });
    } finally {
      plan.release(taken, group);
      planPump();
    }
  };

  const hasWork = ({ plan }: Active, nowMs: number): boolean =>
    plan.ready() > 0 || plan.underWay() > 0 || (plan.nextRetryMs() ?? Number.POSITIVE_INFINITY) <= nowMs;

  /** Jobs that have work. During an outage those of live keys stand still, but for one address at each interval. */
  const busyJobs = (nowMs: number): { readonly busy: Active[]; readonly begunMax: number } => {
    const all = [...active.values()].filter((one) => hasWork(one, nowMs));
    if (outages.current() === null) return { busy: all, begunMax: BEGUN_PER_TURN_MAX };
    const isTest = ({ job }: Active) => job.mode === "test";
    const test = all.filter(isTest);
    if (test.length > 0) return { busy: test, begunMax: BEGUN_PER_TURN_MAX };
    const isBusy = all.some(({ plan }) => plan.underWay() > 0);
    return !isBusy && outages.takeTurn() ? { busy: all, begunMax: 1 } : { busy: [], begunMax: 0 };
  };

  /** Begins what there is room for, a job at a time in turn; true when there may be more to begin. */
  const beginSome = (): boolean => {
    const nowMs = dueNowMs();
    const { busy, begunMax } = busyJobs(nowMs);
    const underWay = [...active.values()].reduce((sum, { plan }) => sum + plan.underWay(), 0);
    const shareMax = windowShares(busy, governor.window(underWay));
    let begun = 0;
    for (let idle = 0; idle < busy.length;) {
      if (begun >= begunMax) return begunMax > 1;
      const one = busy[turn++ % busy.length];
      const taken = one === undefined || one.plan.underWay() >= shareMax(one) ? null : one.plan.take(nowMs);
      if (one === undefined || taken === null) {
        idle++;
        continue;
      }
      idle = 0;
      begun++;
      void work(one, taken);
    }
    return false;
  };

  const pump = (): void => {
    isPumpPlanned = false;
    if (stopped || writer.size() >= UNWRITTEN_MAX) return;
    if (beginSome()) planPump();
    else lookAgain();
  };

  const planPump = (): void => {
    if (isPumpPlanned || stopped) return;
    isPumpPlanned = true;
    setImmediate(pump);
  };

  /** At the time of the next retry. */
  const lookAgain = (): void => {
    cancelLook?.();
    cancelLook = null;
    if (active.size === 0) return;
    const waits = [...active.values()].map(({ plan }) => (plan.nextRetryMs() ?? Number.POSITIVE_INFINITY) - dueNowMs());
    // What is due already waits for room, and is seen when there is some.
    const delayMs = Math.min(LOOK_AT_LEAST_EVERY_MS, ...waits.filter((ms) => ms > 0));
    cancelLook = clock.after(delayMs, planPump);
  };

  const load = async (one: Active): Promise<void> => {
    const { number } = one.job;
    const isActive = () => !stopped && active.get(number) === one;
    await db.commit((tx) => record.begin(tx, number));
    for (let after = -1; isActive();) {
      const addresses = lists.addressesBehind(number, after, LOADED_AT_ONCE);
      const latestMs = dueNowMs() + longestWaitMs;
      for (const { position, normalizedEmail, dueAtMs, done } of addresses) {
        after = position;
        if (done) continue;
        const bucket = bucketOf(normalizedEmail);
        // Later than any retry is planned for: the clock has been set back since.
        if (dueAtMs === 0 || dueAtMs > latestMs) one.plan.add(position, bucket);
        else one.plan.addRetry(position, bucket, dueAtMs);
      }
      planPump();
      if (addresses.length < LOADED_AT_ONCE) return;
      await nextTurn();
    }
  };

  const begin = (job: JobRow): void => {
    const perGroupMax = Math.max(1, Math.floor(windowMax / GROUP_SHARE));
    const one = { job, plan: createAddressQueue({ perGroupMax }), rate: createThroughput(clock) };
    active.set(job.number, one);
    logBegun(log, job);
    load(one).catch((error: unknown) => {
      if (stopped) return;
      log.error("a list could not be taken up; trying again", { id: job.id, cause: error });
      clock.after(LOAD_AGAIN_MS, () => {
        if (!stopped && active.get(job.number) === one) begin(job);
      });
    });
  };

  const admit = (): void => {
    while (!stopped) {
      const next = nextToBegin(waiting, [...active.values()]);
      if (next === undefined) return;
      waiting.splice(waiting.indexOf(next), 1);
      begin(next);
    }
  };

  const take = (job: JobRow): void => {
    if (active.has(job.number) || waiting.some(({ number }) => number === job.number)) return;
    waiting.push(job);
    admit();
  };

  outages.onChange(planPump);

  /** Why nothing of a job is concluded at the moment; null while work goes on. */
  const pausedReason = (job: JobRow): PausedReason | null =>
    job.mode === "test" || !isUnfinished(job) ? null : outages.current();

  return {
    /** Takes up every job that an earlier process left unfinished. */
    start(): void {
      for (const job of jobs.withStatus(["queued", "running"])) if (!job.isResetting) take(job);
    },
    /** Takes up a queued job, as soon as it is its turn. */
    take,
    /** The job has ended otherwise: nothing more of it is begun, and what is under way is dropped. */
    forget,

    pausedReason,

    /** What an unfinished job will still take. */
    forecast(job: JobRow): JobForecast {
      if (!isUnfinished(job)) return NOTHING_LEFT;
      if (pausedReason(job) !== null) return PAUSED;
      const one = active.get(job.number);
      const left = job.addressesTotal - job.addressesFinished;
      const retries = one?.plan.retries() ?? 0;
      const share = windowMax / Math.max(1, active.size) / FIRST_GUESS_ATTEMPT_S;
      const latestMs = one?.plan.latestRetryMs() ?? null;
      return forecast({
        fresh: Math.max(0, left - retries),
        perSecond: one?.rate.perSecond() ?? null,
        hopedPerSecond: share,
        latestRetryMs: latestMs === null ? null : latestMs - dueNowMs(),
      });
    },

    /** Resolves when the job has ended; at once when it is not worked on. */
    untilEnded: (number: number): Promise<void> =>
      new Promise((resolve) => {
        const isWaiting = waiting.some((job) => job.number === number);
        if (active.has(number) || isWaiting) watchers.set(number, [...(watchers.get(number) ?? []), resolve]);
        else resolve();
      }),

    /** Begins nothing more and writes down what is known; what is under way stays pending. */
    async stop(): Promise<void> {
      stopped = true;
      cancelLook?.();
      governor.stop();
      setbacks.stop();
      active.clear();
      await writer.stop();
    },
  };
};

export type BulkRunner = ReturnType<typeof createBulkRunner>;
